"""deprive: taking single things away from one process, for real: system calls, capabilities, paths, descriptors.

Each function returns what a child calls between fork and execve (preexec_fn); together() puts several in a row. A call
is taken away with a seccomp filter, a path with a mount in a mount namespace of the child's own, so that nothing else
on the machine notices.
"""

import ctypes
import errno
import os
import pathlib
import resource
import struct
from collections.abc import Callable

Step = Callable[[], None]

LIBC = ctypes.CDLL(None, use_errno=True)

# x86-64, the only one Hutch runs on.
CALLS = {
    "socket": 41,
    "setsockopt": 54,
    "clone": 56,
    "fcntl": 72,
    "setxattr": 188,
    "keyctl": 250,
    "fchownat": 260,
    "unshare": 272,
    "seccomp": 317,
    "bpf": 321,
    "execveat": 322,
    "pidfd_send_signal": 424,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "clone3": 435,
    "close_range": 436,
    "openat2": 437,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_restrict_self": 446,
}

F_OFD_SETLK = 37
PR_CAPBSET_DROP = 24
PR_SET_SECCOMP = 22
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
RET_ALLOW = 0x7FFF0000
RET_ERRNO = 0x00050000
RET_KILL = 0x80000000
RET_NOTIFY = 0x7FC00000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06

CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 1, 32, 4096, 8192, 16384, 1 << 18
MNT_DETACH = 2


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def together(*steps: Step) -> Step:
    def run() -> None:
        for step in steps:
            step()

    return run


def call(name: str, answer: int, equal: dict[int, int] | None = None, bits: dict[int, int] | None = None) -> Step:
    """This call answers so: an errno, or RET_KILL, or RET_NOTIFY (never); only where the low halves of arguments are
    equal to these, or have one of these bits."""
    tests = [(LOAD, 0), (EQUAL, CALLS[name])]
    for code, arguments in ((EQUAL, equal or {}), (ANY_BIT, bits or {})):
        for index, value in arguments.items():
            tests += [(LOAD, 16 + 8 * index), (code, value)]
    program = b""
    for at, (code, value) in enumerate(tests):
        # What does not match goes to the last instruction, which allows.
        otherwise = 0 if code == LOAD else len(tests) - at
        program += struct.pack("HBBI", code, 0, otherwise, value)
    verdict = answer if answer >= 1 << 16 else RET_ERRNO | answer
    program += struct.pack("HBBI", RETURN, 0, 0, verdict) + struct.pack("HBBI", RETURN, 0, 0, RET_ALLOW)
    flags = SECCOMP_FILTER_FLAG_NEW_LISTENER if answer == RET_NOTIFY else 0

    def load() -> None:
        code = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
        listener = _checked(LIBC.syscall(CALLS["seccomp"], SECCOMP_SET_MODE_FILTER, flags, header), f"seccomp {name}")
        if flags:
            # As long as it is open somewhere and nobody answers, the call waits.
            os.set_inheritable(listener, True)

    return load


def capability(number: int) -> Step:
    return lambda: _checked(LIBC.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), "dropping a capability") and None


def user(uid: int) -> Step:
    def become() -> None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)

    return become


def open_files(most: int) -> Step:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def mount(source: str, target: str, kind: str | None, flags: int = 0, data: str | None = None) -> None:
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    _checked(LIBC.mount(*words, flags, data.encode() if data is not None else None), f"mounting {target}")


def own_mounts() -> None:
    _checked(LIBC.unshare(CLONE_NEWNS), "unshare")
    mount("none", "/", None, MS_REC | MS_PRIVATE)


def covered(path: str, kind: str = "tmpfs", text: str | None = None, mode: int = 0o755) -> Step:
    """Another file system there, empty; with a text a file of that text, on one."""

    def cover() -> None:
        own_mounts()
        if text is None:
            mount("none", path, kind, 0, None if kind == "ramfs" else f"mode={mode:o}")
            os.chmod(path, mode)
            return
        scratch = "/mnt"
        mount("none", scratch, "tmpfs")
        pathlib.Path(f"{scratch}/file").write_text(text, encoding="utf-8")
        mount(f"{scratch}/file", path, None, MS_BIND)
        LIBC.umount2(scratch.encode(), MNT_DETACH)

    return cover


def bound(source: str, target: str) -> Step:
    def bind() -> None:
        own_mounts()
        mount(source, target, None, MS_BIND)

    return bind


def read_only(path: str) -> Step:
    def remount() -> None:
        own_mounts()
        mount(path, path, None, MS_BIND | MS_REC)
        mount(path, path, None, MS_BIND | MS_REMOUNT | MS_RDONLY)

    return remount


def split_usr() -> None:
    """A root folder like the real one, but /bin is a folder."""
    own_mounts()
    root = pathlib.Path("/mnt")
    mount("none", str(root), "tmpfs")
    for entry in os.scandir("/"):
        if entry.name == "bin":
            (root / "bin").mkdir()
        elif entry.is_symlink():
            (root / entry.name).symlink_to(os.readlink(entry.path))
        elif entry.is_dir() and entry.name != "mnt":
            (root / entry.name).mkdir()
            mount(entry.path, str(root / entry.name), None, MS_BIND | MS_REC)
    os.chdir(root)
    _checked(LIBC.syscall(155, b".", b"."), "pivot_root")
    _checked(LIBC.umount2(b".", MNT_DETACH), "detaching the old root")
    os.chdir("/")


ENOSYS, EPERM, ENOSPC, EOPNOTSUPP, ENOPROTOOPT = (
    errno.ENOSYS,
    errno.EPERM,
    errno.ENOSPC,
    errno.EOPNOTSUPP,
    errno.ENOPROTOOPT,
)
