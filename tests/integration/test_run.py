#!/usr/bin/env python3
"""hutch run behaves like the command it runs: status, environment, arguments, users, times; --json and --stats."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess

from harness import (
    HUTCH,
    NOBODY,
    case,
    check,
    contains,
    environment,
    equal,
    folder,
    main,
    payload,
    payloads_with,
    quick,
    run,
    state,
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
