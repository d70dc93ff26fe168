"""harness: what every integration test shares: running hutch, checking, and TAP on standard output.

A test is a function with a docstring for a name, marked @case. harness.main() runs them in order, each in a clean
place: before the next one starts, no process, cgroup or instance of the last may be left. Programs and folders come
from ctest through the environment; by hand `HUTCH=build/hutch PAYLOAD=... tests/integration/test_run.py` does the same.
"""

import atexit
import ctypes
import dataclasses
import functools
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HUTCH_BUILD", REPOSITORY / "build"))
HUTCH = os.environ.get("HUTCH", str(BUILD / "hutch"))
PAYLOAD = os.environ.get("PAYLOAD", str(BUILD / "tests/integration/payload"))
SANITIZED = os.environ.get("HUTCH_SANITIZE", "") != ""
# How much slower than a real machine this one is (tests/vm). The longest times that a test accepts grow with it.
SLOWNESS = float(os.environ.get("HUTCH_TEST_SLOWNESS", "1"))
INSTANCES = "/run/hutch/instances"
CGROUPS = "/sys/fs/cgroup"
NOBODY = 65534
PR_SET_CHILD_SUBREAPER = 36

_cases: list[Callable[[], None]] = []


class Failed(Exception):
    """A check that did not hold."""


class Skipped(Exception):
    """This machine or build can't show it; the reason is printed."""


@dataclasses.dataclass
class Outcome:
    status: int
    out: bytes
    err: str
    seconds: float

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def numbers(self) -> dict[str, int]:
        """The payload's "NAME NUMBER" lines."""
        return {name: int(number) for name, number in (line.rsplit(" ", 1) for line in self.lines)}


def case(function: Callable[[], None]) -> Callable[[], None]:
    _cases.append(function)
    return function


def check(condition: object, what: str) -> None:
    if not condition:
        raise Failed(what)


def equal(what: str, got: object, expected: object) -> None:
    if got != expected:
        raise Failed(f"{what}: got {_short(got)}, expected {_short(expected)}")


def contains(what: str, text: str, *parts: str) -> None:
    for part in parts:
        if part not in text:
            raise Failed(f"{what}: {part!r} is not in {_short(text)}")


def eventually(what: str, condition: Callable[[], object], seconds: float = 10) -> None:
    """Poll until it holds."""
    seconds *= SLOWNESS
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.005)


def quick(what: str, took: float, seconds: float) -> None:
    """It took less than this."""
    check(took < seconds * SLOWNESS, f"{what} took {took:.1f} s, which is not below {seconds * SLOWNESS:.1f} s")


def portion(count: int) -> int:
    """How many to do: as many as this machine does in the time that a real one takes for `count`."""
    return max(1, int(count / SLOWNESS))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 600 else f"{text[:400]} ... {text[-100:]} ({len(text)} characters)"


@functools.cache
def place() -> pathlib.Path:
    """The folder of this test program, root's alone, removed at its end."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="hutch-test-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def state() -> str:
    path = place() / "state"
    path.mkdir(mode=0o700)
    return str(path)


def folder(name: str) -> pathlib.Path:
    """A new, empty folder."""
    path = place() / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    path.chmod(0o755)
    return path


def make_root(name: str) -> pathlib.Path:
    """A root folder with the payload, the four folders that are needed, and nothing else."""
    root = folder(name)
    for below in ("dev", "proc", "run", "tmp"):
        (root / below).mkdir(mode=0o755)
    shutil.copy(PAYLOAD, root / "payload")
    (root / "payload").chmod(0o755)
    return root


@functools.cache
def payload_root() -> str:
    return str(make_root("root"))


@functools.cache
def payload_dir() -> str:
    """--dir value that shows the payload as /payload/payload, for template host."""
    path = folder("payload")
    shutil.copy(PAYLOAD, path / "payload")
    return f"{path}:/payload:ro"


def environment(**more: str) -> dict[str, str]:
    """What hutch is started with: nothing of the caller's, who may have come through sudo."""
    kept = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
    return {"PATH": os.environ["PATH"], "HUTCH_STATE": state(), **kept, **more}


def start(*words: str, **popen: object) -> subprocess.Popen:
    """hutch run WORDS..., not waited for."""
    popen.setdefault("env", environment())
    for stream in ("stdin", "stdout", "stderr"):
        popen.setdefault(stream, subprocess.PIPE)
    return subprocess.Popen([HUTCH, "run", *words], **popen)


def finish(process: subprocess.Popen, stdin: bytes | None = None, seconds: float = 30) -> Outcome:
    began = time.monotonic()
    seconds *= SLOWNESS
    try:
        out, err = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise Failed(f"{process.args[1:8]} did not end within {seconds} s; stderr {_short(err)}") from None
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Outcome(status, out or b"", (err or b"").decode(errors="replace"), time.monotonic() - began)


def run(*words: str, stdin: bytes = b"", seconds: float = 30, **popen: object) -> Outcome:
    """hutch run WORDS..., to its end."""
    return finish(start(*words, **popen), stdin, seconds)


def payload_words(*words: str, options: tuple[str, ...] = ()) -> list[str]:
    return ["--root", payload_root(), *options, "--", "/payload", *words]


def payload(*words: str, options: tuple[str, ...] = (), **more: object) -> Outcome:
    """The payload in the root folder that has nothing else in it."""
    return run(*payload_words(*words, options=options), **more)


def start_payload(*words: str, options: tuple[str, ...] = (), **popen: object) -> subprocess.Popen:
    return start(*payload_words(*words, options=options), **popen)


def wait_ready(process: subprocess.Popen) -> None:
    line = process.stdout.readline()
    if line != b"ready\n":
        raise Failed(f"the payload said {line!r}, not that it is ready; stderr {_short(finish(process).err)}")


def take_terminal() -> None:
    """In the child: standard input becomes the controlling terminal."""
    os.setsid()
    os.close(os.open(os.ttyname(0), os.O_RDWR))


def processes_with(word: str) -> list[int]:
    """Host pids of processes that have this word among their arguments."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if word.encode() in pathlib.Path(path).read_bytes().split(b"\0"):
                found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


def payloads_with(word: str) -> list[int]:
    """The same, but not the hutch process that was given the word."""
    return [pid for pid in processes_with(word) if not _is_hutch(pid)]


def _is_hutch(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(HUTCH)
    except OSError:
        return True


def status_of(text: str) -> dict[str, str]:
    """The lines of /proc/PID/status."""
    return {name: value.strip() for name, value in (line.split(":", 1) for line in text.splitlines())}


def traces() -> set[str]:
    """Everything that a sandbox has on the host outside of its processes and its state folder."""
    return {
        *glob.glob(f"{INSTANCES}/*"),
        *glob.glob(f"{CGROUPS}/hutch/*/"),
        *glob.glob(f"{CGROUPS}/*/hutch/*/"),
        *loops(),
    }


def loops() -> list[str]:
    """Loop devices with an image of a sandbox in them, with the number of the image: devices are used again."""
    found = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            file = pathlib.Path(path).read_text(encoding="utf-8").strip()
        except OSError:
            continue  # gone meanwhile
        if "/images/#" in file:
            found.append(f"{path}: {file}")
    return found


def children() -> list[int]:
    """Our children: orphans of killed runs included, because we are their reaper."""
    found = []
    for path in glob.glob("/proc/self/task/*/children"):
        try:
            found += map(int, pathlib.Path(path).read_text(encoding="ascii").split())
        except OSError:
            pass  # a thread that has ended
    return found


def reap_orphans() -> bool:
    """Wait for all children that have ended; true when none is left. Not while a Popen of ours is not waited for."""
    for pid in children():
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
    return not children()


def held_instances() -> set[str]:
    """The ids of instances that a living keeper holds the lock of."""
    # From behind: in the line of one that waits there is an arrow in front.
    locked = {line.split()[-3].split(":")[2] for line in open("/proc/locks", encoding="ascii") if " FLOCK " in line}
    held = set()
    for path in glob.glob(f"{INSTANCES}/*"):
        try:
            if str(os.stat(path).st_ino) in locked:
                held.add(os.path.basename(path))
        except OSError:
            pass  # it has just ended
    return held


def nothing_left(before: set[str], seconds: float = 10) -> None:
    """No process of ours, and nothing in the host's trees that was not there before. What belongs to an instance that
    is held when all of ours have ended is somebody else's."""
    left = traces() - before

    def is_gone() -> bool:
        left.intersection_update(traces())
        held = held_instances()
        left.difference_update([path for path in left if os.path.basename(path.rstrip("/")).split("-")[0] in held])
        return not left

    eventually("the last process has ended", reap_orphans, seconds)
    try:
        eventually("traces", is_gone, seconds)
    except Failed:
        raise Failed(f"left behind: {sorted(left)[:8]}") from None


def _try(function: Callable[[], None]) -> tuple[bool, str]:
    """Whether it held, and what there is to say."""
    before = traces()
    try:
        function()
        nothing_left(before)
        return True, ""
    except Skipped as skipped:
        return True, f"SKIP {skipped}"
    except Failed as failed:
        return False, str(failed)
    except Exception:
        return False, traceback.format_exc()


def main() -> None:
    failures = 0
    if os.geteuid() != 0:
        sys.exit("these tests make sandboxes and need root")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Now, because later there may be threads that want them first.
    for prepare in (state, payload_root, payload_dir):
        prepare()
    wanted = [function for function in _cases if len(sys.argv) < 2 or function.__name__ in sys.argv[1:]]
    for number, function in enumerate(wanted, 1):
        name = " ".join((function.__doc__ or function.__name__).split()).rstrip(".")
        began = time.monotonic()
        held, comment = _try(function)
        took = time.monotonic() - began
        print(
            f"{'ok' if held else 'not ok'} {number} - {name}{' # ' + comment if held and comment else ''}", flush=True
        )
        if took > 1:
            print(f"# {took:.1f} s", flush=True)
        if not held:
            failures += 1
            print("\n".join(f"# {line}" for line in comment.splitlines()), flush=True)
            for pid in children():
                os.kill(pid, signal.SIGKILL)
            eventually("the last process has ended", reap_orphans)
    print(f"1..{len(wanted)}")
    sys.exit(1 if failures else 0)
