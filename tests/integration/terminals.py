"""terminals: what a person at a terminal does, for tests: start hutch run in one, type, read, resize, hang up."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

from harness import HUTCH, SLOWNESS, Failed, environment, equal, take_terminal


class Terminal:
    """A terminal with hutch run WORDS... in its foreground. The slave stays open, so its settings can be read."""

    def __init__(self, *words: str, size: tuple[int, int] = (24, 80), program: tuple[str, ...] = (HUTCH, "run")):
        self.master, self.slave = pty.openpty()
        self.seen = b""
        self.resize(*size)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [*program, *words],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=environment(TERM="xterm"),
            preexec_fn=take_terminal,
        )

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: bytes) -> None:
        while text:
            text = text[os.write(self.master, text) :]

    def read(self, seconds: float) -> bytes:
        """What it shows next; nothing when that is nothing for so long."""
        if not select.select([self.master], [], [], seconds * SLOWNESS)[0]:
            return b""
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        self.seen += data
        return data

    def expect(self, text: bytes, seconds: float = 20) -> bytes:
        """Read until it shows this: all that is new up to there. What comes behind it is new for the next one."""
        while text not in self.seen:
            if not self.read(seconds):
                raise Failed(f"the terminal shows {self.seen[-800:]!r}, not {text!r}")
        end = self.seen.index(text) + len(text)
        new, self.seen = self.seen[:end], self.seen[end:]
        return new

    def answer(self, text: bytes, expected: bytes) -> bytes:
        self.type(text)
        return self.expect(expected)

    def settings_are_back(self) -> bool:
        return termios.tcgetattr(self.slave) == self.before

    def hang_up(self) -> None:
        """The window is closed."""
        os.close(self.slave)
        os.close(self.master)
        self.slave = self.master = -1

    def ends_with(self, status: int, seconds: float = 20) -> None:
        """It ends so, and the terminal is as it was."""
        try:
            code = self.process.wait(seconds * SLOWNESS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"it did not end; the terminal shows {self.seen[-800:]!r}") from None
        while self.master >= 0 and self.read(0.01):
            pass
        equal(f"status, with {self.seen[-400:]!r} on the terminal", code if code >= 0 else 128 - code, status)
        if self.master >= 0:
            equal("settings", termios.tcgetattr(self.slave), self.before)
            self.hang_up()
