#!/usr/bin/env python3
"""hutch doctor: what is there is a yes; what was taken away is a no, with what mends it, and decides the exit status
exactly when a sandbox needs it."""

import atexit
import errno
import functools
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable

import deprive
from deprive import ENOPROTOOPT, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM, Step, call, capability, covered
from harness import (
    HUTCH,
    INSTANCES,
    NOBODY,
    Outcome,
    Skipped,
    case,
    check,
    contains,
    environment,
    equal,
    eventually,
    finish,
    folder,
    main,
    nothing_left,
    place,
    run,
    state,
    traces,
)

NEEDED = (
    "kernel root capabilities system-calls clone3 user-namespace pid-namespace mount-namespace network-namespace "
    "ipc-namespace uts-namespace cgroup-namespace runtime-folder ids cgroup-tree swap-limit cgroup-limits "
    "clone-into-cgroup cgroup-kill mount-api devices state-folder idmap tmpfs overlay proc seccomp keyring merged-usr "
    "sandbox"
).split()
CLONE_NEWNET, CLONE_NEWCGROUP = 0x40000000, 0x02000000
NAMESPACES = {
    "user": ("user", 0x10000000),
    "pid": ("pid", 0x20000000),
    "mount": ("mnt", 0x20000),
    "ipc": ("ipc", 0x08000000),
    "uts": ("uts", 0x04000000),
}
CAPABILITIES = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_ADMIN": 12,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_MKNOD": 27,
}


class Report:
    def __init__(self, result: Outcome) -> None:
        self.result = result
        self.whole = json.loads(result.out)
        self.checks = {row["name"]: row for row in self.whole["checks"]}
        self.can = self.whole["can_make_sandbox"]

    def no(self) -> set[str]:
        return {name for name, row in self.checks.items() if row["ok"] is False}

    def untried(self) -> set[str]:
        return {name for name, row in self.checks.items() if row["ok"] is None}


def doctor(*words: str, without: Step | None = None, program: list[str] | None = None, **popen: object) -> Outcome:
    popen.setdefault("env", environment())
    process = subprocess.Popen(
        [*(program or [HUTCH]), "doctor", *words],
        stdin=subprocess.DEVNULL,
        stdout=popen.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        preexec_fn=without,
        close_fds=False,  # what it opened for the program stays open
        **popen,
    )
    return finish(process, seconds=60)


def report(*words: str, **popen: object) -> Report:
    result = doctor("--json", *words, **popen)
    check(result.out, f"no output; status {result.status}, stderr {result.err!r}")
    told = Report(result)
    equal("status", (result.status, result.err), (0 if told.can else 1, ""))
    equal("verdict", told.can, all(told.checks[name]["ok"] is True for name in NEEDED))
    for row in told.checks.values():
        check(
            (row["mend"] is not None and row["meaning"] is not None) == (row["ok"] is False), f"meaning and mend: {row}"
        )
    return told


def some(rows: Iterable) -> list:
    """All of them; on a machine that is emulated every third."""
    return list(rows)[:: 1 if float(os.environ.get("HUTCH_TEST_SLOWNESS", "1")) <= 1 else 3]


@functools.cache
def lacking() -> frozenset[str]:
    """What only some options need and this machine does not have anyway."""
    told = report()
    check(told.can, f"a sandbox can be made: {told.no()}")
    return frozenset(told.no())


def more(told: Report) -> set[str]:
    """What says no besides; a filter that took something away is one above Hutch."""
    return told.no() - lacking() - {"own-filter"}


def taken(
    name: str,
    without: Step,
    found: str,
    mend: str,
    *,
    besides: tuple[str, ...] = (),
    sandbox: bool | None = None,
    **popen: object,
) -> Report:
    """Without it the check says no with these words, and so does nothing but `besides`; a sandbox can be made exactly
    when the check is not needed. `sandbox`: whether the real one is still made, when the two must differ."""
    told = report(without=without, **popen)
    row = told.checks[name]
    equal(f"{name}: {row}", row["ok"], False)
    contains(name, row["found"], found)
    contains(name, row["mend"], mend)
    needed = name in NEEDED
    equal(f"{name}: verdict", told.can, not needed)
    made = sandbox if sandbox is not None else not needed
    equal(f"{name}: the real sandbox: {told.checks['sandbox']['found']}", told.checks["sandbox"]["ok"], made)
    expected = {name, *besides} | ({"sandbox"} if not made else set())
    equal(f"{name}: what else says no", more(told) | {name}, expected - lacking() | {name})
    return told


@case
def everything() -> None:
    "on a machine that can run these tests everything that is needed is a yes, and a real sandbox was made"
    told = report()
    equal("needed, and missing", (told.can, told.no() & set(NEEDED)), (True, set()))
    equal("keys", set(told.whole), {"version", "kernel", "checks", "can_make_sandbox"})
    equal("kernel", told.whole["kernel"], os.uname().release)
    version = subprocess.run([HUTCH, "version"], capture_output=True, text=True, check=True).stdout
    equal("version", f"hutch {told.whole['version']}\n", version)
    equal("needed", [row["name"] for row in told.whole["checks"] if row["required"]], NEEDED)
    equal("needed, and not tried", told.untried() & set(NEEDED), set())
    for row in told.checks.values():
        equal("keys of a check", list(row), ["name", "ok", "required", "found", "meaning", "mend"])
        check(row["found"], f"nothing found: {row}")
    contains("a sandbox", told.checks["sandbox"]["found"], "made, a command run and all removed in", "ms (ready after")


@case
def table() -> None:
    "for people: one aligned line per check, and the answer last; no colour in a pipe"
    result = doctor()
    equal("status", (result.status, result.err), (0, ""))
    equal("the last line", result.lines[-1], "A sandbox can be made here.")
    rows = [line for line in result.lines if line.startswith(("  yes  ", "  no   ", "  ?    "))]
    equal("one line each", [line.split()[1] for line in rows], list(report().checks))
    width = max(len(line.split()[1]) for line in rows)
    check(all(line[7 + width : 9 + width] == "  " and line[9 + width] != " " for line in rows), "aligned")
    check(b"\033" not in result.out, "colour")


def on_terminal(**variables: str) -> bytes:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [HUTCH, "doctor"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(**variables)
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 65536):
            seen += part
    except OSError as error:
        equal("reading the terminal", error.errno, errno.EIO)
    os.close(ours)
    equal("status", process.wait(), 0)
    return seen


@case
def colour() -> None:
    "on a terminal yes is green; not with NO_COLOR, nor on a dumb one"
    check(b"\033[32myes\033[0m  root" in on_terminal(TERM="xterm"), "no colour on a terminal")
    check(b"\033" in on_terminal(TERM="xterm", NO_COLOR=""), "an empty NO_COLOR is none")
    check(b"\033" not in on_terminal(TERM="xterm", NO_COLOR="1"), "colour with NO_COLOR")
    check(b"\033" not in on_terminal(TERM="dumb"), "colour on a dumb terminal")


@case
def options() -> None:
    "options that are unknown, lack a value or have one too many; --help"
    for words, message in (
        (["--jsn"], "hutch: unknown option --jsn; did you mean --json?\n"),
        (["--frobnicate"], "hutch: unknown option --frobnicate; 'hutch doctor --help' lists them\n"),
        (["--json=yes"], "hutch: --json takes no value\n"),
        (["--state"], "hutch: --state needs a value: --state FOLDER\n"),
        (["overlay"], "hutch: 'overlay': hutch doctor takes options alone\n"),
    ):
        result = doctor(*words)
        equal(f"{words}", (result.status, result.out, result.err), (125, b"", message))
    result = doctor("--json", "--nosuch")
    equal("an error as JSON", (result.status, json.loads(result.out)["error"]["code"]), (125, "invalid"))
    for word in ("--help", "-h"):
        result = doctor(word)
        equal(f"{word}: status", (result.status, result.err), (0, ""))
        contains(word, result.text, "usage: hutch doctor [options]", "--json", "--state FOLDER", "Exit status: 0")
    help_text = subprocess.run([HUTCH, "help"], capture_output=True, text=True, check=True).stdout
    contains("hutch help", help_text, "  doctor    ")


@case
def output_lost() -> None:
    "an output that can't be written is an error of its own"
    with open("/dev/full", "wb") as full:
        result = doctor(stdout=full)
    equal("status", result.status, 125)
    contains("message", result.err, "writing standard output: No space left on device")


def open_copy() -> str:
    """Of hutch, where everybody may execute it."""
    path = tempfile.mkdtemp(prefix="hutch-test-", dir="/var/tmp")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    os.chmod(path, 0o755)
    return shutil.copy(HUTCH, path)


@case
def without_root() -> None:
    "another user: what can be said is said, the rest is not tried, and the sudo line is there"
    program = [open_copy()]
    told = report(without=deprive.user(NOBODY), program=program)
    equal("no", told.no() & set(NEEDED), {"root"})
    equal("mend", told.checks["root"]["mend"], "sudo hutch doctor")
    for name in ("sandbox", "overlay", "capabilities", "loop"):
        equal(name, told.checks[name]["found"], "not tried: needs root")
    for name in ("seccomp", "clone3", "cgroup-tree", "merged-usr"):
        equal(name, told.checks[name]["ok"], True)
    result = doctor(without=deprive.user(NOBODY), program=program)
    equal("status", (result.status, result.lines[-1]), (1, "No sandbox can be made here: root"))
    contains("the sudo line", result.text, "         mend   sudo hutch doctor\n")


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
def user_namespace() -> None:
    "root of a user namespace is not enough"
    told = report(program=["unshare", "--user", "--map-root-user", HUTCH])
    equal("no", told.no() & set(NEEDED), {"root"})
    contains("root", told.checks["root"]["found"], "root of a user namespace")
    equal("container", told.checks["container"]["ok"], False)


@case
def containers() -> None:
    "a pid or cgroup namespace that is not the machine's first is told; alone it is no reason to make no sandbox"
    told = report(program=["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", HUTCH])
    equal("a pid namespace", (told.can, more(told)), (True, {"container"}))
    contains("a pid namespace", told.checks["container"]["found"], "its pid namespace is not the machine's first")
    told = report(program=["unshare", "--cgroup", HUTCH])
    contains("a cgroup namespace", told.checks["container"]["found"], "its cgroup namespace is not the machine's first")
    if not told.can:
        # Below a cgroup of its own it can't reach those of sandboxes.
        equal("a cgroup namespace", more(told), {"container", "clone-into-cgroup", "sandbox"})
        contains("a cgroup namespace", told.checks["clone-into-cgroup"]["mend"], "the machine's own cgroup namespace")


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


@case
def no_init() -> None:
    "hutch without its init: only the real sandbox shows it, with what was looked for"
    alone = folder("alone") / "hutch"
    shutil.copy(HUTCH, alone)
    told = report(program=[str(alone)])
    equal("no", (told.can, more(told)), (False, {"sandbox"}))
    contains("found", told.checks["sandbox"]["found"], "opening hutch-init")
    result = doctor(program=[str(alone)])
    equal("the last line", result.lines[-1], "No sandbox can be made here: sandbox")


@case
def failing_step() -> None:
    "a sandbox that fails in the middle is told with the step"
    told = report(without=call("unshare", EPERM, bits={0: CLONE_NEWNET}))
    equal("no", more(told), {"sandbox"})
    contains(
        "found",
        told.checks["sandbox"]["found"],
        "failed while making the network namespace (step network): making the network namespace: Operation not",
    )


@case
def crash() -> None:
    "a probe that crashes is a no; the others go on"
    told = report(without=call("bpf", deprive.RET_KILL))
    row = told.checks["sk-lookup"]
    equal("sk-lookup", (row["ok"], told.can, told.checks["ipv6"]["ok"]), (False, True, True))
    contains("sk-lookup", row["found"], f"the probe was ended by signal {signal.SIGSYS.value}")


@case
def hang() -> None:
    "a probe that hangs is a no after its time; the others go on"
    usual = report().result.seconds
    told = report(without=call("bpf", deprive.RET_NOTIFY))
    row = told.checks["sk-lookup"]
    equal("sk-lookup", (row["ok"], told.can, told.checks["ipv6"]["ok"]), (False, True, True))
    equal("found", row["found"], "the probe did not answer within 5 s")
    check(5 <= told.result.seconds < 7 + 2 * usual, f"its time: {told.result.seconds} s, usually {usual} s")


@case
def run_points_here() -> None:
    "a run that fails for want of something on this machine points to the doctor; one that was asked wrongly does not"
    result = run("--", "true", preexec_fn=capability(CAPABILITIES["CAP_MKNOD"]))
    equal("status", result.status, 125)
    contains("the machine's fault", result.err, "; 'sudo hutch doctor' says what this machine lacks\n")
    result = run("--root", "/nonexistent", "--", "true")
    equal("status", result.status, 125)
    check("doctor" not in result.err, f"the caller's fault: {result.err!r}")


def loops() -> set[str]:
    """Loop devices that hold something of ours."""
    held = set()
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            held.add(path.read_text(encoding="utf-8"))
        except OSError:
            pass  # not any more
    return {file for file in held if "hutch-doctor" in file or file.startswith(str(place()))}


def doctors() -> list[int]:
    """Its processes."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_ours = os.readlink(path / "exe") == os.path.realpath(HUTCH)
            if is_ours and b"doctor" in (path / "cmdline").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:
            pass
    return found


def call_of(pid: int) -> int:
    """The system call that it waits in, -1 when in none."""
    try:
        word = pathlib.Path(f"/proc/{pid}/syscall").read_text(encoding="ascii").split()[0]
        return int(word) if word.isdigit() else -1
    except OSError:
        return -1


def instances_of(pid: int) -> set[str]:
    """The ids of the instances that it holds."""
    held = set()
    for path in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
        try:
            held.add(os.readlink(path))
        except OSError:
            pass
    return {os.path.basename(file) for file in held if file.startswith(f"{INSTANCES}/")}


@case
def nothing_behind() -> None:
    "nothing is left after a doctor that ended well: no mount, cgroup, loop device, process"
    before = (traces(), loops(), pathlib.Path("/proc/self/mountinfo").read_text())
    check(report().can, "a sandbox can be made")
    nothing_left(before[0])
    eventually("loop devices", lambda: loops() <= before[1])
    equal("mounts", pathlib.Path("/proc/self/mountinfo").read_text(), before[2])
    equal("processes", doctors(), [])


@case
def killed() -> None:
    "nor after one that was killed or interrupted in the middle, at any time"
    before = (traces(), loops())
    chance = random.Random(3)
    usual = report().result.seconds
    for attempt in range(max(6, min(60, int(10 / usual)))):
        process = subprocess.Popen(
            [HUTCH, "doctor"], stdout=subprocess.DEVNULL, env=environment(), start_new_session=True
        )
        time.sleep(chance.random() * usual)
        if attempt % 3 == 0:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGKILL if attempt % 3 == 1 else signal.SIGTERM)
        process.wait()
    eventually("the last process has ended", lambda: not doctors())
    nothing_left(before[0])
    eventually("loop devices", lambda: loops() <= before[1])


@case
def killed_while_it_hangs() -> None:
    "nor after one that was killed while a probe hangs"
    process = subprocess.Popen(
        [HUTCH, "doctor"],
        stdout=subprocess.DEVNULL,
        env=environment(),
        preexec_fn=call("landlock_create_ruleset", deprive.RET_NOTIFY),
        close_fds=False,
    )
    wanted = deprive.CALLS["landlock_create_ruleset"]
    eventually("it hangs", lambda: any(call_of(pid) == wanted for pid in doctors()), 60)
    process.kill()
    process.wait()
    eventually("its processes have ended", lambda: not doctors(), 3)


def killed_holding(hang: deprive.Step, name: str, least: int) -> None:
    """Kill a doctor while a probe hangs in this call with an instance and whatever else carries its id."""
    process = subprocess.Popen(
        [HUTCH, "doctor"], stdout=subprocess.DEVNULL, env=environment(), preexec_fn=hang, close_fds=False
    )
    eventually("it hangs", lambda: any(call_of(pid) == deprive.CALLS[name] for pid in doctors()), 60)
    ours = {instance for pid in doctors() for instance in instances_of(pid)}
    equal("instances", len(ours), 1)
    made = {path for path in traces() for instance in ours if instance in path}
    check(len(made) >= least, f"an instance and what carries its id: {made}")
    process.kill()
    process.wait()
    eventually("it is gone", lambda: not made & traces(), 3)


@case
def killed_with_an_instance() -> None:
    "nor after one that was killed while a probe holds an instance and nothing else"
    killed_holding(call("fcntl", deprive.RET_NOTIFY, equal={1: deprive.F_OFD_SETLK}), "fcntl", 1)


@case
def killed_with_a_cgroup() -> None:
    "nor after one that was killed while a probe holds a cgroup; one that hangs with it is ended and swept as well"
    # Handing the new cgroup over takes this call.
    hang = call("fchownat", deprive.RET_NOTIFY)
    killed_holding(hang, "fchownat", 2)
    told = report(without=hang)
    equal("cgroup-limits", told.checks["cgroup-limits"]["found"], "the probe did not answer within 5 s")


@case
def own_state() -> None:
    "a fresh state folder holds what a run leaves, and no more"
    fresh = folder("fresh")
    fresh.chmod(0o700)
    check(report("--state", str(fresh)).can, "a sandbox can be made")
    by_doctor = sorted(str(path.relative_to(fresh)) for path in fresh.glob("*/*"))
    check(run("--state", str(fresh), "--", "true").status == 0, "a run")
    equal("what is there", sorted(str(path.relative_to(fresh)) for path in fresh.glob("*/*")), by_doctor)
    check(state(), "the tests' own")


if __name__ == "__main__":
    main()
