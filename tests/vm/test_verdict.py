#!/usr/bin/env python3
"""A machine's lines are read as what they mean; one that panics, complains, stops early or loses a line has failed."""

import sys
import traceback
from collections.abc import Callable

from verdict import Tally, Verdict

HEALTHY = "[    1.9] Unstable clock detected\n[   80.1] traps: payload[812] general protection fault ip:40\n"
WHY = "it did not end within 9 s"
TROUBLE = (
    "[    4.1] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100",
    "[   12.0] Oops: 0002 [#1] PREEMPT SMP NOPTI",
    "[   12.0] BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "[   12.0] WARNING: CPU: 0 PID: 1 at fs/overlayfs/super.c:100 ovl_fill_super+0x1/0x2",
    "[  242.0] INFO: task hutch:712 blocked for more than 120 seconds.",
)


def judge(*lines: str, console: str = HEALTHY) -> tuple[list[str], int]:
    """What is printed for these lines and this console, and how many failed."""
    tally = Tally()
    verdict = Verdict("machine 1", tally)
    out = [text for line in lines for text in verdict.line(line + "\r\n")]
    out += verdict.close(console, WHY)
    equal(tally.plan, f"1..{sum(not line.startswith('#') for line in out)}")
    return out, tally.failed


def equal(got: object, expected: object) -> None:
    if got != expected:
        raise AssertionError(f"got {got!r}, expected {expected!r}")


def good() -> None:
    "results are numbered and named, plans are not passed on"
    out, failed = judge("machine\tok - the kernel is 6.1", "run\tok 1 - exit codes", "run\t1..1", "end\t3")
    equal(
        out,
        [
            "ok 1 - machine 1: the kernel is 6.1",
            "ok 2 - run: exit codes",
            "ok 3 - machine 1: its kernel did not complain",
            "ok 4 - machine 1: it ran to its end, and no line was lost",
        ],
    )
    equal(failed, 0)


def bad() -> None:
    "a failure comes with its reason"
    out, failed = judge("run\tnot ok 7 - exit codes", "run\t# got 1, expected 2", "run\tTraceback", "end\t3")
    equal(out[:3], ["not ok 1 - run: exit codes", "# run: got 1, expected 2", "# run: Traceback"])
    equal(failed, 1)


def skipped() -> None:
    "what was skipped stays skipped"
    out, _ = judge("run\tok 1 - a writable root # SKIP no attributes", "end\t1")
    equal(out[0], "ok 1 - run: a writable root # SKIP no attributes")


def lost_line() -> None:
    "a line that did not arrive is a failure"
    out, failed = judge("run\tok 1 - exit codes", "end\t2")
    equal((out[-1], failed), ("# 1 of 2 lines arrived", 1))


def no_end() -> None:
    "a machine that stops early is a failure, with the reason and the console's last lines"
    out, failed = judge("run\tok 1 - exit codes", console="booting\n")
    equal((out[-2:], failed), ([f"# {WHY}; last heard of: run", "# console: booting"], 1))


def nothing() -> None:
    "so is one that says nothing at all"
    out, failed = judge(console="")
    equal((out[-1], failed), (f"# {WHY}; last heard of: nothing", 1))


def emulator() -> None:
    "what the emulator itself says is shown"
    out, _ = judge("qemu-system-x86_64: Could not open 'root.img'")
    equal(out[0], "# machine 1: qemu-system-x86_64: Could not open 'root.img'")


def trouble() -> None:
    "a kernel that panics or complains is a failure although every test passed"
    for line in TROUBLE:
        out, failed = judge("run\tok 1 - exit codes", "end\t1", console=f"{HEALTHY}{line}\n")
        equal((out[1:3], failed), (["not ok 2 - machine 1: its kernel did not complain", f"# {line}"], 1))


CASES: tuple[Callable[[], None], ...] = (good, bad, skipped, lost_line, no_end, nothing, emulator, trouble)


def main() -> None:
    failures = 0
    for number, case in enumerate(CASES, 1):
        try:
            case()
            print(f"ok {number} - {case.__doc__}")
        except AssertionError:
            failures += 1
            print(f"not ok {number} - {case.__doc__}")
            print("\n".join(f"# {line}" for line in traceback.format_exc().splitlines()))
    print(f"1..{len(CASES)}")
    sys.exit(1 if failures else 0)


main()
