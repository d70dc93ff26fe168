#!/usr/bin/env python3
"""Nothing is left of a sandbox: not of 2,000 of them, a tenth killed at a random moment, nor of one beside another.

HUTCH_LEAK_RUNS sets the number. Other sandboxes may come and go on this machine meanwhile: what counts is what stays.
"""

import concurrent.futures
import fcntl
import glob
import os
import pathlib
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable

from harness import (
    CGROUPS,
    HUTCH,
    INSTANCES,
    SANITIZED,
    SLOWNESS,
    Failed,
    case,
    check,
    environment,
    equal,
    eventually,
    finish,
    main,
    payload,
    payload_words,
    payloads_with,
    place,
    portion,
    reap_orphans,
    run,
    start_payload,
    state,
    traces,
    wait_ready,
)

RUNS = int(os.environ.get("HUTCH_LEAK_RUNS", portion(200 if SANITIZED else 2000)))
WORKERS = 4
# The kernel counts objects per slab, and a slab that a CPU works on as full.
SLACK = 150


def kernel_objects() -> dict[str, int]:
    """How many namespaces and cgroups the kernel has, reachable or not."""
    counts = {}
    for line in pathlib.Path("/proc/slabinfo").read_text(encoding="ascii").splitlines():
        name, active = line.split()[:2]
        if name in ("net_namespace", "pid_namespace", "user_namespace", "uts_namespace", "mem_cgroup"):
            counts[name] = int(active)
    for line in pathlib.Path("/proc/cgroups").read_text(encoding="ascii").splitlines()[1:]:
        name, _, count, _ = line.split()
        if name in ("memory", "pids", "cpu"):
            counts[f"{name} cgroups"] = int(count)
    return counts


def namespaces() -> set[str]:
    """Every namespace that some process is in."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/ns/*"):
        try:
            found.add(os.readlink(path))
        except OSError:
            pass
    return found


def mounts() -> set[str]:
    return set(pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines())


def files_below(path: str) -> list[str]:
    return sorted(os.path.join(folder, name) for folder, folders, names in os.walk(path) for name in folders + names)


def own_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def id_locks() -> int:
    """Ranges of user ids that somebody holds."""
    inode = os.stat("/run/hutch/ids").st_ino
    return sum(f":{inode} " in line for line in pathlib.Path("/proc/locks").read_text(encoding="ascii").splitlines())


def gone(what: str, before: set[str], look: Callable[[], set[str]], seconds: float = 20) -> None:
    """Everything that was not there before goes away, even if others' things come."""
    left = look() - before

    def is_gone() -> bool:
        left.intersection_update(look())
        return not left

    try:
        eventually(what, is_gone, seconds)
    except Failed:
        raise Failed(f"{what}: {len(left)} left, such as {sorted(left)[:4]}") from None


def usual_seconds() -> float:
    """How long a run takes here and now."""
    times = []
    for _ in range(9):
        began = time.monotonic()
        payload("exit", "0")
        times.append(time.monotonic() - began)
    return sorted(times)[4]


def run_one(number: int, victims: set[int], delays: random.Random, longest: float) -> bool:
    """True when it was killed before its end."""
    words = payload_words("exit", "0") if number % 4 else ["--cpus", "1", "--dir", f"{place()}:/data:ro", "--", "true"]
    process = subprocess.Popen(
        [HUTCH, "run", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    if number not in victims:
        error = process.communicate(timeout=60)[1]
        if process.returncode != 0:
            raise Failed(f"run {number}: status {process.returncode}, {error.decode()!r}")
        return False
    time.sleep(delays.uniform(0, longest))
    process.kill()
    process.communicate(timeout=60)
    return process.returncode == -signal.SIGKILL


@case
def many() -> None:
    "many sandboxes, a tenth killed at a random moment: afterwards everything is as before"
    seed = random.randrange(1 << 32)
    print(f"# {RUNS} runs, seed {seed}", flush=True)
    delays = random.Random(seed)
    victims = set(delays.sample(range(RUNS), RUNS // 10))
    longest = usual_seconds()
    run("--cpus", "1", "--", "true")
    eventually("a quiet start", reap_orphans)
    before = (traces(), namespaces(), mounts(), files_below(state()), kernel_objects(), id_locks(), own_descriptors())
    killed = 0
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for first in range(0, RUNS, 100):
            killed += sum(pool.map(lambda number: run_one(number, victims, delays, longest), range(first, first + 100)))
            eventually("orphans end", reap_orphans)
    check(killed >= RUNS // 40, f"only {killed} of {len(victims)} were killed before their end")
    equal("one more run, which sweeps", run("--", "true").status, 0)
    eventually("its helper ends", reap_orphans)
    gone("instances and cgroups", before[0], traces)
    gone("mounts", before[2], mounts)
    gone("namespaces", before[1], namespaces)
    equal("state folder", files_below(state()), before[3])
    eventually("ranges of ids", lambda: id_locks() <= before[5])
    equal("descriptors of the test", own_descriptors(), before[6])
    now: dict[str, int] = {}
    try:
        eventually(
            "kernel objects",
            lambda: now.update(kernel_objects())
            or all(count <= before[4][name] + SLACK for name, count in now.items()),
            30,
        )
    except Failed:
        raise Failed(f"the kernel had {before[4]} and has {now}") from None


def instance_of(word: str) -> str:
    """The instance that the payload with this word belongs to, as its cgroup tells."""
    text = pathlib.Path(f"/proc/{payloads_with(word)[0]}/cgroup").read_text(encoding="ascii")
    return re.search(r"/hutch/([0-9a-f]{16})-", text)[1]


def traces_of(instance: str) -> set[str]:
    return {path for path in traces() if instance in path}


@case
def neighbour() -> None:
    "of two runs at once, kill -9 of one leaves the other alone, and a third sweeps only the dead one's"
    process = start_payload("tick", "100000", "survivor")
    equal("first tick", process.stdout.readline(), b"0\n")
    survivor = instance_of("survivor")
    before = traces_of(survivor)
    check(len(before) >= 2, f"the survivor has only {before}")
    killed = start_payload("sleep", "60", "victim")
    wait_ready(killed)
    victim = instance_of("victim")
    check(len(traces_of(victim)) >= 2, f"the victim has only {traces_of(victim)}")
    killed.kill()
    finish(killed)
    eventually("the victim's command is gone", lambda: not payloads_with("victim"))
    equal("a third", payload("exit", "0").status, 0)
    eventually("the victim's traces are gone", lambda: not traces_of(victim))
    equal("the survivor's traces", traces_of(survivor), before)
    equal("the survivor runs", (process.poll(), len(payloads_with("survivor"))), (None, 1))
    for number in range(1, 5):
        equal("it ticks", process.stdout.readline(), b"%d\n" % number)
    process.terminate()
    finish(process)


@case
def killed_runs() -> None:
    "kill -9 of a run takes its sandbox along at once, and nothing waits for a sweep"
    before = traces()
    for _ in range(portion(10)):
        process = start_payload("sleep", "60", "killed")
        wait_ready(process)
        mine = traces_of(instance_of("killed"))
        check(len(mine) >= 2, f"a run has only {mine}")
        process.kill()
        finish(process)
        eventually("its traces are gone", lambda: not mine & traces())
    gone("instances and cgroups", before, traces)


@case
def every_moment() -> None:
    "killed at each of the first milliseconds of its life, a run leaves nothing that the next does not sweep"
    before = traces()
    for step in range(40):
        process = subprocess.Popen(
            [HUTCH, "run", *payload_words("sleep", "60", "moment")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        time.sleep(step * SLOWNESS * (0.0002 if not SANITIZED else 0.001))
        process.kill()
        process.wait()
    eventually("every command is gone", lambda: not payloads_with("moment"))
    payload("exit", "0")
    gone("instances and cgroups", before, traces)


@case
def failures() -> None:
    "runs that fail on the way leave nothing either"
    run("--", "true")
    before = traces()
    objects = files_below(state())
    for _ in range(portion(20)):
        equal("late", run("--dir", f"{place()}:/usr/nowhere", "--", "true").status, 125)
        equal("no such command", payload("exit", "0", options=("--workdir", "/nowhere")).status != 0, True)
        equal("early", run("--memory", "1M", "--", "true").status, 125)
    gone("instances and cgroups", before, traces)
    equal("state folder", files_below(state()), objects)


@case
def dead_instances() -> None:
    "what a dead instance left is swept, what a living one or somebody else has is not"
    payload("exit", "0")
    foreign = pathlib.Path(INSTANCES) / "not-an-instance"
    dead = pathlib.Path(INSTANCES) / "0123456789abcdef"
    # "cpu" may be a link to "cpu,cpuacct".
    tops = {
        os.path.realpath(top)
        for top in glob.glob(f"{CGROUPS}/*/hutch") + glob.glob(f"{CGROUPS}/hutch")
        if os.path.exists(os.path.join(top, "cgroup.procs"))
    }
    try:
        foreign.write_text("")
        # Locked before it has its name: whoever sweeps meanwhile takes it for alive.
        with open(foreign.with_name("not-yet"), "w", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.rename(file.name, dead)
            for top in tops:
                os.mkdir(os.path.join(top, f"{dead.name}-1"))
                if top in (f"{CGROUPS}/unified/hutch", f"{CGROUPS}/hutch"):
                    os.mkdir(os.path.join(top, f"{dead.name}-1", "x1"))
            alive = traces_of(dead.name)
            equal("a run beside it", payload("exit", "0").status, 0)
            eventually("the run's own end", reap_orphans)
            equal("while it lives", traces_of(dead.name), alive)
        equal("a run after it", payload("exit", "0").status, 0)
        eventually("swept", lambda: not traces_of(dead.name))
        check(foreign.exists(), "a foreign file was removed")
    finally:
        foreign.unlink(missing_ok=True)
        dead.unlink(missing_ok=True)
        for top in tops:
            for below in ("x1", ""):
                path = os.path.join(top, f"{dead.name}-1", below)
                if os.path.isdir(path):
                    os.rmdir(path)


if __name__ == "__main__":
    main()
