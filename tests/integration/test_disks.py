#!/usr/bin/env python3
"""Disk images: a hard size, owners, a writable root on them, what is kept and what is not, and nothing left behind."""

import os
import pathlib
import signal
import time

from harness import (
    SLOWNESS,
    case,
    check,
    contains,
    equal,
    eventually,
    finish,
    folder,
    loops,
    main,
    make_root,
    nothing_left,
    payload,
    portion,
    quick,
    run,
    start,
    state,
    traces,
)

MIB = 1 << 20
SMALL = ("--memory", "64M", "--disk", "48M")  # more than half of the memory, so an image


def images() -> list[pathlib.Path]:
    return sorted((pathlib.Path(state()) / "images").iterdir())


@case
def size() -> None:
    "an image has the size that was asked for, all writable folders share it, and a full one is ENOSPC inside"
    script = "df -B1 --output=fstype,size /workspace /tmp /run /dev/shm /home/sandbox | tail -n +2 | sort -u"
    result = run("--disk", "3G", "--", "sh", "-c", script)
    kind, bytes_there = result.text.split()
    equal("file system", (kind, len(result.lines)), ("ext4", 1))
    check(0.97 * 3072 * MIB < int(bytes_there) <= 3072 * MIB, f"{bytes_there} bytes")
    full = payload("fill", "/workspace/x", options=SMALL)
    equal("status", (full.status, full.text.split()[2]), (1, "28"))
    check(40 * MIB < int(full.text.split()[1]) <= 48 * MIB, full.text)
    contains("message", full.err, "the disk limit of 48 MiB was reached (--disk)")


@case
def memory_is_not_disk() -> None:
    "what is written to an image is not held in memory: far more than --memory fits"
    script = "head -c 150M /dev/zero > /workspace/x && stat -c %s /workspace/x"
    result = run("--memory", "64M", "--disk", "1G", "--", "sh", "-c", script)
    equal("result", (result.status, result.text, result.err), (0, f"{150 * MIB}\n", ""))


@case
def inodes() -> None:
    "files without bytes are limited too, and the limit is named"
    result = payload("files", "/tmp", options=SMALL)
    equal("status", result.status, 1)
    contains("message", result.err, "the disk limit of 48 MiB was reached (--disk)")


@case
def owners() -> None:
    "files belong to the sandbox's users, not to the host's; set-user-ID and device files mean nothing"
    script = (
        "stat -c %u:%g /workspace && touch /workspace/a && stat -c %u:%g /workspace/a && "
        "chown 5:6 /workspace/a && stat -c %u:%g /workspace/a && ! mknod /workspace/n c 1 3 2>/dev/null && "
        "grep -c 'loop.*nosuid,nodev' /proc/mounts && ls -A / | grep -c lost"
    )
    result = run(*SMALL, "--user", "root", "--", "sh", "-c", script)
    equal("owners", result.lines[:3], ["0:0", "0:0", "5:6"])
    check(int(result.lines[3]) >= 5, result.text)
    equal("nothing of the image shows in the root", result.lines[4], "0")


@case
def writable_root() -> None:
    "--rw-root on an image: removed folders stay removed, renamed ones arrive"
    root = make_root("image-root")
    (root / "etc/folder").mkdir(parents=True)
    (root / "etc/folder/below").write_text("x")
    for link in ("bin", "lib", "lib64"):
        if os.path.islink(f"/{link}"):
            (root / link).symlink_to(os.readlink(f"/{link}"))
    script = "rm -r /etc/folder && mkdir /etc/folder && ls -A /etc/folder && mv /etc /config && ls / && stat -f -c %T /"
    options = ("--user", "root", "--root", str(root), "--rw-root", "--dir", "/usr:/usr:ro")
    result = run(*SMALL, *options, "--", "sh", "-c", script)
    equal("status", (result.status, result.err), (0, ""))
    check("config" in result.lines and "etc" not in result.lines and "below" not in result.lines, result.text)
    check((root / "etc/folder/below").exists(), "the folder on the host is as it was")
    filled = payload("fill", "/x", options=(*SMALL, "--user", "root", "--rw-root"))
    equal("a writable root is limited too", (filled.status, filled.text.split()[2]), (1, "28"))


@case
def prepared() -> None:
    "one prepared image per size is kept, small and private; the copies have no name"
    for size_words in (SMALL, SMALL, ("--disk", "2G")):
        equal("status", run(*size_words, "--", "true").status, 0)
    names = [path.name for path in images()]
    equal("each once", len(names), len(set(names)))
    check(f"ext4-{48 * MIB}-3072" in names and f"ext4-{2048 * MIB}-131072" in names, f"{names}")
    for path in images():
        stat = path.stat()
        check(stat.st_mode & 0o77 == 0 and stat.st_blocks * 512 < 4 * MIB, f"{path.name}: {stat}")


@case
def hidden_from_others() -> None:
    "what one sandbox wrote is in no other's image"
    equal("first", run(*SMALL, "--", "sh", "-c", "echo secret > /workspace/f && sync").status, 0)
    result = run(*SMALL, "--", "sh", "-c", "ls -A /workspace /tmp /home/sandbox")
    check("f" not in result.lines, result.text)


@case
def discarded() -> None:
    "a sandbox's end does not wait for its data to reach the disk"
    before = set(loops())
    script = f"head -c {portion(400)}M /dev/zero > /workspace/x"
    result = run("--memory", "1G", "--disk", "2G", "--", "sh", "-c", script, seconds=60)
    equal("status", result.status, 0)
    began = time.monotonic()
    eventually("the loop device is free", lambda: not set(loops()) - before)
    quick("it", time.monotonic() - began, 2)


@case
def killed() -> None:
    "kill -9 of hutch leaves no loop device, mount or image"
    before = traces()
    for wait in (0.0, 0.002, 0.005, 0.01, 0.3):
        process = start(*SMALL, "--", "sleep", "60")
        time.sleep(wait * SLOWNESS)
        process.send_signal(signal.SIGKILL)
        finish(process)
    equal("a run sweeps", run("--", "true").status, 0)
    nothing_left(before)
    check(all(path.name.startswith("ext4-") for path in images()), "only prepared images are left")


@case
def removed_inside_is_free_outside() -> None:
    "space that is freed inside is free again on the host"
    size_mib = portion(200)
    script = (
        f"head -c {size_mib}M /dev/urandom > /workspace/x && sync && echo written && read line && "
        "rm /workspace/x && sync && echo removed && read line"
    )
    process = start("--disk", "1G", "--", "sh", "-c", script)
    assert process.stdin is not None and process.stdout is not None
    free = []
    for word in (b"written\n", b"removed\n"):
        equal("step", process.stdout.readline(), word)
        status = os.statvfs(state())
        free.append(status.f_bfree * status.f_frsize)
        process.stdin.write(b"\n")
        process.stdin.flush()
    equal("status", finish(process).status, 0)
    check(free[1] - free[0] > size_mib // 2 * MIB, f"{free[0]} bytes free, then {free[1]}")


if __name__ == "__main__":
    main()
