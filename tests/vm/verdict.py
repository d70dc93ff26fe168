"""verdict: what the lines of a machine mean. No I/O: it takes lines and gives TAP."""

import re
from collections.abc import Iterator

TAP = re.compile(r"(not ok|ok)\b(?:\s+\d+)?(?:\s+-)?\s*(.*)")
PLAN = re.compile(r"1\.\.\d+$")
# What a healthy kernel never writes. A program's own crash ("traps: ...") and an out-of-memory kill are none of these.
TROUBLE = re.compile(r"Kernel panic|\bOops\b|\bBUG:|\bWARNING:|blocked for more than|refcount_t:|UBSAN:")
SHOWN = 40


class Tally:
    """Numbers the results of all machines."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def result(self, held: bool, text: str) -> str:
        self.passed += held
        self.failed += not held
        return f"{'ok' if held else 'not ok'} {self.passed + self.failed} - {text}"

    @property
    def plan(self) -> str:
        return f"1..{self.passed + self.failed}"


class Verdict:
    """One machine's, from lines `NAME<tab>TEXT` as inside.py sends them."""

    def __init__(self, machine: str, tally: Tally) -> None:
        self._machine = machine
        self._tally = tally
        self._received = 0
        self._sent: str | None = None  # how many there were, as the last line says
        self._running = ""

    @property
    def ended(self) -> bool:
        return self._sent is not None

    def line(self, raw: str) -> Iterator[str]:
        """What to print for one line."""
        name, tab, text = raw.rstrip("\r\n").partition("\t")
        if not tab:
            yield f"# {self._machine}: {name}"
        elif name == "end":
            self._sent = text
        else:
            self._received += 1
            self._running = name
            name = self._machine if name == "machine" else name
            match = TAP.match(text)
            if match:
                yield self._tally.result(match[1] == "ok", f"{name}: {match[2]}")
            elif not PLAN.match(text):
                yield f"# {name}: {text.removeprefix('# ')}"

    def close(self, console: str, why: str) -> Iterator[str]:
        """After the last line: what its kernel wrote, and why the machine stopped if it did so too early."""
        trouble = [line for line in console.splitlines() if TROUBLE.search(line)]
        yield self._tally.result(not trouble, f"{self._machine}: its kernel did not complain")
        yield from (f"# {line}" for line in trouble[:SHOWN])
        whole = self._sent == str(self._received)
        yield self._tally.result(whole, f"{self._machine}: it ran to its end, and no line was lost")
        if self.ended and not whole:
            yield f"# {self._received} of {self._sent} lines arrived"
        elif not self.ended:
            yield f"# {why}; last heard of: {self._running or 'nothing'}"
            yield from (f"# console: {line}" for line in console.splitlines()[-SHOWN:])
