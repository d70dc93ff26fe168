#!/usr/bin/env python3
"""A sandbox looks like section 3 of the design: what it is made of, what it shows, what it refuses."""

import errno
import fcntl
import os
import pathlib
import signal
import socket
import subprocess

from harness import (
    HUTCH,
    NOBODY,
    Skipped,
    case,
    check,
    contains,
    equal,
    finish,
    folder,
    main,
    payload,
    payload_dir,
    payload_root,
    payloads_with,
    place,
    run,
    start,
    start_payload,
    status_of,
    take_terminal,
    wait_ready,
)

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
ID_FIRST, ID_LAST, IDS = 0x10000000, 0x6FFFFFFF, 65536
# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID; init has SETPCAP too.
ROOT_CAPABILITIES = 0b11111011
INIT_CAPABILITIES = ROOT_CAPABILITIES | 1 << 8
WRITABLE = {"/workspace", "/tmp", "/run", "/home/sandbox", "/mnt/user-data/outputs", "/dev/shm"}
MASKED = (
    "acpi",
    "asound",
    "bus",
    "cmdline",
    "config.gz",
    "diskstats",
    "interrupts",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "latency_stats",
    "modules",
    "partitions",
    "sched_debug",
    "scsi",
    "sysrq-trigger",
    "timer_list",
    "timer_stats",
)


def sandboxed(word: str) -> tuple[subprocess.Popen, int]:
    """A sleeping payload that can be found by a word, and its pid on the host."""
    process = start_payload("sleep", "60", word)
    wait_ready(process)
    pids = payloads_with(word)
    equal("payloads", len(pids), 1)
    return process, pids[0]


def end(*processes: subprocess.Popen) -> None:
    for process in processes:
        process.terminate()
        finish(process)


def host_file(pid: int, name: str) -> str:
    return pathlib.Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8")


@case
def namespaces() -> None:
    "all seven namespaces are its own"
    process, pid = sandboxed("namespaces")
    for name in NAMESPACES:
        check(os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"), f"{name} is the host's")
    end(process)


@case
def id_maps() -> None:
    "65,536 ids from the configured range, and two sandboxes never share one"
    first, first_pid = sandboxed("id-maps-1")
    second, second_pid = sandboxed("id-maps-2")
    starts = set()
    for pid in (first_pid, second_pid):
        maps = {host_file(pid, name) for name in ("uid_map", "gid_map")}
        equal("one map for users and groups", len(maps), 1)
        inside, outside, count = map(int, maps.pop().split())
        equal("map", (inside, count, outside % IDS), (0, IDS, 0))
        check(ID_FIRST <= outside and outside + IDS - 1 <= ID_LAST, f"{outside} is outside of the range")
        equal("owner", os.stat(f"/proc/{pid}").st_uid, outside + NOBODY)
        starts.add(outside)
    equal("ranges", len(starts), 2)
    end(first, second)


@case
def capabilities() -> None:
    "no capabilities for nobody; for root the seven that package managers need; no_new_privs, seccomp"
    for user, expected in (("nobody", 0), ("1000", 0), ("root", ROOT_CAPABILITIES)):
        for filter_name in ("standard", "tight"):
            status = status_of(
                payload("file", "/proc/self/status", options=("--user", user, "--filter", filter_name)).text
            )
            for name, value in {
                "CapPrm": expected,
                "CapEff": expected,
                "CapBnd": expected,
                "CapInh": 0,
                "CapAmb": 0,
            }.items():
                equal(f"{user}: {name}", int(status[name], 16), value)
            equal(f"{user}: NoNewPrivs", status["NoNewPrivs"], "1")
            equal(f"{user}: Seccomp", (status["Seccomp"], status.get("Seccomp_filters", "2")), ("2", "2"))
            equal(f"{user}: Groups", status["Groups"], "")


@case
def init_privileges() -> None:
    "init itself has no CAP_SYS_ADMIN, can't gain any, is filtered and small"
    process, pid = sandboxed("init-privileges")
    init = int(status_of(host_file(pid, "status"))["PPid"])
    status = status_of(host_file(init, "status"))
    equal("pid inside", status["NSpid"].split()[-1], "1")
    for name, value in {
        "CapPrm": INIT_CAPABILITIES,
        "CapEff": INIT_CAPABILITIES,
        "CapBnd": INIT_CAPABILITIES,
        "CapInh": 0,
        "CapAmb": 0,
    }.items():
        equal(name, int(status[name], 16), value)
    equal("NoNewPrivs, Seccomp", (status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    check(int(status["VmRSS"].split()[0]) <= 1024, f"init takes {status['VmRSS']}")
    end(process)


def mounts(*options: str) -> dict[str, set[str]]:
    text = run(*options, "--", "cat", "/proc/self/mounts").text
    return {line.split()[1]: set(line.split()[3].split(",")) for line in text.splitlines()}


@case
def mount_flags() -> None:
    "every mount is nosuid, all but device nodes nodev; / and /usr read-only; only the writable folders are not"
    table = mounts()
    check({"/", "/usr", "/dev", "/proc", *WRITABLE} <= table.keys(), f"mounts: {sorted(table)}")
    nodes = {"/dev", *(f"/proc/{name}" for name in MASKED)}
    for path, flags in table.items():
        check("nosuid" in flags, f"{path} is not nosuid")
        check("nodev" in flags or path in nodes, f"{path} is not nodev")
        check(("ro" in flags) == (path not in WRITABLE | {"/proc"}), f"{path} is {sorted(flags)}")
    for path in ("/dev", "/dev/shm", "/proc"):
        check("noexec" in table[path], f"{path} is not noexec")
    check("hidepid=invisible" in table["/proc"], "/proc does not hide")
    for path in ("/proc/sys", "/proc/irq", "/proc/fs"):
        if os.path.exists(path):
            check("ro" in table[path], f"{path} is not read-only")


@case
def writable_folders() -> None:
    "the writable folders are, and nothing else is, not even for root"
    for user in ("nobody", "root"):
        found = run(
            "--user",
            user,
            "--",
            "sh",
            "-c",
            'for d in / /* /*/* /mnt/user-data/outputs; do [ -d "$d" ] && [ ! -L "$d" ] '
            '&& touch "$d/.probe" 2>/dev/null && echo "$d"; done; true',
        ).lines
        # A fresh process folder of /proc takes no files, so what touch makes is what there is.
        equal(user, set(found), WRITABLE)


@case
def hidden_processes() -> None:
    "/proc hides PID 1, by name and by number, also from root"
    for user in ("nobody", "root"):
        listed = payload("folder", "/proc", options=("--user", user)).lines
        check("1" not in listed, f"{user} sees /proc/1")
        check({"self", "mounts"} <= set(listed), f"/proc holds {listed}")
        for path in (
            "/proc/1",
            "/proc/1/root",
            "/proc/1/environ",
            "/proc/1/mem",
            "/proc/1/exe",
            "/proc/1/fd",
            "/proc/1/ns/mnt",
        ):
            result = payload("file", path, options=("--user", user))
            equal(f"{user}: {path}", (result.status, result.text), (1, f"{path} 0 {errno.ENOENT}\n"))


@case
def masked_paths() -> None:
    "facts of the whole machine are masked: empty, and not to be written"
    for name in MASKED:
        if not os.path.exists(f"/proc/{name}"):
            continue
        kind = "folder" if os.path.isdir(f"/proc/{name}") else "file"
        result = payload(kind, f"/proc/{name}", options=("--user", "root"))
        equal(f"/proc/{name}", (result.status, result.out), (0, b""))
    for path in ("/proc/kmsg", "/proc/kpageflags", "/proc/slabinfo", "/proc/vmallocinfo"):
        if os.path.exists(path):
            equal(path, payload("file", path, options=("--user", "root")).text, f"{path} 0 {errno.EACCES}\n")


@case
def kernel_settings() -> None:
    "/proc/sys and what else could change the machine can't be written, not by root either"
    paths = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/kernel/modprobe",
        "/proc/irq/default_smp_affinity",
        "/proc/mtrr",
    ]
    before = {path: pathlib.Path(path).read_text() for path in paths[:5]}
    for user in ("nobody", "root"):
        for path, error in payload("writable", *paths, options=("--user", user)).numbers.items():
            check(error in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT), f"{user}: {path}: {error}")
    equal("on the host", {path: pathlib.Path(path).read_text() for path in paths[:5]}, before)


@case
def devices() -> None:
    "/dev has its six nodes and nothing that could be turned into another"
    result = run(
        "--",
        "sh",
        "-c",
        "cd /dev && find . -mindepth 1 | sort; stat -c '%n %F %t:%T %a' null zero full random urandom tty; "
        "readlink fd stdin stdout stderr ptmx",
    )
    equal(
        "/dev",
        result.text,
        """./fd
./full
./null
./ptmx
./pts
./random
./shm
./stderr
./stdin
./stdout
./tty
./urandom
./zero
null character special file 1:3 666
zero character special file 1:5 666
full character special file 1:7 666
random character special file 1:8 666
urandom character special file 1:9 666
tty character special file 5:0 666
/proc/self/fd
/proc/self/fd/0
/proc/self/fd/1
/proc/self/fd/2
pts/ptmx
""",
    )
    result = run(
        "--user",
        "root",
        "--",
        "sh",
        "-c",
        "rm /dev/null; mknod /tmp/x c 1 3; mknod /dev/x c 1 3; ln -s x /dev/y; chmod 600 /dev/null",
    )
    check(result.status != 0, "a node was changed")
    equal("refusals", len(result.err.splitlines()), 5)
    equal(
        "they work",
        run(
            "--",
            "sh",
            "-c",
            "echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 9 /dev/urandom | wc -c; "
            "echo x > /dev/full || echo full",
        ).lines,
        ["3", "9", "full"],
    )


@case
def host_files() -> None:
    "nothing of the host's but /usr: no /sys, no homes, no /var, no secrets of /etc"
    marker = folder("marker") / "secret"
    marker.write_text("secret")
    os.chmod(place(), 0o755)
    result = run(
        "--", "sh", "-c", f"ls -A /home /root /var /opt /srv /media /boot /sys /work /mnt {marker} 2>/dev/null"
    )
    os.chmod(place(), 0o700)
    equal(
        "folders",
        result.text,
        "/home:\nsandbox\n\n/mnt:\nuser-data\n\n/opt:\n\n/root:\n\n/srv:\n\n/var:\ncache\nlib\nlog\nrun\ntmp\n",
    )
    etc = set(run("--", "ls", "-A", "/etc").lines)
    check({"passwd", "group", "hosts", "nsswitch.conf", "resolv.conf"} <= etc, f"/etc holds {sorted(etc)}")
    check(
        not etc
        & {"shadow", "gshadow", "sudoers", "sudoers.d", "ssh", "hostname", "machine-id", "fstab", "crontab", "subuid"},
        f"/etc holds {sorted(etc)}",
    )
    equal("users", run("--", "cut", "-d:", "-f1", "/etc/passwd").lines, ["root", "nobody"])
    equal(
        "/",
        set(run("--", "ls", "-A", "/").lines) - {"lib32", "lib64", "libx32"},
        {
            "bin",
            "dev",
            "etc",
            "home",
            "lib",
            "mnt",
            "opt",
            "proc",
            "root",
            "run",
            "sbin",
            "srv",
            "tmp",
            "usr",
            "var",
            "workspace",
        },
    )


@case
def private_host_files() -> None:
    "what only root may read in the host's /usr is not readable as root of a sandbox"
    secret = pathlib.Path("/usr/share/hutch-test-secret")
    try:
        secret.write_text("secret")
    except OSError as error:
        raise Skipped(f"/usr can't be written: {error}") from None
    try:
        for mode, expected in ((0o600, b""), (0o604, b"secret")):
            secret.chmod(mode)
            equal(f"mode {mode:o}", run("--user", "root", "--", "cat", str(secret)).out, expected)
    finally:
        secret.unlink()


@case
def descriptors() -> None:
    "only 0 to 2 are open, whatever the caller leaves open"
    leaks = [os.open("/", os.O_RDONLY) for _ in range(6)] + [os.dup(1)]
    for fd in leaks:
        os.set_inheritable(fd, True)
    process = start_payload("descriptors", close_fds=False)
    equal("open", finish(process).lines, ["0", "1", "2"])
    for fd in leaks:
        os.close(fd)


@case
def working_folder() -> None:
    "no working folder leads out through a descriptor of init's (CVE-2024-21626)"
    for user in ("nobody", "root"):
        for path in [f"/proc/self/fd/{fd}" for fd in range(3, 24)] + [
            "/proc/self/cwd",
            "/proc/self/root",
            "/proc/self/task/1/cwd",
        ]:
            result = payload("folder", ".", options=("--user", user, "--workdir", path))
            check(
                result.status in (125, 126, 127) or "cgroup.procs" not in result.lines,
                f"{user}: {path} is a cgroup of the host's",
            )
            check(
                "payload" in result.lines or result.status != 0, f"{user}: {path} is a folder with {result.lines[:5]}"
            )


@case
def command_through_descriptor() -> None:
    "no command is reached through a descriptor of init's, and init's own program can't be written (CVE-2019-5736)"
    init = pathlib.Path(HUTCH).with_name("hutch-init")
    before = init.read_bytes()
    for path in ["/proc/self/exe"] + [f"/proc/self/fd/{fd}" for fd in range(3, 12)]:
        result = run("--user", "root", "--root", payload_root(), "--timeout", "10s", "--", path)
        check(result.status not in (0, 124), f"{path} was executed: {result.status}")
    check(init.read_bytes() == before, "init's program was changed")


@case
def terminal() -> None:
    "no controlling terminal, although the caller has one"
    master, slave = os.openpty()
    process = start_payload("attempts", stdin=slave, preexec_fn=take_terminal)
    equal("tty", finish(process).numbers["tty"], errno.ENXIO)
    os.close(master)
    os.close(slave)


@case
def host_name() -> None:
    "the host name is its own"
    before = socket.gethostname()
    equal(
        "inside",
        run("--user", "root", "--", "sh", "-c", "hostname; hostname evil 2>/dev/null; hostname").text,
        "sandbox\nsandbox\n",
    )
    equal("outside", socket.gethostname(), before)


@case
def network() -> None:
    "loopback works, and there is nothing else: no interface, no route, no host"
    equal("loopback", payload("loopback").numbers, {"ipv4": 0, "ipv6": 0})
    interfaces = [line.split(":")[0].strip() for line in payload("file", "/proc/net/dev").lines[2:]]
    equal("interfaces", interfaces, ["lo"])
    for address in ("1.1.1.1", "169.254.169.254", "10.0.0.1", "192.168.0.1", "2606:4700:4700::1111", "fe80::1"):
        error = payload("connect", address, "80").numbers["connect"]
        check(
            error in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EINVAL),
            f"{address}: {errno.errorcode.get(error, error)}",
        )


@case
def host_services() -> None:
    "a service of the host's is not reached, over loopback, its own address or an abstract socket"
    with socket.create_server(("0.0.0.0", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind("\0hutch-test-abstract")
        local.listen()
        port = server.getsockname()[1]
        equal("127.0.0.1", payload("connect", "127.0.0.1", str(port)).numbers["connect"], errno.ECONNREFUSED)
        script = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0hutch-test-abstract')"
        contains("abstract socket", run("--", "python3", "-c", script).err, "ConnectionRefusedError")


@case
def keyring() -> None:
    "the session keyring is fresh, not the caller's"
    process, pid = sandboxed("keyring")
    first = host_file(pid, "uid_map").split()[1]
    users = pathlib.Path("/proc/key-users").read_text().splitlines() if os.path.exists("/proc/key-users") else None
    end(process)
    if users is None:
        raise Skipped("no /proc/key-users on this kernel")
    own = [line.split() for line in users if line.split(":")[0].strip() == first]
    check(own and int(own[0][2].split("/")[0]) >= 1, f"uid {first} of the sandbox has no key: {users}")


@case
def core_dumps() -> None:
    "no core dumps, and the signal that would make one only ends the command"
    limits = {line[:25].strip(): line[25:].split() for line in payload("file", "/proc/self/limits").lines}
    # With 0 a core_pattern that pipes would start its program all the same; 1 is what forbids it, and it stays 1.
    equal("core size", limits["Max core file size"][:2], ["1", "1"])
    raised = run("--", "python3", "-c", "import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0))")
    check(raised.status != 0, "the core limit can be changed")
    result = run("--", "sh", "-c", "kill -ABRT $$")
    equal("status", result.status, 128 + signal.SIGABRT)


@case
def neighbours() -> None:
    "two sandboxes share neither locks, nor processes, nor shared memory, nor a network"
    options = ("--dir", payload_dir(), "--", "/payload/payload")
    one = start(*options, "lock", "/usr/bin/env", "neighbour-1")
    two = start(*options, "lock", "/usr/bin/env", "neighbour-2")
    for process in (one, two):
        equal("lock on a file of /usr", process.stdout.readline(), b"lock 0\n")
    with open("/usr/bin/env", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    pids = [payloads_with(f"neighbour-{i}")[0] for i in (1, 2)]
    for name in NAMESPACES:
        check(len({os.readlink(f"/proc/{pid}/ns/{name}") for pid in pids}) == 2, f"they share {name}")
    result = run("--", "sh", "-c", "ls /proc | grep -c '^[0-9]'; ipcs -m | grep -c 0x; ls -A /dev/shm /tmp /workspace")
    equal("what a third one sees", result.lines[1:], ["0", "/dev/shm:", "", "/tmp:", "", "/workspace:"])
    check(int(result.lines[0]) <= 4, f"{result.lines[0]} processes")
    end(one, two)


@case
def init_survives() -> None:
    "a command can't end PID 1, not even as root, and does not keep zombies"
    result = run("--user", "root", "--", "sh", "-c", "kill -9 1; kill -TERM 1; kill -STOP 1; (sleep 0 &); echo alive")
    equal("result", (result.status, result.out), (0, b"alive\n"))


@case
def cgroup_is_out_of_reach() -> None:
    "there is no cgroup file system, and the path of the own cgroup tells nothing"
    text = run("--", "cat", "/proc/self/cgroup").text
    for line in text.splitlines():
        check("hutch" not in line and "/.." not in line, f"/proc/self/cgroup: {text!r}")
    check(
        not any("cgroup" in line.split()[2] for line in run("--", "cat", "/proc/self/mounts").lines),
        "a cgroup is mounted",
    )


if __name__ == "__main__":
    main()
