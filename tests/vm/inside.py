#!/usr/bin/env python3
"""inside: runs in the machine. Says where it is, asks for a test, runs it, asks for the next. All of that on a serial
line that the kernel does not write to, as `NAME<tab>TEXT`; the last one says how many there were."""

import json
import os
import pathlib
import subprocess
import termios
import threading
import time
import tty

PLACE = pathlib.Path("/opt/hutch")
LINE = "/dev/ttyS1"
SESSION = pathlib.Path("/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope")
OWN = "machine"


class Report:
    def __init__(self) -> None:
        self._file = open(LINE, "r+b", buffering=0)
        tty.setraw(self._file)
        self._lines = 0

    def _write(self, name: str, text: str) -> None:
        self._file.write(f"{name}\t{text}\n".encode())

    def say(self, name: str, text: str) -> None:
        self._lines += 1
        self._write(name, text)

    def check(self, holds: bool, text: str, more: str = "") -> None:
        self.say(OWN, f"{'ok' if holds else 'not ok'} - {text}")
        for line in more.splitlines() if not holds else ():
            self.say(OWN, f"# {line}")

    def ask(self) -> str:
        self._write("next", "")
        return self._file.readline().decode().strip()

    def end(self) -> None:
        self._write("end", str(self._lines))
        termios.tcdrain(self._file)


def check_kernel(report: Report, release: str) -> None:
    version = pathlib.Path("/proc/version").read_text(encoding="ascii").strip()
    report.check(os.uname().release == release, f"the kernel is {release}: {version}", f"it is {os.uname().release}")


def check_cgroups(report: Report) -> None:
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text(encoding="ascii").splitlines()]
    found = [(words[2], words[1]) for words in mounts if words[2].startswith("cgroup")]
    controllers = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").read_text(encoding="ascii").split()
    report.check(
        found == [("cgroup2", "/sys/fs/cgroup")] and {"cpu", "memory", "pids"} <= set(controllers),
        f"cgroups are v2 and nothing else: {', '.join(f'{kind} on {path}' for kind, path in found)}, with "
        f"{' '.join(controllers)}",
    )
    root = next(words for words in mounts if words[1] == "/")
    report.check(root[2] == "ext4", f"the root is {root[2]} on {root[0]}")


def check_run(report: Report) -> None:
    words = [str(PLACE / "build/hutch"), "run", "--", "python3", "-c", "print(1+1)"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    report.check(
        (done.returncode, done.stdout, done.stderr) == (0, "2\n", ""),
        "hutch run -- python3 -c 'print(1+1)' says 2",
        f"status {done.returncode}\n{done.stdout}\n{done.stderr}",
    )


def run_test(report: Report, test: dict) -> None:
    """One test program, its lines as they come. It has a cgroup, so that too late a one ends with all it started."""
    name, began = test["name"], time.monotonic()
    cgroup = SESSION / name
    cgroup.mkdir()
    process = subprocess.Popen(
        test["command"],
        env={**os.environ, **test["environment"]},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=lambda: (cgroup / "cgroup.procs").write_text("0"),
    )
    timer = threading.Timer(test["seconds"], (cgroup / "cgroup.kill").write_text, ["1"])
    timer.start()
    for line in process.stdout:
        report.say(name, line.rstrip("\n"))
    status = process.wait()
    timer.cancel()
    report.say(name, f"# {time.monotonic() - began:.1f} s")
    if status != 0:
        report.say(name, f"not ok - ended with status {status}, its time limit is {test['seconds']:.0f} s")
    elif not test["tap"]:
        report.say(name, "ok - ended well")


def main() -> None:
    plan = json.loads((PLACE / "plan.json").read_text(encoding="utf-8"))
    report = Report()
    check_kernel(report, plan["release"])
    check_cgroups(report)
    check_run(report)
    while (number := report.ask()) != "end":
        run_test(report, plan["tests"][int(number)])
    report.end()


main()
