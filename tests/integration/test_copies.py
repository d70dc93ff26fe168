#!/usr/bin/env python3
"""Files into a sandbox (--put) and out of it (--get): whole, the caller's, and never by way of a symlink."""

import json
import os
import signal
import socket
import time

from harness import case, check, contains, environment, equal, eventually, folder, main, quick, run, start


@case
def there_and_back() -> None:
    "files go in before the command and come out after it, byte for byte, with their permissions"
    here = folder("back")
    for size in (0, 1, 61440, 131073, 9_000_000):
        content = os.urandom(size)
        (here / "in").write_bytes(content)
        (here / "in").chmod(0o750)
        result = run(
            *("--put", f"{here}/in:deep/er/in", "--get", f"/workspace/out:{here}/out"),
            *("--", "sh", "-c", "stat -c '%a %u %s' deep/er/in; cp -p deep/er/in out"),
        )
        equal(f"{size}: inside", (result.status, result.text), (0, f"750 65534 {size}\n"))
        check((here / "out").read_bytes() == content, f"{size}: other bytes came back")
        equal(f"{size}: mode", (here / "out").stat().st_mode & 0o7777, 0o750)
        equal(f"{size}: names", sorted(os.listdir(here)), ["in", "out"])
        (here / "out").unlink()


@case
def many() -> None:
    "several files, each with its own option; standard input, output and --json go on as without"
    here = folder("several")
    words = []
    for number in range(16):
        (here / f"in{number}").write_text(f"{number}\n")
        words += ["--put", f"{here}/in{number}:{number}", "--get", f"{number}.out:{here}/out{number}"]
    command = 'cat > stdin; for i in *; do [ "$i" = stdin ] || cp "$i" "$i.out"; done; cat stdin'
    result = run(*words, "--json", "--", "sh", "-c", command, stdin=b"hello")
    told = json.loads(result.text)
    equal("result", (result.status, told["stdout"]), (0, "hello"))
    equal("content", [(here / f"out{i}").read_text() for i in range(16)], [f"{i}\n" for i in range(16)])


@case
def owner_and_mode() -> None:
    "what comes out belongs to the caller, or to who called sudo, under the caller's umask and without set-id bits"
    here = folder("mode")
    for uid, more in ((0, {}), (1234, {"SUDO_UID": "1234", "SUDO_GID": "2345"})):
        result = run(
            *("--user", "root", "--get", f"/tmp/x:{here}/x", "--"),
            *("sh", "-c", "echo x > /tmp/x; chmod 6777 /tmp/x; stat -c %a /tmp/x"),
            env=environment(**more),
            preexec_fn=lambda: os.umask(0o027),
        )
        got = (here / "x").stat()
        equal(f"{uid}", (result.text, got.st_uid, got.st_mode & 0o7777), ("6777\n", uid, 0o750))


@case
def caller_symlinks() -> None:
    "a symlink in the caller's path, at its end or on the way, is refused by name; what it points at stays"
    here = folder("links")
    (here / "real").mkdir()
    (here / "real" / "file").write_text("keep")
    (here / "way").symlink_to("real")
    (here / "end").symlink_to("real/file")
    for path in ("way/file", "end"):
        result = run("--put", f"{here}/{path}:x", "--", "true")
        equal(f"put {path}", result.status, 125)
        contains(f"put {path}", result.err, "--put", "contains a symlink", f"{here}/real/file")
        result = run("--get", f"x:{here}/{path}", "--", "sh", "-c", "echo new > x")
        equal(f"get {path}", result.status, 125)
        contains(f"get {path}", result.err, "--get")
    equal("what it points at", (here / "real" / "file").read_text(), "keep")
    check((here / "end").is_symlink(), "the symlink was replaced")
    equal("names", sorted(os.listdir(here)), ["end", "real", "way"])


@case
def planted() -> None:
    "symlinks that a command plants lead only where the command could go itself"
    here = folder("planted")
    for target in ("/etc/shadow", "/proc/1/environ", "/proc/1/root/etc/passwd", "/proc/self/fd/0", "/proc/self/fd/3"):
        result = run("--get", f"x:{here}/x", "--", "ln", "-s", target, "x")
        check(result.status == 125 and not (here / "x").exists(), f"{target}: {result}")
    result = run("--get", f"x:{here}/x", "--", "ln", "-s", "/etc/passwd", "x")
    equal("its own /etc", result.status, 0)
    check((here / "x").read_text() != open("/etc/passwd", encoding="utf-8").read(), "the host's /etc/passwd came out")


@case
def no_files() -> None:
    "a FIFO, a socket, a device or a folder is refused on either side, at once"
    here = folder("kinds")
    os.mkfifo(here / "fifo")
    (here / "folder").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(here / "socket"))
    before = time.monotonic()
    for path in (here / "fifo", here / "folder", here / "socket", "/dev/null", f"{here}/"):
        result = run("--put", f"{path}:x", "--", "true")
        equal(f"put {path}", result.status, 125)
        result = run("--get", f"x:{path}", "--", "touch", "x")
        equal(f"get {path}", result.status, 125)
        contains(f"get {path}", result.err, "is no file")
    for make in ("mkfifo x", "mkdir x", "ln -s /dev/zero x", "ln -s x x"):
        result = run("--get", f"x:{here}/out", "--", "sh", "-c", make)
        check(result.status == 125 and not (here / "out").exists(), f"{make}: {result}")
    check(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"), "/dev/null was replaced")
    quick("fourteen refusals", time.monotonic() - before, 20)
    listener.close()


@case
def unsized() -> None:
    "a file of /proc, which says that it is empty and is not, is refused rather than copied as empty"
    result = run("--put", "/proc/version:x", "--", "echo", "ran")
    equal("status and output", (result.status, result.text), (125, ""))
    contains("reason", result.err, "--put", "/proc/version", "does not say how large it is")
    empty = folder("empty") / "file"
    empty.write_text("")
    result = run("--put", f"{empty}:x", "--", "wc", "-c", "x")
    equal("one that is empty", (result.status, result.text.split()[0]), (0, "0"))


@case
def guessed_name() -> None:
    "a command that may write to the folder can't be in the way of the file's first name"
    here = folder("guess")
    os.chmod(here, 0o777)
    # The next process ids of this machine, hutch's own among them.
    first = os.getpid()
    script = f"echo new > /workspace/x; for i in $(seq {first} {first + 5000}); do : > .hutch-get-$i; done"
    equal("run", run("--dir", f"{here}:/mnt/out:rw", "--workdir", "/mnt/out", "--get", f"/workspace/x:{here}/x", "--",
                     "sh", "-c", script).status, 0)
    equal("what came out", (here / "x").read_text(), "new\n")


@case
def limits() -> None:
    "a disk that is full and a file larger than the disk are told, and leave what was there"
    here = folder("limits")
    (here / "big").write_bytes(b"x" * 3_000_000)
    result = run("--disk", "1M", "--put", f"{here}/big:x", "--", "echo", "ran")
    equal("put", (result.status, result.text), (125, ""))
    contains("put", result.err, "--put", "No space left on device")
    (here / "old").write_text("old")
    result = run("--disk", "1M", "--get", f"x:{here}/old", "--", "truncate", "-s", "1T", "x")
    equal("get", result.status, 125)
    contains("get", result.err, "--get", "more than --disk")
    equal("what was there", (here / "old").read_text(), "old")
    equal("names", sorted(os.listdir(here)), ["big", "old"])


@case
def command_failed() -> None:
    "after a command that failed the status stays its own, and what is there comes out"
    here = folder("failed")
    result = run("--get", f"no:{here}/no", "--get", f"log:{here}/log", "--", "sh", "-c", "echo why > log; exit 3")
    equal("status", result.status, 3)
    contains("no", result.err, "--get: copying from no", "No such file")
    equal("log", (here / "log").read_text(), "why\n")
    result = run("--get", f"no:{here}/no", "--", "true")
    equal("status of one that succeeded", result.status, 125)


@case
def bad_values() -> None:
    "what can't be copied is said before anything runs"
    here = folder("bad")
    for words in (("--put", "x"), ("--put", ":x"), ("--get", "x:"), ("--put", f"{here}/none:x"), ("--put",)):
        result = run(*words, "--", "sh", "-c", "echo ran")
        check(result.status == 125 and result.text == "" and words[0] in result.err, f"{words}: {result}")
    result = run("--get", f"x:{here}/none/x", "--", "echo", "ran")
    equal("a folder that is not there", (result.status, result.text), (125, ""))
    contains("a folder that is not there", result.err, "--get: opening the folder", "No such file")


@case
def interrupted() -> None:
    "Ctrl-C while a file is copied ends the run and leaves no part of it"
    here = folder("interrupted")
    process = start(
        *("--disk", "8G", "--memory", "1G", "--get", f"x:{here}/x", "--"),
        *("sh", "-c", "truncate -s 8000000000 x; echo done"),
    )
    eventually("the copy begins", lambda: any(path.stat().st_size > 0 for path in here.iterdir()))
    process.send_signal(signal.SIGINT)
    equal("status", process.wait(30), 125)
    equal("names", os.listdir(here), [])


if __name__ == "__main__":
    main()
