#!/usr/bin/env python3
"""hutch run behaves like the command it runs: signals, job control, and the terminal it was started from."""

import os
import pty
import select
import signal
import subprocess
import termios

from harness import (
    HUTCH,
    SLOWNESS,
    Failed,
    case,
    environment,
    equal,
    eventually,
    finish,
    main,
    payload,
    payload_words,
    payloads_with,
    quick,
    start,
    start_payload,
    take_terminal,
    wait_ready,
)


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


if __name__ == "__main__":
    main()
