#!/usr/bin/env python3
"""hutch doctor: probes that crash or hang, and that nothing is left behind, however it ends."""

import os
import pathlib
import random
import signal
import subprocess
import time

import deprive
from deprive import call
from doctors import (
    report,
)
from harness import (
    HUTCH,
    INSTANCES,
    case,
    check,
    contains,
    environment,
    equal,
    eventually,
    main,
    nothing_left,
    place,
    traces,
)


@case
def crash() -> None:
    "a probe that crashes is a no; the others go on"
    told = report(without=call("bpf", deprive.RET_KILL))
    row = told.checks["sk-lookup"]
    equal("sk-lookup", (row["ok"], told.can, told.checks["ipv6"]["ok"]), (False, True, True))
    contains("sk-lookup", row["found"], f"the probe was ended by signal {signal.SIGSYS.value}")


@case
def hang() -> None:
    "a probe that hangs is a no after its time; the others go on"
    usual = report().result.seconds
    told = report(without=call("bpf", deprive.RET_NOTIFY))
    row = told.checks["sk-lookup"]
    equal("sk-lookup", (row["ok"], told.can, told.checks["ipv6"]["ok"]), (False, True, True))
    equal("found", row["found"], "the probe did not answer within 5 s")
    check(5 <= told.result.seconds < 7 + 2 * usual, f"its time: {told.result.seconds} s, usually {usual} s")


def loops() -> set[str]:
    """Loop devices that hold something of ours."""
    held = set()
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            held.add(path.read_text(encoding="utf-8"))
        except OSError:
            pass  # not any more
    return {file for file in held if "hutch-doctor" in file or file.startswith(str(place()))}


def doctors() -> list[int]:
    """Its processes."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_ours = os.readlink(path / "exe") == os.path.realpath(HUTCH)
            if is_ours and b"doctor" in (path / "cmdline").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:
            pass
    return found


def call_of(pid: int) -> int:
    """The system call that it waits in, -1 when in none."""
    try:
        word = pathlib.Path(f"/proc/{pid}/syscall").read_text(encoding="ascii").split()[0]
        return int(word) if word.isdigit() else -1
    except OSError:
        return -1


def instances_of(pid: int) -> set[str]:
    """The ids of the instances that it holds."""
    held = set()
    for path in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
        try:
            held.add(os.readlink(path))
        except OSError:
            pass
    return {os.path.basename(file) for file in held if file.startswith(f"{INSTANCES}/")}


@case
def nothing_behind() -> None:
    "nothing is left after a doctor that ended well: no mount, cgroup, loop device, process"
    before = (traces(), loops(), pathlib.Path("/proc/self/mountinfo").read_text())
    check(report().can, "a sandbox can be made")
    nothing_left(before[0])
    eventually("loop devices", lambda: loops() <= before[1])
    equal("mounts", pathlib.Path("/proc/self/mountinfo").read_text(), before[2])
    equal("processes", doctors(), [])


@case
def killed() -> None:
    "nor after one that was killed or interrupted in the middle, at any time"
    before = (traces(), loops())
    chance = random.Random(3)
    usual = report().result.seconds
    for attempt in range(max(6, min(60, int(10 / usual)))):
        process = subprocess.Popen(
            [HUTCH, "doctor"], stdout=subprocess.DEVNULL, env=environment(), start_new_session=True
        )
        time.sleep(chance.random() * usual)
        if attempt % 3 == 0:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGKILL if attempt % 3 == 1 else signal.SIGTERM)
        process.wait()
    eventually("the last process has ended", lambda: not doctors())
    nothing_left(before[0])
    eventually("loop devices", lambda: loops() <= before[1])


@case
def killed_while_it_hangs() -> None:
    "nor after one that was killed while a probe hangs"
    process = subprocess.Popen(
        [HUTCH, "doctor"],
        stdout=subprocess.DEVNULL,
        env=environment(),
        preexec_fn=call("bpf", deprive.RET_NOTIFY),
        close_fds=False,
    )
    wanted = deprive.CALLS["bpf"]
    eventually("it hangs", lambda: any(call_of(pid) == wanted for pid in doctors()), 60)
    process.kill()
    process.wait()
    eventually("its processes have ended", lambda: not doctors(), 3)


def hanging(hang: deprive.Step, name: str, least: int) -> tuple[subprocess.Popen, set[str]]:
    """A doctor of which a probe hangs in this call with an instance and whatever else carries its id, and these."""
    process = subprocess.Popen(
        [HUTCH, "doctor"], stdout=subprocess.DEVNULL, env=environment(), preexec_fn=hang, close_fds=False
    )
    eventually("it hangs", lambda: any(call_of(pid) == deprive.CALLS[name] for pid in doctors()), 60)
    ours = {instance for pid in doctors() for instance in instances_of(pid)}
    equal("instances", len(ours), 1)
    made = {path for path in traces() for instance in ours if instance in path}
    check(len(made) >= least, f"an instance and what carries its id: {made}")
    return process, made


def killed_holding(hang: deprive.Step, name: str, least: int) -> None:
    process, made = hanging(hang, name, least)
    process.kill()
    process.wait()
    eventually("it is gone", lambda: not made & traces(), 3)


@case
def killed_with_an_instance() -> None:
    "nor after one that was killed while a probe holds an instance and nothing else"
    killed_holding(call("fcntl", deprive.RET_NOTIFY, equal={1: deprive.F_OFD_SETLK}), "fcntl", 1)


@case
def killed_with_a_cgroup() -> None:
    "nor after one that was killed while a probe holds a cgroup; one that hangs with it is ended and swept as well"
    # Handing the new cgroup over takes this call.
    hang = call("fchownat", deprive.RET_NOTIFY)
    killed_holding(hang, "fchownat", 2)
    process, made = hanging(hang, "fchownat", 2)
    eventually("the next probe's turn", lambda: not made & traces(), 8)
    equal("it goes on", process.poll(), None)
    process.kill()
    process.wait()


if __name__ == "__main__":
    main()
