#!/usr/bin/env python3
"""hutch run behaves like the command it runs: standard input, output and error, and who reads and writes them."""

import hashlib
import os
import select
import signal
import time

from harness import (
    case,
    contains,
    equal,
    eventually,
    finish,
    main,
    payload,
    payloads_with,
    quick,
    run,
    start,
    start_payload,
)

MIB = 1 << 20


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
def full_disk_outside() -> None:
    "output that can't be written is told, with 125"
    with open("/dev/full", "wb") as full:
        result = run("--", "echo", "hi", stdout=full)
    equal("status", result.status, 125)
    contains("message", result.err, "hutch: writing standard output: No space left on device")


if __name__ == "__main__":
    main()
