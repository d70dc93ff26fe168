#!/usr/bin/env python3
"""hutch run behaves like the command it runs: status, streams, environment, signals."""

import hashlib
import json
import os
import pathlib
import pty
import re
import resource
import select
import signal
import shutil
import subprocess
import termios
import time

from harness import (
    HUTCH,
    NOBODY,
    SLOWNESS,
    Failed,
    case,
    check,
    contains,
    environment,
    equal,
    eventually,
    finish,
    folder,
    main,
    payload,
    payload_words,
    payloads_with,
    quick,
    run,
    start,
    start_payload,
    state,
    take_terminal,
    wait_ready,
)

MIB = 1 << 20


@case
def exit_codes() -> None:
    "exit codes pass through, 0 to 255"
    for code in (0, 1, 3, 124, 125, 126, 127, 128, 255):
        result = payload("exit", str(code))
        equal(f"exit {code}", (result.status, result.out, result.err), (code, b"", ""))


@case
def signals_as_status() -> None:
    "a command that a signal ended gives 128+n"
    for number in (signal.SIGHUP, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGRTMIN):
        result = payload("kill", str(int(number)))
        equal(f"signal {number}", (result.status, result.err), (128 + number, ""))


@case
def missing_command() -> None:
    "a command that does not exist is 127, and is named"
    result = run("--", "no-such-command")
    equal("status", result.status, 127)
    equal("message", result.err, "hutch: no-such-command: command not found in the sandbox\n")
    result = run("--", "/usr/bin/no-such-command")
    equal("status", result.status, 127)
    contains("message", result.err, "hutch: /usr/bin/no-such-command: no such file in the sandbox")


@case
def not_executable() -> None:
    "a command that can't be executed is 126, and is named"
    for path, why in (("/etc/passwd", "Permission denied"), ("/usr/bin", "Permission denied"), ("/etc", "denied")):
        result = run("--", path)
        equal(f"{path}: status", result.status, 126)
        contains(f"{path}: message", result.err, f"hutch: {path}: ", why)
    result = run("--", "sh", "-c", "echo junk > /tmp/junk; chmod +x /tmp/junk; exec /tmp/junk")
    check(result.status != 0, "a file of junk was executed")


@case
def json_result() -> None:
    "--json: one valid object with output, status, counts and usage"
    result = run("--json", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    told = json.loads(result.out)
    equal("status", result.status, 7)
    equal("stderr", result.err, "")
    for name, value in {
        "exit_code": 7,
        "timed_out": False,
        "limit": None,
        "truncated": False,
        "stdout": "out\n",
        "stdout_bytes": 4,
        "stderr": "err\n",
        "stderr_bytes": 4,
    }.items():
        equal(name, told[name], value)
    check(0 < told["ready_ms"] < told["total_ms"], f"times {told['ready_ms']} and {told['total_ms']}")
    check(told["duration_ms"] > 0, "no duration")
    check(told["usage"]["memory_peak_bytes"] > 0 and told["usage"]["processes_peak"] >= 2, f"usage {told['usage']}")
    equal("landlock", set(told["landlock"]), {"signals", "abstract_sockets"})
    check({"clone", "root", "proc", "filter", "landlock"} <= told["steps_us"].keys(), f"steps {told['steps_us']}")


@case
def json_truncated() -> None:
    "--json: output beyond 1 MiB is cut and counted, at a character's boundary"
    told = json.loads(payload("bytes", str(5 * MIB), options=("--json",)).out)
    equal("truncated", told["truncated"], True)
    equal("true count", told["stdout_bytes"], 5 * MIB)
    equal("kept", told["stdout"], "x" * MIB)
    told = json.loads(payload("bytes", str(MIB), options=("--json",)).out)
    equal("exactly 1 MiB", (told["truncated"], len(told["stdout"])), (False, MIB))
    told = json.loads(run("--json", "--", "python3", "-c", "print('\u20ac' * 400000, end='')").out)
    equal("cut before half a character", (told["truncated"], told["stdout_bytes"]), (True, 1200000))
    equal("whole characters", told["stdout"], "\u20ac" * (MIB // 3))


@case
def json_bytes() -> None:
    "--json: bytes that are not UTF-8 are replaced, control characters are escaped"
    result = run("--json", "--", "printf", r'a\377b\300\200\355\240\200\303\n\0\033"\\')
    told = json.loads(result.out)
    equal("stdout", re.sub("\ufffd+", "?", told["stdout"]), 'a?b?\n\0\x1b"\\')
    equal("true count", told["stdout_bytes"], 14)
    check(b"\xff" not in result.out and b"\0" not in result.out and b"\x1b" not in result.out, "raw bytes in the JSON")


@case
def json_not_started() -> None:
    "--json: a command that is not there, and a request that can't be met"
    told = json.loads(run("--json", "--", "no-such-command").out)
    equal("exit code", told["exit_code"], 127)
    result = run("--json", "--memory", "1", "--", "true")
    equal("status", result.status, 125)
    equal("error code", json.loads(result.out)["error"]["code"], "invalid")
    contains("message", json.loads(result.out)["error"]["message"], "memory must be at least 2 MiB")
    contains("stderr", result.err, "hutch: memory must be at least 2 MiB")


@case
def stats() -> None:
    "--stats: times, steps, CPU, memory, processes and the limit, on stderr only"
    result = run("--stats", "--", "echo", "hi")
    equal("output", (result.status, result.out), (0, b"hi\n"))
    contains(
        "stderr",
        result.err,
        " ms in all, ",
        " ms until the sandbox was ready, ",
        " ms in the command\n",
        "cloning into new namespaces\n",
        "mounting /proc\n",
        "loading the seccomp filter\n",
        "hutch: CPU ",
        "memory peak ",
        "processes peak ",
        "hutch: limit reached: none\n",
    )


@case
def binary_streams() -> None:
    "5 MB of random bytes go in and come out unchanged"
    data = os.urandom(5_000_000)
    result = payload("copy", stdin=data)
    equal("status", result.status, 0)
    equal("sha256", hashlib.sha256(result.out).hexdigest(), hashlib.sha256(data).hexdigest())
    equal("stderr", result.err, "5000000\n")


@case
def separate_streams() -> None:
    "stdout and stderr are two streams, each whole and in order"
    script = "i=0; while [ $i -lt 20000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done"
    result = run("--", "sh", "-c", script)
    equal("stdout", result.lines, [f"o{i}" for i in range(20000)])
    equal("stderr", result.err.splitlines(), [f"e{i}" for i in range(20000)])


@case
def unread_stdin() -> None:
    "a command that does not read its input ends all the same"
    result = run("--", "head", "-c", "10", stdin=b"0123456789" * 500_000)
    equal("result", (result.status, result.out), (0, b"0123456789"))
    result = payload("exit", "3", stdin=b"x" * 5_000_000)
    equal("status", result.status, 3)


@case
def quiet_stdin() -> None:
    "a command ends although nobody closes its input"
    process = start_payload("exit", "4")
    equal("status", process.wait(20), 4)
    finish(process)


@case
def closed_stdin() -> None:
    "with stdin closed the command reads nothing"
    result = run("--", "sh", "-c", "cat; echo end", preexec_fn=lambda: os.close(0))
    equal("result", (result.status, result.out, result.err), (0, b"end\n", ""))


@case
def closed_outputs() -> None:
    "with stdout or stderr closed nothing of Hutch's own gets their numbers"
    for fd, ours in ((1, "err"), (2, "out")):
        result = run("--", "sh", "-c", "echo out; echo err >&2; exit 3", preexec_fn=lambda fd=fd: os.close(fd))
        equal(f"{fd} closed", (result.status, result.out.decode() + result.err), (3, f"{ours}\n"))
    result = run("--", "sh", "-c", "exit 4", preexec_fn=lambda: [os.close(fd) for fd in (0, 1, 2)])
    equal("all closed", result.status, 4)


@case
def reader_goes_away() -> None:
    "a reader that goes away ends the command with SIGPIPE, quickly"
    began = time.monotonic()
    process = start("--", "yes")
    equal("first line", process.stdout.readline(), b"y\n")
    process.stdout.close()
    equal("status", process.wait(20), 128 + signal.SIGPIPE)
    quick("it", time.monotonic() - began, 5)
    process.stdin.close()
    equal("stderr", process.stderr.read(), b"")
    process.stderr.close()


@case
def stderr_reader_goes_away() -> None:
    "the same for stderr, while stdout goes on"
    process = start("--", "sh", "-c", "trap '' PIPE; while echo line >&2; do sleep 0.01; done; echo refused")
    equal("first line", process.stderr.readline(), b"line\n")
    process.stderr.close()
    process.stderr = None
    equal("stdout", finish(process).out, b"refused\n")


@case
def slow_reader() -> None:
    "a slow reader loses no byte"
    process = start_payload("lines", "300000")
    data = b""
    while part := os.read(process.stdout.fileno(), 200_000):
        data += part
        if len(data) < MIB:
            time.sleep(0.02)
    equal("status", finish(process).status, 0)
    equal("lines", data, b"".join(b"%d\n" % i for i in range(300000)))


@case
def late_reader() -> None:
    "what the command wrote last waits for a reader, whatever the terminal's window does meanwhile"
    process = start_payload("bytes", "190000", "late-reader")
    # Before it has started there is none of it either.
    eventually("the command writes", lambda: bool(select.select([process.stdout], [], [], 0)[0]))
    eventually("the command has ended", lambda: not payloads_with("late-reader"))
    for number in (signal.SIGWINCH, signal.SIGUSR1, signal.SIGCONT):
        process.send_signal(number)
        time.sleep(0.05)
    result = finish(process)
    equal("bytes", len(result.out), 190000)
    equal("status", result.status, 0)


@case
def environment_from_nothing() -> None:
    "the environment is built from nothing"
    result = run("--", "/usr/bin/env", env=environment(SECRET="x", LD_PRELOAD="", TERM="xterm"))
    equal("nobody's", sorted(result.lines), ["HOME=/home/sandbox", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"])
    result = run("--user", "root", "--", "/usr/bin/env")
    contains("root's", result.text, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n")


@case
def environment_named() -> None:
    "--env NAME=value, NAME, NAME= and a NAME that is not set"
    result = run(
        "--env",
        "A=1",
        "--env=B",
        "--env",
        "C=",
        "--env",
        "D",
        "--env",
        "E=x=y z\n",
        "--",
        "/usr/bin/env",
        "-0",
        env=environment(B="two", SECRET="x"),
    )
    got = dict(pair.split("=", 1) for pair in result.text.split("\0") if pair)
    equal(
        "named", {name: got.get(name) for name in "ABCDE"}, {"A": "1", "B": "two", "C": "", "D": None, "E": "x=y z\n"}
    )
    check("SECRET" not in got, "SECRET got in")


@case
def environment_replaced() -> None:
    "--env replaces what Hutch itself sets, and the last of two counts"
    result = run("--env", "HOME=/tmp", "--env", "A=1", "--env", "A=2", "--", "/usr/bin/env")
    equal("HOME", [line for line in result.lines if line.startswith("HOME=")], ["HOME=/tmp"])
    equal("A", [line for line in result.lines if line.startswith("A=")], ["A=2"])
    result = run("--env", "PATH=/nowhere", "--", "true")
    equal("PATH is searched", result.status, 127)


@case
def workdir() -> None:
    "--workdir: /workspace, any other folder, and one that is not there"
    equal("default", run("--", "pwd").text, "/workspace\n")
    equal("other", run("--workdir", "/usr/bin", "--", "pwd").text, "/usr/bin\n")
    result = run("--workdir", "/no/such", "--", "pwd")
    equal("output", result.out, b"")
    check(result.status in (125, 127), f"status {result.status}")
    contains("message", result.err, "/no/such")


@case
def users() -> None:
    "--user: nobody, root, a number"
    for user, uid in (("nobody", NOBODY), ("root", 0), ("1000", 1000), ("65535", 65535)):
        result = run("--user", user, "--", "sh", "-c", "id -u; id -g; id -G")
        equal(user, result.lines, [str(uid)] * 3)


@case
def users_own_their_folders() -> None:
    "whoever the command runs as can write to its working folder, home and outputs"
    for user in ("nobody", "root", "1000"):
        result = run("--user", user, "--", "sh", "-c", "touch /workspace/x /home/sandbox/x /mnt/user-data/outputs/x")
        equal(user, (result.status, result.err), (0, ""))


def unlimited_stack() -> None:
    resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@case
def long_arguments() -> None:
    "100 KB in one argument and 900 KB in all arrive whole"
    equal("one", payload("arguments", "x" * 100_000).text, "1 100000\n")
    result = payload("arguments", *["x" * 90_000] * 10, preexec_fn=unlimited_stack)
    equal("ten", result.text, "10 900000\n")


@case
def too_long_arguments() -> None:
    "2 MiB of arguments are a clear error"
    result = payload("arguments", *["x" * 100_000] * 21, preexec_fn=unlimited_stack)
    equal("status", result.status, 125)
    contains("message", result.err, "hutch: the arguments and the environment may be 1024 KiB together")


@case
def long_arguments_and_failure() -> None:
    "with long arguments the reason of a failed creation is told just as without"
    place = folder("long")
    for words in ((), ("x" * 90_000,) * 9):
        result = run("--dir", f"{place}:/usr/no-such-folder", "--", "true", *words, preexec_fn=unlimited_stack)
        equal("status", result.status, 125)
        contains(f"message with {len(words)} arguments", result.err, "step attach", "/usr/no-such-folder")


@case
def interrupt() -> None:
    "SIGINT, SIGTERM, SIGHUP and SIGQUIT to hutch reach the command"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        process = start_payload("sleep", "60")
        wait_ready(process)
        process.send_signal(number)
        result = finish(process)
        equal(f"signal {number}", (result.status, result.err), (128 + number, ""))


@case
def signals_pass() -> None:
    "SIGUSR1, SIGUSR2 and SIGINT can be handled by the command; a pipeline gets them all"
    process = start_payload("signals")
    wait_ready(process)
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
        equal("received", process.stdout.readline(), b"%d\n" % number)
    equal("status", finish(process).status, 0)
    process = start(
        "--",
        "sh",
        "-c",
        "trap 'wait; exit 9' USR1; (trap 'echo below; exit' USR1; echo ready; "
        "while :; do sleep 0.05; done) & while :; do sleep 0.05; done",
    )
    wait_ready(process)
    process.send_signal(signal.SIGUSR1)
    result = finish(process)
    equal("the whole group", (result.status, result.out), (9, b"below\n"))


@case
def ignored_signals() -> None:
    "what the caller ignores, as nohup does, does not reach the command"
    process = start_payload("sleep", "1", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_ready(process)
    process.send_signal(signal.SIGHUP)
    equal("status", finish(process).status, 0)


@case
def ignored_children() -> None:
    "a caller that ignores SIGCHLD gets its result like any other"
    result = payload("exit", "6", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    equal("result", (result.status, result.err), (6, ""))
    quick("it", result.seconds, 5)


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(") ", 1)[1][0]


@case
def stop_and_continue() -> None:
    "SIGTSTP stops hutch and the command, SIGCONT lets both go on"
    process = start_payload("tick", "1000", "stop-and-continue")
    equal("ticks", process.stdout.readline(), b"0\n")
    inner = payloads_with("stop-and-continue")
    equal("one payload", len(inner), 1)
    process.send_signal(signal.SIGTSTP)
    eventually("hutch is stopped", lambda: state_of(process.pid) == "T")
    eventually("the command is stopped", lambda: state_of(inner[0]) == "T")
    process.send_signal(signal.SIGCONT)
    eventually("the command goes on", lambda: state_of(inner[0]) in "SR")
    process.send_signal(signal.SIGTERM)
    result = finish(process)
    equal("status", result.status, 128 + signal.SIGTERM)
    equal("nothing is lost", result.lines, [str(i) for i in range(1, len(result.lines) + 1)])


def in_terminal(*words: str) -> tuple[subprocess.Popen, int]:
    """hutch run WORDS... as the foreground of a terminal of its own, and the terminal's other end."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [HUTCH, "run", *words], stdin=slave, stdout=slave, stderr=slave, env=environment(), preexec_fn=take_terminal
    )
    os.close(slave)
    return process, master


def read_until(master: int, word: bytes, seconds: float = 20) -> bytes:
    data = b""
    while word not in data:
        if not select.select([master], [], [], seconds * SLOWNESS)[0]:
            raise Failed(f"the terminal shows {data!r}, not {word!r}")
        try:
            data += os.read(master, 4096)
        except OSError:
            break
    return data


@case
def ctrl_c() -> None:
    "Ctrl-C in a terminal ends the command with 130"
    process, master = in_terminal(*payload_words("sleep", "60"))
    read_until(master, b"ready")
    os.write(master, b"\x03")
    equal("status", process.wait(20), 130)
    os.close(master)


@case
def typing() -> None:
    "what is typed arrives line by line, and Ctrl-D ends it"
    process, master = in_terminal("--", "sh", "-c", "while read x; do echo got-$x; done; echo over")
    os.write(master, b"one\n")
    read_until(master, b"got-one")
    os.write(master, b"\x04")
    read_until(master, b"over")
    equal("status", process.wait(20), 0)
    os.close(master)


@case
def background() -> None:
    "in the background of a terminal hutch is not stopped for reading it"
    master, slave = pty.openpty()
    script = f"set -m; {HUTCH} run -- sh -c 'sleep 0.2; echo done' & wait $!; echo status $?"
    process = subprocess.Popen(
        ["bash", "-c", script],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        preexec_fn=take_terminal,
    )
    os.close(slave)
    os.write(master, b"typed\n")
    try:
        out = process.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failed("it was stopped") from None
    equal("output", out, b"done\nstatus 0\n")
    os.close(master)


@case
def terminal_unchanged() -> None:
    "the terminal is as it was: its settings, and no typed-in characters of the command's"
    process, master = in_terminal("--", "sh", "-c", "stty raw -echo; stty sane; echo ready")
    before = termios.tcgetattr(master)
    read_until(master, b"ready")
    process.wait(20)
    equal("settings", termios.tcgetattr(master), before)
    os.close(master)


@case
def full_disk_outside() -> None:
    "output that can't be written is told, with 125"
    with open("/dev/full", "wb") as full:
        result = run("--", "echo", "hi", stdout=full)
    equal("status", result.status, 125)
    contains("message", result.err, "hutch: writing standard output: No space left on device")


@case
def timeout() -> None:
    "--timeout ends the command with 124 and says so"
    result = payload("sleep", "60", options=("--timeout", "300ms"))
    equal("status", result.status, 124)
    equal("message", result.err, "hutch: the time limit of 0.3 s was reached (--timeout)\n")
    check(result.seconds >= 0.3, f"took only {result.seconds} s")
    quick("it", result.seconds, 3)
    told = json.loads(payload("sleep", "60", options=("--json", "--timeout", "0.2")).out)
    equal("json", (told["exit_code"], told["timed_out"], told["limit"], told["stdout"]), (124, True, "time", "ready\n"))


@case
def timeout_not_reached() -> None:
    "a command that is faster than its timeout is not touched"
    equal("status", payload("exit", "5", options=("--timeout", "10s")).status, 5)


@case
def timeout_daemon() -> None:
    "--timeout also ends a daemonised grandchild that ignores every signal"
    result = payload("daemon", "stay", "timeout-daemon", options=("--timeout", "300ms"))
    equal("result", (result.status, result.out), (124, b"ready\n"))
    equal("processes", payloads_with("timeout-daemon"), [])


@case
def low_caller_limits() -> None:
    "a caller with fewer open files or a smaller file size than asked for is told so, or served"

    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    result = run("--", "sh", "-c", "ulimit -n", preexec_fn=few_files)
    # Root that may raise its own limit does so; root without CAP_SYS_RESOURCE passes on what it has.
    may_raise = int(re.search(r"CapEff:\s*(\w+)", pathlib.Path("/proc/self/status").read_text())[1], 16) >> 24 & 1
    equal("defaults work", (result.status, result.text), (0, "1024\n" if may_raise else "256\n"))
    result = run("--open-files", "2000", "--", "true", preexec_fn=few_files)
    if result.status != 0:
        equal("status", result.status, 125)
        contains("message", result.err, "--open-files")


@case
def not_root() -> None:
    "a caller without root rights gets 125 and the line to type"
    program = folder("not-root") / "hutch"
    shutil.copy(HUTCH, program)
    os.chmod(program.parents[1], 0o755)
    command = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", str(program), "run", "true"]
    result = subprocess.run(command, capture_output=True, env=environment(), timeout=20, check=False)
    os.chmod(program.parents[1], 0o700)
    equal("status", result.returncode, 125)
    equal("output", result.stdout, b"")
    equal(
        "message",
        result.stderr.decode(),
        "hutch: making a sandbox needs root (what runs in it has none): sudo hutch run ...\n",
    )


@case
def default_state() -> None:
    "--state, HUTCH_STATE and a state folder that is made when missing"
    made = folder("states") / "new"
    result = run("--state", str(made), "--", "echo", "hi")
    equal("result", (result.status, result.out), (0, b"hi\n"))
    equal("mode", oct(made.stat().st_mode & 0o7777), "0o700")
    equal("HUTCH_STATE", (run("--", "true").status, os.listdir(state())), (0, ["layers"]))


if __name__ == "__main__":
    main()
