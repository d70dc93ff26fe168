#!/usr/bin/env python3
"""Runs the tests on an ordinary host: Debian's own kernel with nothing but cgroup v2, in QEMU. By plain emulation, so
that it works wherever a process can be started; with one machine for each CPU, up to three.

    tests/vm/run.py --build BUILD [--label REGEX] [--only REGEX] [--kernel PACKAGE] [--machines N] [--seconds N]

Disks, kernel and the consoles' texts stay in BUILD/vm. Prints TAP.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import shutil
import sys
import threading
import time

import disk
import kernel
import plan
from kernel import Unavailable
from machine import EMULATOR, Machine
from verdict import Tally, Verdict

TOOLS = (EMULATOR, "apt-get", "dpkg-query", "depmod", "cpio", "mkfs.ext4", "ldconfig")
MACHINES = min(os.cpu_count() or 1, 3)


def check_machine() -> None:
    if platform.machine() != "x86_64":
        raise Unavailable(f"this machine is {platform.machine()}, and the kernel to boot is for x86_64")
    if os.geteuid() != 0:
        raise Unavailable("the disks hold files of root's: needs root")
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        raise Unavailable(f"not installed: {' '.join(missing)}; tools/setup vm installs what Debian has")


class Run:
    """One run: the tests still to be given out, and what is printed, shared by the machines."""

    def __init__(self, tests: list[dict]) -> None:
        self._waiting = [str(number) for number in range(len(tests))]
        self._lock = threading.Lock()
        self.tally = Tally()

    def next_test(self) -> str:
        with self._lock:
            return self._waiting.pop(0) if self._waiting else "end"

    def say(self, line: str) -> None:
        print(line, flush=True)

    def of(self, machine: Machine, seconds: float) -> None:
        verdict = Verdict(machine.name, self.tally)
        why = machine.watch(verdict, self.next_test, self.say, seconds)
        for line in verdict.close(machine.console, why):
            self.say(line)


def prepare(options: argparse.Namespace, folder: pathlib.Path) -> tuple[kernel.Kernel, list[dict]]:
    """Kernel and disks in the folder, and the tests on them."""
    chosen = kernel.get(options.kernel, folder / "kernel")
    disk.make_root(chosen, folder)
    found = [test for test in plan.find_tests(options.build, options.label) if re.search(options.only, test["name"])]
    reasons = {test["name"]: plan.why_not(test["name"], options.only != "") for test in found}
    for name, reason in reasons.items():
        if reason:
            print(f"ok - {name} # SKIP {reason}")
    luggage = plan.Luggage(options.build)
    tests = [luggage.pack(test) for test in found if not reasons[test["name"]]]
    words = {"release": chosen.release, "tests": tests}
    disk.make_tests(luggage.files, {"plan.json": json.dumps(words)}, folder)
    disk.make_initramfs(chosen, options.build / "tests/vm/first", folder)
    return chosen, tests


def run(options: argparse.Namespace) -> int:
    began = time.monotonic()
    check_machine()
    folder = options.build / "vm"
    chosen, tests = prepare(options, folder)
    print(f"# disks made in {time.monotonic() - began:.1f} s", flush=True)
    began = time.monotonic()
    this = Run(tests)
    machines = [Machine(f"machine {number + 1}", chosen, folder) for number in range(options.machines)]
    with concurrent.futures.ThreadPoolExecutor(len(machines)) as pool:
        list(pool.map(lambda machine: this.of(machine, options.seconds), machines))
    print(f"# {time.monotonic() - began:.0f} s on {chosen.release}, machines: {options.machines}\n{this.tally.plan}")
    return 1 if this.tally.failed else 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=lambda word: pathlib.Path(word).resolve(), required=True)
    parser.add_argument("--label", default="unit|integration|adversarial", help="tests with such a label")
    parser.add_argument("--only", default="", help="tests whose name matches")
    parser.add_argument("--kernel", default=kernel.PACKAGE, help="package of the kernel")
    parser.add_argument("--machines", type=int, default=MACHINES, help="how many at once")
    parser.add_argument("--seconds", type=float, default=1200, help="time limit of each machine")
    try:
        sys.exit(run(parser.parse_args()))
    except Unavailable as reason:
        print(f"ok 1 - the tests on Debian's kernel with cgroup v2 # SKIP {reason}\n1..1")


main()
