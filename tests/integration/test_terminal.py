#!/usr/bin/env python3
"""hutch run --tty: a terminal inside that feels like the caller's own, and the caller's own as it was afterwards."""

import errno
import fcntl
import hashlib
import os
import pathlib
import re
import signal
import struct
import termios
import time

from harness import (
    HUTCH,
    NOBODY,
    case,
    check,
    contains,
    equal,
    eventually,
    finish,
    main,
    payload_words,
    payloads_with,
    portion,
    processes_with,
    run,
    start,
    status_of,
)
from terminals import Terminal

MIB = 1 << 20
PROMPT = b"$ "
NO_EDITING = ("bash", "--norc", "--noediting")


def shell(*options: str) -> Terminal:
    """bash at its first prompt."""
    terminal = Terminal("--tty", *options, "--", *NO_EDITING)
    terminal.expect(PROMPT)
    return terminal


def state_of(pid: int) -> str:
    return status_of(pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))["State"][0]


def unread_signals(pid: int) -> bool:
    """Does one wait to be taken?"""
    return int(status_of(pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))["ShdPnd"], 16) != 0


@case
def looks_real() -> None:
    "tty, stty, ps and stat see a terminal of the user's own, as large as the caller's, in its session's foreground"
    script = "tty; stty size; stat -c '%U %G %a' $(tty); ps -o tty=,pid=,pgid=,sid=,tpgid= -p $$; echo $TERM; : </dev/tty"
    terminal = Terminal("-t", "--", "sh", "-c", script, size=(31, 117))
    terminal.ends_with(0)
    lines = terminal.seen.decode().replace("\r\n", "\n").splitlines()
    equal("name, size, owner", lines[:3], ["/dev/pts/0", "31 117", "nobody tty 620"])
    equal("terminal, pid, group, session, foreground", lines[3].split(), ["pts/0"] + ["2"] * 4)
    equal("the rest", lines[4:], ["xterm"])


@case
def whose_it_is() -> None:
    "it belongs to the user that the command runs as"
    for user, number in (("root", "0"), ("1000", "1000")):
        terminal = Terminal("-t", "--user", user, "--", "sh", "-c", "stat -c %u $(tty); echo works >/dev/tty")
        terminal.ends_with(0)
        equal(user, terminal.seen, f"{number}\r\nworks\r\n".encode())


@case
def in_a_folder() -> None:
    "also with --root, with a disk image and with the tight filter"
    for options in (("--filter", "tight"), ("--disk", "400M", "--memory", "512M")):
        terminal = Terminal("-t", *options, "--", "tty")
        terminal.ends_with(0)
        equal(f"{options}", terminal.seen, b"/dev/pts/0\r\n")
    terminal = Terminal("-t", *payload_words("exit", "9"))
    terminal.ends_with(9)


@case
def only_when_asked() -> None:
    "without --tty there is no /dev/pts, no TERM, and no terminal to be had"
    script = "ls /dev/pts | wc -l; grep -c devpts /proc/mounts; echo [$TERM]; tty; python3 -c 'import pty; pty.openpty()'"
    result = run("--", "sh", "-c", script)
    equal("output", result.lines, ["0", "0", "[]", "not a tty"])
    contains("openpty", result.err, "out of pty devices")


@case
def its_own() -> None:
    "programs inside can make terminals of their own, 31 of them; the host's are not there"
    script = (
        "import os\n"
        "made = []\n"
        "try:\n"
        "    while True:\n"
        "        made += os.openpty()\n"
        "except OSError as error:\n"
        "    print(len(made) // 2, error.errno, len(os.listdir('/dev/pts')))\n"
    )
    terminal = Terminal("-t", "--", "python3", "-c", script)
    terminal.ends_with(0)
    equal("terminals, error, names", terminal.seen, f"31 {errno.ENOSPC} 33\r\n".encode())
    terminal = Terminal("-t", "--", "script", "-qec", "tty; exit 3", "/dev/null")
    terminal.ends_with(3)
    equal("script", terminal.seen, b"/dev/pts/1\r\n")


@case
def refused() -> None:
    "typing into it (TIOCSTI), the console's ioctls and other line disciplines are refused; nothing was typed"
    script = (
        "import fcntl, os, select\n"
        "for request in (0x5412, 0x541c, 0x5423, 0x5412 | 1 << 31):\n"
        "    try:\n"
        "        fcntl.ioctl(0, request, b'\\1\\0\\0\\0')\n"
        "        print(request, 'done')\n"
        "    except OSError as error:\n"
        "        print(hex(request), error.errno)\n"
        "print(select.select([0], [], [], 0.1)[0])\n"
    )
    for user in ("nobody", "root"):
        terminal = Terminal("-t", "--user", user, "--", "python3", "-c", script)
        terminal.ends_with(0)
        lines = terminal.seen.decode().splitlines()
        equal("refused", lines[:3], [f"{number} {errno.EPERM}" for number in ("0x5412", "0x541c", "0x5423")])
        equal("typed", lines[4], "[]")


@case
def resizing() -> None:
    "the caller's window changes: the one inside too, and its programs are told"
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])\n"
        "while True:\n"
        "    print(*os.get_terminal_size(), flush=True)\n"
        "    signal.sigwait([signal.SIGWINCH])\n"
    )
    terminal = Terminal("-t", "--", "python3", "-c", script, size=(10, 20))
    terminal.expect(b"20 10\r\n")
    terminal.resize(40, 100)
    terminal.expect(b"100 40\r\n")
    terminal.resize(5, 7)
    terminal.expect(b"7 5\r\n")
    terminal.answer(b"\x03", b"^C")
    terminal.ends_with(130)


@case
def keys() -> None:
    "Ctrl-C and Ctrl-\\ end the command with 130 and 131; Ctrl-D is its end of input"
    for key, status in ((b"\x03", 130), (b"\x1c", 131)):
        terminal = Terminal("-t", "--", "sh", "-c", "echo ready; exec sleep 60")
        terminal.expect(b"ready\r\n")
        terminal.type(key)
        terminal.ends_with(status)
    terminal = Terminal("-t", "--", "sh", "-c", "cat; echo over")
    terminal.answer(b"one\r", b"one\r\none\r\n")
    terminal.answer(b"\x04", b"over\r\n")
    terminal.ends_with(0)


@case
def job_control() -> None:
    "bash stops a job with Ctrl-Z, lists it, takes it to the foreground; Ctrl-C ends the job and not the shell"
    terminal = shell()
    terminal.type(b"sleep 61\r")
    terminal.expect(b"sleep 61\r\n")
    eventually("the job runs", lambda: payloads_with("61"))
    terminal.answer(b"\x1a", b"Stopped")
    equal("stopped", state_of(payloads_with("61")[0]), "T")
    terminal.answer(b"jobs\r", b"[1]+  Stopped")
    terminal.expect(PROMPT)
    terminal.answer(b"bg\r", b"sleep 61 &")
    terminal.expect(PROMPT)
    eventually("it runs in the background", lambda: state_of(payloads_with("61")[0]) in "SR")
    terminal.answer(b"fg\r", b"sleep 61\r\n")
    terminal.answer(b"\x03", PROMPT)
    eventually("the job has ended", lambda: not payloads_with("61"))
    terminal.answer(b"echo said-$?\r", b"said-130")
    terminal.answer(b"exit 17\r", b"exit\r\n")
    terminal.ends_with(17)


@case
def python() -> None:
    "python3 reads its lines from it, and a password from /dev/tty without showing it"
    terminal = Terminal("-t", "--", "python3", "-q")
    terminal.expect(b">>> ")
    terminal.answer(b"6*7\r", b"42\r\n>>> ")
    terminal.answer(b"import getpass; print(getpass.getpass().upper())\r", b"Password: ")
    shown = terminal.answer(b"secret\r", b"SECRET\r\n>>> ")
    check(b"secret" not in shown, f"the password was shown: {shown!r}")
    terminal.type(b"\x04")
    terminal.ends_with(0)


@case
def full_screen() -> None:
    "vim edits a file, less shows it, top draws: full-screen programs know size and keys"
    terminal = shell()
    terminal.answer(b"vim.tiny -u NONE file\r", b'"file"')
    terminal.type(b"ihello from vim\x1b:wq\r")
    terminal.expect(b"written")
    terminal.expect(PROMPT)
    terminal.answer(b"cat file\r", b"hello from vim\r\n")
    terminal.expect(PROMPT)
    terminal.answer(b"seq 1000 | less\r", b"\r\n22\r\n23\r\n:")
    terminal.answer(b"G", b"\r\n1000\r\n")
    terminal.answer(b"q", PROMPT)
    terminal.answer(b"top\r", b"load average")
    terminal.answer(b"q", PROMPT)
    terminal.answer(b"\x04", b"exit")
    terminal.ends_with(0)


@case
def paste() -> None:
    "a paste of a MiB arrives whole: byte by byte in raw mode, line by line otherwise"
    size = portion(MIB)
    data = os.urandom(size)
    script = f"stty raw -echo; echo ready; head -c {size} | sha256sum"
    terminal = Terminal("-t", "--", "sh", "-c", script)
    terminal.expect(b"ready")
    terminal.type(data)
    terminal.expect(hashlib.sha256(data).hexdigest().encode(), 60)
    terminal.ends_with(0)
    text = b"".join(b"%07d and some more of the line, so that it is one\n" % i for i in range(size // 50))
    terminal = Terminal("-t", "--", "sh", "-c", "stty -echo; echo ready; sha256sum")
    terminal.expect(b"ready")
    terminal.type(text + b"\x04")
    terminal.expect(hashlib.sha256(text).hexdigest().encode(), 60)
    terminal.ends_with(0)


@case
def echoed_paste() -> None:
    "a paste that the terminal echoes and the program prints again is lost nowhere, though nobody reads for a while"
    digits = bytes.maketrans(b"0123456789", b"abcdefghij")
    lines = [b"x%d" % i for i in range(portion(20000))]
    terminal = Terminal("-t", "--", "sh", "-c", "echo ready; tr a-z A-Z; echo -- over")
    terminal.expect(b"ready\r\n")
    os.set_blocking(terminal.master, False)
    left = b"\r".join(lines).translate(digits) + b"\r\x04"
    seen = b""
    while b"-- over\r\n" not in seen:
        try:
            left = left[os.write(terminal.master, left[:2000]) :] if left else left
        except BlockingIOError:
            pass
        new = terminal.read(20 if not left else 0.001)
        check(new or left, f"nothing more came after {seen[-100:]!r}")
        seen += new
    # The echo stands between, wherever the kernel found room for it.
    check(re.sub(rb"[^A-Z]", b"", seen) == b"".join(lines).translate(digits).upper(), "what tr wrote is another")
    terminal.ends_with(0)


@case
def much_output() -> None:
    "a MiB of output arrives as it was written, and its reader may be slow"
    count = portion(150000)
    terminal = Terminal("-t", "--", "sh", "-c", f"stty -opost; seq {count}; exit 5")
    expected = b"".join(b"%d\n" % i for i in range(1, count + 1))
    while len(terminal.seen) < len(expected):
        check(terminal.read(20), f"it stopped after {len(terminal.seen)} bytes")
    terminal.ends_with(5)
    check(terminal.seen == expected, "the output is another")


@case
def reopened() -> None:
    "a command that closes its terminal and opens it again is still seen"
    terminal = Terminal("-t", "--", "sh", "-c", "exec <&- >&- 2>&-; sleep 0.3; echo again >/dev/tty; exit 4")
    terminal.expect(b"again\r\n")
    terminal.ends_with(4)


@case
def window_closed() -> None:
    "when the window is closed, everything inside ends: the shell, its jobs, those that ignore it with the shell"
    terminal = shell()
    terminal.type(b"sleep 62 & (trap '' HUP TERM INT; sleep 63) & setsid sleep 64 & sleep 65\r")
    eventually("all of them run", lambda: all(payloads_with(word) for word in ("62", "63", "64", "65")))
    terminal.hang_up()
    terminal.ends_with(128 + signal.SIGHUP)
    equal("what is left", [word for word in ("62", "63", "64", "65") if payloads_with(word)], [])


@case
def ended_from_outside() -> None:
    "kill -TERM hangs up, which also a shell obeys; the caller's terminal is as it was"
    for words in (("sh", "-c", "printf '$ '; exec sleep 60"), NO_EDITING):
        terminal = Terminal("-t", "--", *words)
        terminal.expect(PROMPT)
        check(not terminal.settings_are_back(), "it is not raw")
        terminal.process.send_signal(signal.SIGTERM)
        terminal.ends_with(128 + signal.SIGHUP)
    terminal = Terminal("-t", "--", "sh", "-c", "trap '' HUP; printf '$ '; exec sleep 60")
    terminal.expect(PROMPT)
    terminal.process.send_signal(signal.SIGTERM)
    eventually("hung up", lambda: terminal.process.poll() is None and not unread_signals(terminal.process.pid))
    terminal.process.send_signal(signal.SIGTERM)
    terminal.ends_with(128 + signal.SIGTERM)


@case
def signals_passed_on() -> None:
    "other signals to hutch go to the job in the foreground"
    terminal = shell()
    terminal.type(b"sleep 66\r")
    eventually("the job runs", lambda: payloads_with("66"))
    terminal.process.send_signal(signal.SIGINT)
    eventually("the job has ended", lambda: not payloads_with("66"))
    terminal.expect(PROMPT)
    terminal.answer(b"echo still-here; exit\r", b"still-here\r\n")
    terminal.ends_with(0)


@case
def stopped_and_continued() -> None:
    "hutch itself is stopped: the terminal is the caller's again, and everything inside waits; SIGCONT undoes it"
    script = "echo ready; stty -echo; while read x; do stty size; done"
    terminal = Terminal("-t", "--", "sh", "-c", script)
    terminal.expect(b"ready\r\n")
    terminal.answer(b"x\r", b"24 80\r\n")
    inner = payloads_with(script)
    equal("one shell", len(inner), 1)
    terminal.process.send_signal(signal.SIGTSTP)
    eventually("hutch is stopped", lambda: state_of(terminal.process.pid) == "T")
    eventually("the shell is stopped", lambda: state_of(inner[0]) == "T")
    check(terminal.settings_are_back(), "the terminal is not the caller's")
    terminal.resize(11, 22)
    terminal.process.send_signal(signal.SIGCONT)
    eventually("it is raw again", lambda: not terminal.settings_are_back())
    terminal.answer(b"x\r", b"11 22\r\n")
    terminal.type(b"\x04")
    terminal.ends_with(0)


@case
def in_the_background() -> None:
    "started in the background it waits until it is in the foreground, as any program that wants the terminal"
    terminal = Terminal(program=NO_EDITING)
    terminal.expect(PROMPT if os.geteuid() else b"# ")
    terminal.answer(f"{HUTCH} run -t -- sh -c 'stty size; exit 6' &\r".encode(), b"&\r\n")
    terminal.type(b"wait\r")
    terminal.expect(b"Stopped")
    terminal.answer(b"fg\r", b"24 80\r\n")
    terminal.expect(b"# ")
    terminal.answer(b"echo status-$?\r", b"status-6\r\n")
    terminal.answer(b"exit\r", b"exit")
    terminal.process.wait(20)
    terminal.hang_up()


@case
def crashes() -> None:
    "the sandbox crashes, or hutch itself: the terminal is as it was"
    terminal = shell()
    inits = [
        pid
        for pid in processes_with("init")
        if status_of(pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))["PPid"] == str(terminal.process.pid)
    ]
    equal("one init", len(inits), 1)
    os.kill(inits[0], signal.SIGKILL)
    terminal.ends_with(125)
    contains("message", terminal.seen.decode(), "the sandbox ended before the command did")
    terminal = shell()
    terminal.process.send_signal(signal.SIGALRM)
    terminal.ends_with(128 + signal.SIGALRM)
    run("--", "true")  # sweeps what the killed one left


@case
def times_out() -> None:
    "--timeout ends it with 124, and what hutch says is on a line of its own"
    terminal = Terminal("-t", "--timeout", "500ms", "--", *NO_EDITING)
    terminal.ends_with(124)
    contains("message", terminal.seen.decode(), "hutch: the time limit of 0.5 s was reached (--timeout)\r\n")


@case
def nothing_typed_ahead() -> None:
    "what the command left unread is not typed into the caller's shell afterwards"
    terminal = Terminal("-t", "--", "sh", "-c", "echo ready; exec sleep 60")
    terminal.expect(b"ready")
    os.set_blocking(terminal.master, False)
    full = 0
    while full < 20:
        try:
            os.write(terminal.master, b"rm -rf /\r" * 100)
            full = 0
        except BlockingIOError:
            full += 1
            time.sleep(0.02)
    waiting = struct.unpack("i", fcntl.ioctl(terminal.slave, termios.FIONREAD, b"\0" * 4))[0]
    check(waiting > 0, "all of it was taken")
    terminal.process.send_signal(signal.SIGTERM)
    eventually("it ended", lambda: terminal.process.poll() is not None)
    equal("left to read", fcntl.ioctl(terminal.slave, termios.FIONREAD, b"\0" * 4), b"\0" * 4)
    terminal.ends_with(128 + signal.SIGHUP)


@case
def not_a_terminal() -> None:
    "standard input or output that is no terminal is refused with 125, and so is --json"
    result = run("-t", "--", "true")
    equal("status", result.status, 125)
    equal(
        "message",
        result.err,
        "hutch: --tty is for a person at a terminal, and standard input is none; leave it out\n",
    )
    master, slave = os.openpty()
    result = finish(start("--tty", "--", "true", stdin=slave))
    equal("status", result.status, 125)
    contains("message", result.err, "standard output is none")
    os.close(master)
    os.close(slave)
    result = run("-t", "--json", "--", "true")
    equal("status", result.status, 125)
    contains("message", result.err, "--tty", "--json")


@case
def not_started() -> None:
    "a command that can't be started is told, with the terminal as it was"
    terminal = Terminal("-t", "--", "no-such-command")
    terminal.ends_with(127)
    contains("message", terminal.seen.decode(), "hutch: no-such-command: command not found in the sandbox\r\n")
    terminal = Terminal("-t", "--env", "TERM=dumb", "--", "printenv", "TERM")
    terminal.ends_with(0)
    equal("--env", terminal.seen, b"dumb\r\n")


if __name__ == "__main__":
    main()
