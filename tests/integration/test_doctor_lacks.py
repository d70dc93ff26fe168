#!/usr/bin/env python3
"""hutch doctor: what was taken away is a no, with what mends it, and decides the exit status exactly when a sandbox
needs it."""

import errno
import os
import pathlib

import deprive
from deprive import ENOPROTOOPT, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM, call, capability, covered
from doctors import (
    CAPABILITIES,
    CLONE_NEWCGROUP,
    CLONE_NEWNET,
    NEEDED,
    report,
    some,
    taken,
)
from harness import (
    NOBODY,
    Skipped,
    case,
    check,
    contains,
    environment,
    equal,
    folder,
    main,
    place,
    run,
)

NAMESPACES = {
    "user": ("user", 0x10000000),
    "pid": ("pid", 0x20000000),
    "mount": ("mnt", 0x20000),
    "ipc": ("ipc", 0x08000000),
    "uts": ("uts", 0x04000000),
}


@case
def capabilities() -> None:
    "each capability that is needed is named when it is missing; no other is needed"
    for name, number in some(CAPABILITIES.items()):
        told = taken("capabilities", capability(number), f"missing: {name}", "run Hutch on the host")
        check(told.checks["overlay"]["found"] == "not tried: needs capabilities", "what needs it is not tried")
    others = [number for number in range(38) if number not in CAPABILITIES.values()]
    told = report(without=deprive.together(*map(capability, others)))
    equal("none of the others is needed", (told.can, told.no() & set(NEEDED)), (True, set()))


@case
def run_says_why() -> None:
    "hutch run names the capability that it lacks, and the step"
    for name, step in (("CAP_SETPCAP", "zygote"), ("CAP_NET_ADMIN", "network"), ("CAP_SETUID", "clone")):
        outcome = run("--", "true", preexec_fn=capability(CAPABILITIES[name]))
        equal(f"status without {name}", outcome.status, 125)
        contains(f"message without {name}", outcome.err, name, f"(step {step})", "Operation not permitted")
        check("Broken pipe" not in outcome.err, outcome.err)


@case
def calls() -> None:
    "system calls that a sandbox needs, each missing alone, are named"
    newer = "boot Linux 6.1 or later"
    for name in some(("openat2", "close_range", "execveat")):
        taken("system-calls", call(name, ENOSYS), f"{name}: Function not implemented", newer)
    taken("clone3", call("clone3", ENOSYS), "clone3 with a pidfd: Function not implemented", newer)
    taken("seccomp", call("seccomp", errno.EINVAL, equal={0: 1}), "loading a filter: Invalid", "CONFIG_SECCOMP")
    taken("keyring", call("keyctl", errno.EDQUOT), "joining a new session keyring", "sysctl -w kernel.keys.maxkeys")
    told = report(without=call("keyctl", ENOSYS))
    equal("a kernel without keyrings", (told.can, told.checks["keyring"]["found"]), (True, "the kernel has none"))


@case
def pidfds() -> None:
    "a pidfd that can't be signalled"
    # A run that goes well never sends one: the cgroup is killed.
    taken("clone3", call("pidfd_send_signal", ENOSYS), "pidfd_send_signal: Function not", "boot Linux", sandbox=True)


@case
def mount_calls() -> None:
    "the calls of the mount API, each missing alone: what needs them is not tried"
    for name in some(("fsopen", "fsconfig", "fsmount", "open_tree", "move_mount", "mount_setattr")):
        told = taken("mount-api", call(name, ENOSYS), f"{name}: Function not implemented", "boot Linux 6.1 or later")
        equal("overlay", told.checks["overlay"]["found"], "not tried: needs mount-api")


@case
def namespaces() -> None:
    "each namespace that can't be had: a limit, a kernel without it, somebody who does not let us"
    # Sandboxes use clone3 for these, whose flags no filter sees; the check uses clone.
    for name, (limit, bit) in some(NAMESPACES.items()):
        for error, mend in (
            (ENOSPC, f"sysctl -w user.max_{limit}_namespaces=63556"),
            (errno.EINVAL, "boot a kernel with CONFIG_"),
        ):
            told = report(without=call("clone", error, bits={0: bit}))
            row = told.checks[f"{name}-namespace"]
            equal(f"{row}", (row["ok"], told.can), (False, False))
            contains(name, row["found"], f"user.max_{limit}_namespaces is ", os.strerror(error))
            contains(name, row["mend"], mend)
    told = report(without=call("clone", EPERM, bits={0: NAMESPACES["user"][1]}))
    contains("user", told.checks["user-namespace"]["mend"], "kernel.apparmor_restrict_unprivileged_userns=0")
    for name, bit in (("network", CLONE_NEWNET), ("cgroup", CLONE_NEWCGROUP)):
        both = deprive.together(call("clone", EPERM, bits={0: bit}), call("unshare", EPERM, bits={0: bit}))
        taken(f"{name}-namespace", both, "Operation not permitted", "run Hutch on the host")


@case
def optional_calls() -> None:
    "what only some options need is a no that changes nothing else"
    taken(
        "landlock",
        call("landlock_create_ruleset", ENOSYS),
        "asking for its version: Function not implemented",
        "CONFIG_SECURITY_LANDLOCK",
    )
    taken("landlock", call("landlock_create_ruleset", EOPNOTSUPP), "asking for its version", "add lsm=landlock,")
    taken("tmpfs-attributes", call("setxattr", EOPNOTSUPP), "user.* attribute", "boot Linux 6.6")
    taken("sk-lookup", call("bpf", EPERM), "loading a BPF program", "CAP_BPF")
    taken("nftables", call("socket", errno.EPROTONOSUPPORT, equal={0: 16, 2: 12}), "Protocol", "modprobe nf_tables")
    taken("ipv6", call("socket", errno.EAFNOSUPPORT, equal={0: 10}), "making a socket", "ipv6.disable=1")
    taken("passrights", call("setsockopt", ENOPROTOOPT, equal={2: 83}), "refuses descriptors", "boot Linux 6.16")


@case
def old_landlock() -> None:
    "a Landlock that holds nothing is a no, whatever its version says"
    has_scopes = report().checks["landlock-scopes"]["ok"]
    told = report(without=call("landlock_restrict_self", EPERM))
    row = told.checks["landlock"]
    # Scopes that a kernel has and then refuses are a step that failed, not a kernel without them.
    equal("landlock", (row["ok"], told.can), (False, not has_scopes))
    contains("landlock", row["found"], "but entering a domain: Operation not permitted")
    equal("scopes", told.checks["landlock-scopes"]["found"], "not tried: needs landlock")


@case
def own_filter() -> None:
    "a seccomp filter above Hutch is told"
    told = report(without=call("bpf", ENOSYS))
    row = told.checks["own-filter"]
    equal("own-filter", (row["ok"], told.can), (False, True))
    contains("own-filter", row["found"], "1 seccomp filter")
    contains("own-filter", row["mend"], "seccomp=unconfined")


def tree() -> pathlib.Path:
    """Where the v2 tree is."""
    hybrid = pathlib.Path("/sys/fs/cgroup/unified")
    return hybrid if hybrid.exists() else pathlib.Path("/sys/fs/cgroup")


@case
def cgroup_trees() -> None:
    "no tree, v1 alone, a v2 tree without controllers, a read-only one"
    taken("cgroup-tree", covered("/sys/fs/cgroup"), "no cgroup tree at /sys/fs/cgroup", "mount -t cgroup2")
    if tree().name != "unified":
        raise Skipped("v1 hierarchies can only be shown on a hybrid machine")
    taken("cgroup-tree", covered(str(tree())), "v1 alone", "systemd.unified_cgroup_hierarchy=1")
    bare = deprive.bound(str(tree()), "/sys/fs/cgroup")
    taken("cgroup-limits", bare, "the controller memory is not offered", "cgroup_enable=memory")
    taken("cgroup-limits", covered("/sys/fs/cgroup/pids"), "the controller pids is not offered", "cgroup_enable=pids")
    taken("cgroup-limits", deprive.read_only("/sys/fs/cgroup/memory"), "Read-only file system", "run Hutch on the host")


@case
def state_folders() -> None:
    "a state folder of the wrong mode or owner, a file, one that is not there yet, and file systems"
    below = folder("doctor-state")
    for mode, owner in ((0o755, 0), (0o700, NOBODY)):
        path = below / f"{mode:o}-{owner}"
        path.mkdir()
        path.chmod(mode)
        os.chown(path, owner, owner)
        taken(
            "state-folder",
            lambda: None,
            f"{path} has owner {owner} and mode 0{mode:o}",
            f"chown root:root {path} && chmod 0700 {path}",
            env=environment(HUTCH_STATE=str(path)),
        )
        path.chmod(0o700)
        os.chown(path, 0, 0)
        equal("after what mends it", report(env=environment(HUTCH_STATE=str(path))).can, True)
    (below / "file").write_text("")
    file = environment(HUTCH_STATE=str(below / "file"))
    taken("state-folder", lambda: None, "is not a folder", "root's alone", env=file)
    told = report("--state", str(below / "new"))
    equal("a new one", told.checks["state-folder"]["found"], f"{below / 'new'} is made by the first run")
    # A name that a shell would take apart is in no command.
    odd = below / "a; reboot"
    odd.mkdir(mode=0o755)
    check("reboot" not in report(f"--state={odd}").checks["state-folder"]["mend"], "a command made of a name")


@case
def state_file_systems() -> None:
    "a state folder on a file system that can't be idmapped"
    path = folder("ramfs")
    told = taken(
        "idmap",
        covered(str(path), "ramfs", mode=0o700),
        f"ramfs holds {path}, which can't be idmapped: Invalid argument",
        "keep the state folder on ext4, xfs or btrfs",
        env=environment(HUTCH_STATE=str(path)),
    )
    equal("overlay", told.checks["overlay"]["found"], "not tried: needs idmap")


@case
def runtime_folders() -> None:
    "/run/hutch that others may write to, or that can't be made"
    loose = deprive.together(covered("/run"), lambda: os.mkdir("/run/hutch"), lambda: os.chmod("/run/hutch", 0o777))
    taken("runtime-folder", loose, "/run/hutch must belong to root and be", "chmod 0755 /run/hutch")
    blocked = deprive.together(covered("/run"), deprive.read_only("/run"))
    taken("runtime-folder", blocked, "making /run/hutch: Read-only file system", "mount -o remount,rw /run")


@case
def ids() -> None:
    "all ranges given to another tool"
    subids = ["/etc/subuid", "/etc/subgid"]
    if not all(map(os.path.exists, subids)):
        raise Skipped("there is no /etc/subuid to cover")
    for path in subids:
        everything = covered(path, text="somebody:0:4294967295\n")
        taken("ids", everything, "all 24576 ranges of user ids are in use", "/etc/subuid and /etc/subgid")
    some = report(without=covered("/etc/subuid", text="somebody:268435456:65536\n"))
    contains("one less", some.checks["ids"]["found"], "24575 ranges")


@case
def proc() -> None:
    "a /proc with something mounted over it, as in a container, and limits that are low or hand crashes out"
    mask = covered("/proc/keys", text="")
    low = covered("/proc/sys/kernel/pid_max", text="301\n")
    if "from outside" in report().checks["proc"]["found"]:
        # What is mounted over the machine's own does not matter then.
        told = report(without=mask)
        equal("proc", (told.checks["proc"]["ok"], told.checks["sandbox"]["ok"]), (True, True))
        told = taken("pid-limits", low, "below 32768", "sysctl -w")
    else:
        taken("proc", mask, "mounting one for a new pid namespace: Operation not permitted", "run Hutch on the host")
        # A file over /proc/sys is such a mount too.
        told = taken("proc", low, "Operation not permitted", "run Hutch", besides=("pid-limits",))
    row = told.checks["pid-limits"]
    equal("found", row["found"], "kernel.pid_max is 301, which is below 32768")
    equal("mend", row["mend"], "sysctl -w kernel.pid_max=32768")
    for pattern, ok in (("@/run/dumps", False), ("|/usr/bin/dumps %p", True), ("core", True)):
        told = report(without=covered("/proc/sys/kernel/core_pattern", text=f"{pattern}\n"))
        equal(pattern, told.checks["core-pattern"]["ok"], ok)


@case
def images() -> None:
    "no loop devices, no mkfs.ext4: sandboxes are made all the same"
    if not os.path.exists("/dev/loop-control"):
        raise Skipped("there are no loop devices to take away")
    taken("loop", deprive.bound("/dev/null", "/dev/loop-control"), "asking /dev/loop-control", "modprobe loop")
    path = next((path for path in ("/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4") if os.path.exists(path)), None)
    if path is None:
        raise Skipped("there is no mkfs.ext4 to take away")
    hidden = deprive.bound("/dev/null", os.path.realpath(path))
    told = taken("mkfs.ext4", hidden, "not in /usr/sbin or /sbin", "apt-get install e2fsprogs")
    equal("a disk image", told.checks["disk-image"]["found"], "not tried: needs mkfs.ext4")


@case
def image_sandbox() -> None:
    "a sandbox with a disk image: made for real, and a no where the state folder can't hold one"
    told = report()
    if told.checks["disk-image"]["ok"] is None:
        raise Skipped(told.checks["disk-image"]["found"])
    contains("made", told.checks["disk-image"]["found"], "made, a command run and all removed in")
    path = folder("blocked")
    path.chmod(0o700)
    (path / "images").write_text("in the way")
    taken(
        "disk-image",
        lambda: None,
        "failed while making the disk image (step image): opening the folder of images: Not a directory",
        "keep the state folder on ext4",
        env=environment(HUTCH_STATE=str(path)),
    )


@case
def limits() -> None:
    "a low limit of open files is told and does not keep sandboxes from being made"
    taken("open-files", deprive.open_files(1000), "the hard limit is 1000, which is below 4096", "LimitNOFILE=")


@case
def split_usr() -> None:
    "a /bin that is not a link into /usr"
    # Not with the layer that was made of the real one.
    fresh = environment(HUTCH_STATE=str(place() / "split"))
    taken("merged-usr", deprive.split_usr, "/bin is not a link into /usr", "apt-get install usrmerge", env=fresh)


if __name__ == "__main__":
    main()
