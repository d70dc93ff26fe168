"""A hutchd to start, watch and end, with the real gateway or one of the tests' own."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator

from harness import (
    HUTCH,
    Failed,
    Outcome,
    eventually,
    finish,
    place,
    status_of,
)

BUILT = pathlib.Path(HUTCH).parent
STAND_IN = os.environ.get("STAND_IN", str(BUILT / "tests/integration/stand-in"))
USER = "hutch"


class Daemon:
    """A hutchd on a state folder of its own, which nobody but root can even reach."""

    def __init__(self, config: str = "", *words: str, stand_in: str = "", state: str = "daemon", **env: str) -> None:
        self.state = place() / state
        self.log_path = place() / f"{state}.log"
        self.config = place() / f"{state}.yaml"
        self.config.write_text(config)
        program = BUILT / "hutchd"
        if stand_in:
            program = with_stand_in() / "hutchd"
            env["HUTCH_TEST_MODE"] = stand_in
        if not any(word.startswith("--listen") for word in words) and "listen" not in config:
            words += ("--listen", "127.0.0.1:0")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, "--config", self.config, "--state", self.state, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={"PATH": os.environ["PATH"], **env},
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def events(self, name: str) -> list[dict[str, str]]:
        """Of hutchd's own: what others say is marked."""
        found = []
        for line in self.log.splitlines():
            if not line.startswith("time="):
                continue
            # Nothing but such a line: the expression is slow with what a gateway may say.
            if f"event={name}" not in line:
                continue
            fields = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line))
            if fields.get("event") == name and fields.get("program") == "hutchd":
                found.append(fields)
        return found

    def wait_event(self, name: str, count: int = 1, seconds: float = 20) -> list[dict[str, str]]:
        def is_there() -> bool:
            if self.process.poll() is not None and len(self.events(name)) < count:
                raise Failed(f"hutchd ended while waiting for {count} x {name}: {self.log}")
            return len(self.events(name)) >= count

        try:
            eventually(name, is_there, seconds)
        except Failed as failed:
            raise Failed(f"{failed}; log: {self.log}") from None
        return self.events(name)

    def ready(self) -> "Daemon":
        self.wait_event("ready")
        return self

    @property
    def ports(self) -> list[int]:
        return [int(e["address"].rsplit(":", 1)[1]) for e in self.events("listening") if ":" in e["address"]]

    def gateway(self) -> int:
        """The gateway's pid."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in map(int, children):
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() in ("hutch-gateway", "exe"):
                    return pid
                if b"--serve" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return 0

    def report(self) -> list[str]:
        path = self.state / "gateway" / "report"
        return path.read_text().splitlines() if path.exists() else []

    def wait_report(self, line: str, count: int = 1, seconds: float = 30) -> None:
        try:
            eventually(line, lambda: sum(text.startswith(line) for text in self.report()) >= count, seconds)
        except Failed as failed:
            raise Failed(f"{failed}; report: {self.report()}; log: {self.log}") from None

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, seconds: float = 30) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.wait(seconds)

    def wait(self, seconds: float = 30) -> int:
        return finish(self.process, seconds=seconds).status


@contextlib.contextmanager
def daemon(config: str = "", *words: str, clean: bool = True, **more: str) -> Iterator[Daemon]:
    state = place() / more.get("state", "daemon")
    if clean:
        shutil.rmtree(state, ignore_errors=True)
    one = Daemon(config, *words, **more)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.terminate()
            try:
                one.process.wait(30)
            except subprocess.TimeoutExpired:
                one.process.kill()
                one.process.wait()
        one.process.stdout.close()


def with_stand_in() -> pathlib.Path:
    """A folder with hutchd in it, beside a gateway of the tests' own."""
    path = place() / "programs"
    if not path.exists():
        path.mkdir(mode=0o700)
        shutil.copy(BUILT / "hutchd", path / "hutchd")
        shutil.copy(BUILT / "hutch-init", path / "hutch-init")
        shutil.copy(STAND_IN, path / "hutch-gateway")
        for name in ("hutch-init", "hutch-gateway"):
            (path / name).chmod(0o755)
    return path


def hutchd(*words: str, **env: str) -> Outcome:
    process = subprocess.Popen(
        [BUILT / "hutchd", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **env},
    )
    return finish(process)


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def alive(pid: int) -> bool:
    try:
        return "Z" not in status_of(pathlib.Path(f"/proc/{pid}/status").read_text())["State"]
    except OSError:
        return False
