"""service: what sandboxes cost over the REST door of a daemon, beside the same work done by hand (bench-api).

The daemon is started for this, on a state folder of its own, with a pool of POOL sandboxes, as many CPUs per sandbox as
there are, and no limit on the rate of calls. bench-api says which measurements there are.
"""
import contextlib
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

import report

POOL = 32
READY_SECONDS = 30
PAUSE_MS = 50  # 20 a second


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def settings(live: int) -> dict[str, str]:
    return {"HUTCH_SANDBOX_MAX_CONCURRENT": str(live + 512), "HUTCH_SANDBOX_MAX_EXECS": "1024",
            "HUTCH_SANDBOX_POOL_MIN_IDLE": str(POOL), "HUTCH_SANDBOX_POOL_MAX_IDLE": str(POOL + 8),
            "HUTCH_SANDBOX_RESOURCE_LIMITS_CPU": str(os.cpu_count()),
            "HUTCH_SANDBOX_RESOURCE_LIMITS_TIMEOUT_SECONDS": "3600",
            "HUTCH_LIMITS_PER_IP_RATE": "0", "HUTCH_LOGGING_LEVEL": "warn"}


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


@contextlib.contextmanager
def daemon(build: pathlib.Path, work: pathlib.Path, live: int) -> Iterator[tuple[str, str, int]]:
    """Its port, a key, its process."""
    port, key = free_port(), secrets.token_hex(24)
    process = subprocess.Popen(
        [build / "hutchd", "--state", work / "service", "--listen", f"127.0.0.1:{port}"],
        env={"PATH": os.environ["PATH"], "HUTCH_API_KEY": key, **settings(live)}, stdin=subprocess.DEVNULL)
    try:
        until = time.monotonic() + READY_SECONDS
        while not is_ready(port):
            if process.poll() is not None or time.monotonic() > until:
                raise subprocess.CalledProcessError(process.returncode or 1, "hutchd")
            time.sleep(0.05)
        yield str(port), key, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def pairs(measured: dict[str, list[int]], prefix: str = "") -> dict[str, dict[str, float]]:
    return {who: report.summary(measured[prefix + who]) for who in ("bare", "ours", "create") if prefix + who in measured}


def descriptors(pid: int) -> list[int]:
    """How many the daemon has, and each process that it started itself."""
    found = []
    for one in [str(pid), *pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]:
        with contextlib.suppress(OSError):
            found.append(len(os.listdir(f"/proc/{one}/fd")))
    return found


class Most:
    """The most descriptors that any process of the daemon has while this is watched."""

    def __init__(self, pid: int) -> None:
        self.pid, self.count, self.over = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        while not self.over.wait(1):
            self.count = max(self.count, *descriptors(self.pid))

    def __enter__(self) -> "Most":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def measure(build: pathlib.Path, work: pathlib.Path, tool: Callable[..., dict], quick: bool) -> dict:
    """`tool` runs one of our programs that print JSON."""
    crowds = [200] if quick else [1000, 5000]
    samples = 60 if quick else 300
    with daemon(build, work, max(crowds)) as (port, key, pid):
        def ask(*words: object) -> dict:
            time.sleep(2)  # the pool fills up again
            return tool(build, "bench-api", port, key, *words, work=work)

        found = {
            "live": pairs(ask("live", samples)),
            "fresh": pairs(ask("fresh", samples, PAUSE_MS)),
            "node": pairs(ask("node", 10 if quick else 40)),
            "sustained": {clients: ask("sustained", clients, 1000 if quick else 5000)["per_second"]
                          for clients in (1, 8, 64)},
            "burst": report.summary(ask("burst", 100)["ours"]),
            "output": ask("output", *((64, 3) if quick else (512, 7))),
            "crowds": {},
        }
        for live in crowds:
            with Most(pid) as most:
                measured = ask("crowd", live, samples)
            found["crowds"][live] = {"live": pairs(measured, "live_"), "fresh": pairs(measured, "fresh_"),
                                     "all_created_ms": measured["all_created_ms"], "each_kib": measured["each_kib"],
                                     "fds_each": most.count / live}
    return found
