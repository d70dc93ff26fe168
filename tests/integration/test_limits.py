#!/usr/bin/env python3
"""Every limit ends or refuses what goes beyond it, inside; status, message and JSON name it; the host is unharmed."""

import ctypes
import errno
import json
import os
import pathlib
import resource
import signal
import time

from harness import (
    SANITIZED,
    Outcome,
    case,
    check,
    contains,
    equal,
    eventually,
    finish,
    folder,
    main,
    payload,
    payloads_with,
    quick,
    run,
    start,
    start_payload,
    traces,
    wait_ready,
)

MIB = 1 << 20
KILLED = 128 + signal.SIGKILL


def limited(
    what: str,
    words: tuple[str, ...],
    options: tuple[str, ...],
    status: int,
    message: str,
    limit: str | None,
    **more: object,
) -> Outcome:
    """The payload ends with this status and this line on stderr, and --json names this limit. Returns the first run."""
    result = payload(*words, options=options, **more)
    equal(f"{what}: status", result.status, status)
    equal(f"{what}: stderr", result.err, f"hutch: {message}\n" if message else "")
    told = json.loads(payload(*words, options=("--json", *options), **more).out)
    equal(f"{what}: JSON", (told["exit_code"], told["limit"]), (status, limit))
    return result


@case
def memory() -> None:
    "memory: a command that eats more than it may is killed, and the limit is named"
    result = limited(
        "malloc",
        ("memory", "256"),
        ("--memory", "32M"),
        KILLED,
        "the memory limit of 32 MiB was reached (--memory)",
        "memory",
    )
    equal("output", result.out, b"")
    result = payload("memory", "48", options=("--memory", "64M"))
    equal("below the limit", (result.status, result.text), (0, "mmap 48 0\n"))


@case
def memory_of_a_child() -> None:
    "memory: a parent that would go on without its killed child goes with it"
    limited(
        "child",
        ("memory-in-child", "256"),
        ("--memory", "32M"),
        KILLED,
        "the memory limit of 32 MiB was reached (--memory)",
        "memory",
        seconds=20,
    )


@case
def memory_in_files() -> None:
    "memory: files count, so no file system of the sandbox takes more than the limit"
    for path in ("/tmp/x", "/dev/shm/x", "/workspace/x"):
        result = payload("fill", path, options=("--memory", "64M", "--disk", "32M"))
        if result.status == KILLED:
            contains(path, result.err, "the memory limit of 64 MiB was reached")
        else:
            equal(path, result.status, 1)
            check(int(result.text.split()[1]) <= 32 * MIB, f"{path} took {result.text}")


@case
def memory_peak() -> None:
    "memory: --json tells the peak"
    told = json.loads(payload("memory", "40", options=("--json", "--memory", "128M")).out)
    check(40 * MIB <= told["usage"]["memory_peak_bytes"] <= 60 * MIB, f"peak {told['usage']['memory_peak_bytes']}")


@case
def processes() -> None:
    "processes: forks and threads beyond the limit are refused with EAGAIN, and the limit is named"
    message = "the limit of 20 processes was reached (--processes)"
    for kind in ("fork", "thread"):
        result = limited(kind, (f"{kind}s", "100"), ("--processes", "20"), 1, message, "processes")
        equal(f"{kind}: how many", result.text, f"{kind} 19 {errno.EAGAIN}\n")
    equal("one is enough", payload("exit", "3", options=("--processes", "1")).status, 3)
    result = payload("forks", "1", options=("--processes", "1"))
    equal("and only one", (result.status, result.text), (1, f"fork 0 {errno.EAGAIN}\n"))


def processes_in(before: set[str]) -> int:
    """How many processes there are in the sandbox that came since, init included: the kernel's own count."""
    counts = [0]
    for path in traces() - before:
        try:
            counts.append(int(pathlib.Path(path, "pids.current").read_text(encoding="ascii")))
        except OSError:
            pass
    return max(counts)


@case
def fork_bomb() -> None:
    "processes: a fork bomb stays inside its limit, a neighbour and the host go on, and a timeout ends all of it"
    before = traces()
    process = start_payload("fork-bomb", "the-bomb", options=("--processes", "64", "--timeout", "3s"))
    eventually("the bomb has gone off", lambda: processes_in(before) >= 60, 3)
    for _ in range(5):
        check(processes_in(before) <= 65, f"{processes_in(before)} processes")
        began = time.monotonic()
        equal("a neighbour", payload("exit", "7").status, 7)
        quick("a neighbour", time.monotonic() - began, 3)
    result = finish(process)
    equal("result", (result.status, result.err), (124, "hutch: the time limit of 3 s was reached (--timeout)\n"))
    eventually("nothing is left of it", lambda: not payloads_with("the-bomb"))


@case
def fork_bomb_interrupted() -> None:
    "processes: killing hutch itself ends a fork bomb too"
    before = traces()
    process = start_payload("fork-bomb", "killed-bomb", options=("--processes", "64"))
    eventually("the bomb has gone off", lambda: processes_in(before) >= 60)
    process.kill()
    finish(process)
    eventually("nothing is left of it", lambda: not payloads_with("killed-bomb"))
    equal("the next run sweeps", payload("exit", "0").status, 0)


@case
def disk() -> None:
    "disk: one large file, or an allocation of it, ends with ENOSPC, and the limit is named"
    message = "the disk limit of 4 MiB was reached (--disk)"
    for path in ("/tmp/x", "/workspace/x", "/home/sandbox/x", "/run/x", "/mnt/user-data/outputs/x", "/dev/shm/x"):
        result = limited(path, ("fill", path), ("--disk", "4M"), 1, message, "disk")
        what, written, error = result.text.split()
        equal(path, (what, int(error)), ("write", errno.ENOSPC))
        check(3 * MIB < int(written) <= 4 * MIB, f"{path} took {written}")
    result = payload("allocate", "/tmp/x", str(8 * MIB), options=("--disk", "4M"))
    equal("fallocate", (result.status, result.text), (1, f"fallocate 0 {errno.ENOSPC}\n"))


@case
def disk_is_one() -> None:
    "disk: all writable folders share it"
    result = run(
        "--disk",
        "4M",
        "--",
        "sh",
        "-c",
        "for d in /tmp /workspace /run /dev/shm; do head -c 1500000 /dev/zero > $d/x; done",
    )
    check(result.status != 0 and "No space left" in result.err, f"{result.status} {result.err!r}")
    contains("message", result.err, "hutch: the disk limit of 4 MiB was reached (--disk)")


@case
def inodes() -> None:
    "disk: a million empty files end with ENOSPC, and the limit is named"
    result = limited(
        "files", ("files", "/tmp"), ("--disk", "4M"), 1, "the disk limit of 4 MiB was reached (--disk)", "disk"
    )
    _, made, error = result.text.split()
    equal("error", int(error), errno.ENOSPC)
    check(900 <= int(made) <= 1024, f"{made} files")


EXHAUST = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
count = 0
while libc.inotify_init1(0) >= 0:
    count += 1
print(count, errno.errorcode[ctypes.get_errno()])
context = ctypes.c_ulong(0)
print(libc.syscall(206, 128, ctypes.byref(context)), errno.errorcode[ctypes.get_errno()], flush=True)
sys.stdin.read()
"""


@case
def counters_are_its_own() -> None:
    "what the kernel counts per user (inotify) is the sandbox's own; what it counts per machine (AIO) is refused"
    most = int(pathlib.Path("/proc/sys/user/max_inotify_instances").read_text())
    process = start("--open-files", str(most + 100), "--", "python3", "-c", EXHAUST)
    count, error = process.stdout.readline().split()
    equal("inotify", (0 < int(count) <= most, error), (True, b"EMFILE"))
    equal("AIO", process.stdout.readline().split(), [b"-1", b"ENOSYS"])
    mine = ctypes.CDLL(None, use_errno=True).inotify_init1(0)
    check(mine >= 0, f"the host has no inotify left: {errno.errorcode.get(ctypes.get_errno())}")
    os.close(mine)
    equal("a neighbour's", run("--", "python3", "-c", "import ctypes; print(ctypes.CDLL(None).inotify_init1(0))").text, "3\n")
    equal("status", finish(process).status, 0)


HOLD = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0), backlog=200)
pairs, total = [], 0
try:
    for _ in range(60):
        client = socket.create_connection(server.getsockname())
        pairs += [client, server.accept()[0]]
        client.settimeout(0.2)
        for _ in range(64):
            total += client.send(b"x" * 65536)
except OSError:
    pass
for socket_ in pairs[::2]:
    socket_.settimeout(0.02)
    try:
        while True:
            total += socket_.send(b"x" * 65536)
    except OSError:
        pass
print(total >> 20)
"""


@case
def sockets_are_limited() -> None:
    "memory: what waits in TCP sockets counts too"
    result = run("--memory", "32M", "--", "python3", "-c", HOLD)
    check(result.status == KILLED or int(result.text) <= 64, f"{result.status}: {result.text} MiB in sockets")


@case
def writable_root_is_limited() -> None:
    "disk: a writable root counts too"
    result = payload("fill", "/x", options=("--user", "root", "--rw-root", "--disk", "4M"))
    equal("result", (result.status, result.text.split()[2]), (1, str(errno.ENOSPC)))
    contains("message", result.err, "hutch: the disk limit of 4 MiB was reached (--disk)")


@case
def file_size() -> None:
    "file size: a larger file ends the command, and the limit is named"
    result = limited(
        "write",
        ("fill", "/tmp/x"),
        ("--file-size", "1M"),
        128 + signal.SIGXFSZ,
        "the file size limit of 1 MiB was reached (--file-size)",
        "file_size",
    )
    equal("output", result.out, b"")
    shared = folder("file-size")
    payload("fill", "/workspace/x", options=("--file-size", "1M", "--dir", str(shared)))
    equal("in a host folder", (shared / "x").stat().st_size, MIB)


@case
def open_files() -> None:
    "open files: beyond the limit is EMFILE"
    for count in (16, 100):
        result = payload("open-many", options=("--open-files", str(count)))
        equal(f"{count}", (result.status, result.text), (1, f"open {count - 3} {errno.EMFILE}\n"))
    equal("the default", payload("open-many").text, f"open {1024 - 3} {errno.EMFILE}\n")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard >= 4096:
        equal(
            "more than the default",
            payload("open-many", options=("--open-files", "4096")).text,
            f"open 4093 {errno.EMFILE}\n",
        )


@case
def limits_can_not_be_raised() -> None:
    "a command can't raise its own limits, not even as root"
    for user in ("nobody", "root"):
        result = run(
            "--user",
            user,
            "--open-files",
            "64",
            "--file-size",
            "1M",
            "--",
            "bash",
            "-c",
            "ulimit -Hn 65; ulimit -Hf 2000; ulimit -Hc 1; ulimit -Hn; ulimit -Hf; ulimit -Hc",
        )
        equal(user, result.lines, ["64", "1024", "0"])


@case
def cpus() -> None:
    "CPUs: 0.5 of one burns about half of the time, 0.2 a fifth, and without the option there is no such limit"
    for share, least, most in (("0.5", 250, 650), ("0.2", 80, 300)):
        # On a busy machine not every try gets its share, and an emulated CPU takes the time it waits for one as used.
        tries = [int(payload("spin", "1000", options=("--cpus", share)).text)]
        while not least <= tries[-1] <= most and len(tries) < 3:
            tries.append(int(payload("spin", "1000", options=("--cpus", share)).text))
        check(least <= tries[-1] <= most, f"--cpus {share} used {tries} of 1000 ms")
    used = max(int(payload("spin", "300").text) for _ in range(3))
    check(used > 100, f"without a limit {used} of 300 ms")


@case
def time_limit() -> None:
    "time: a busy, a sleeping and a stubborn command all end at the limit"
    message = "the time limit of 0.4 s was reached (--timeout)"
    for words in (("sleep", "60"), ("stubborn",), ("spin", "60000"), ("daemon", "stay")):
        result = limited(" ".join(words), words, ("--timeout", "400ms"), 124, message, "time")
        check(result.seconds >= 0.4, f"{words} took only {result.seconds} s")
        quick(" ".join(words), result.seconds, 3)


@case
def endless_output() -> None:
    "output: without an end it neither fills memory nor outlives its time"
    process = start_payload("bytes", str(1 << 40), options=("--json", "--timeout", "1s"))
    told = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    finish(process)
    equal("result", (told["exit_code"], told["truncated"], len(told["stdout"])), (124, True, MIB))
    check(told["stdout_bytes"] > 4 * MIB, f"only {told['stdout_bytes']} bytes")
    check(usage.ru_maxrss < 65536 or SANITIZED, f"hutch itself took {usage.ru_maxrss} KiB")


@case
def daemons() -> None:
    "a daemonised grandchild that ignores every signal and holds the output open ends with its command"
    result = payload("daemon", "leave", "a-daemon", seconds=10)
    equal("result", (result.status, result.out), (0, b"ready\n"))
    quick("it", result.seconds, 3)
    eventually("it is gone", lambda: not payloads_with("a-daemon"))


@case
def stubborn() -> None:
    "a command that ignores SIGTERM goes on; killed, hutch takes it along"
    process = start_payload("stubborn", "a-stubborn-one")
    wait_ready(process)
    process.terminate()
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    equal("still there", (process.poll(), len(payloads_with("a-stubborn-one"))), (None, 1))
    process.kill()
    finish(process)
    eventually("it is gone", lambda: not payloads_with("a-stubborn-one"))
    equal("the next run sweeps", payload("exit", "0").status, 0)


@case
def limit_not_to_blame() -> None:
    "a limit that was met but not the reason is not named"
    equal("a plain failure", payload("exit", "1").err, "")
    told = json.loads(payload("exit", "1", options=("--json", "--processes", "1", "--disk", "64K")).out)
    equal("JSON", told["limit"], None)
    result = run(
        "--processes",
        "3",
        "--",
        "bash",
        "-c",
        "(sleep 0.01 & sleep 0.01 & sleep 0.01 & sleep 0.01 & wait) 2>/dev/null; exit 0",
    )
    equal("a success", (result.status, result.err), (0, ""))


@case
def stats_name_the_limit() -> None:
    "--stats names the limit"
    result = payload("memory", "256", options=("--stats", "--memory", "32M"))
    contains("stderr", result.err, "hutch: the memory limit of 32 MiB was reached", "hutch: limit reached: memory\n")


if __name__ == "__main__":
    main()
