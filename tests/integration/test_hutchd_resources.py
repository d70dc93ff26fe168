#!/usr/bin/env python3
"""hutchd among many sandboxes: what one of them takes is not taken from hutchd nor from its neighbours."""

import contextlib
import glob
import os
import pathlib
import time

from daemons import Daemon, daemon
from harness import case, check, contains, equal, eventually, folder, main, portion


def helpers_of(one: Daemon) -> list[int]:
    """Processes that are hutchd's own program and no sandbox to be, but for the first, the zygote."""

    def marks(pid: int) -> tuple[str, str]:
        return os.readlink(f"/proc/{pid}/exe"), os.readlink(f"/proc/{pid}/ns/user")

    found = []
    path = pathlib.Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children")
    for pid in map(int, path.read_text().split()):
        with contextlib.suppress(OSError):
            if marks(pid) == marks(one.process.pid):
                found.append(pid)
    return found[1:]


@case
def reclaims_aside() -> None:
    "while the memory of a sandbox that has ended is being given back, the next one is made"
    data = folder("cached")
    with open(data / "large", "wb") as file:
        file.truncate(1536 << 20)
    gone = 0

    def is_gone() -> bool:
        nonlocal gone
        left = glob.glob("/sys/fs/cgroup/memory/hutch/*-7") + glob.glob("/sys/fs/cgroup/hutch/*-7")
        if not left:
            gone = time.monotonic_ns()
        return not left

    with daemon(f"shares: {{data: {{folder: {data}, access: ro}}}}\n", stand_in="reclaim") as one:
        one.wait_report("start")
        eventually("the first", lambda: not is_gone())
        opened: dict[int, set[int]] = {}

        def look() -> bool:
            for pid in helpers_of(one):
                with contextlib.suppress(OSError):
                    opened[pid] = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
            return is_gone()

        eventually("its end", look, 30)
        check(opened, "no helper was seen")
        check(all(len(fds) <= 6 for fds in opened.values()), f"a helper has more than it needs: {opened}")
        one.wait_report("done")
        equal("told", [line for line in one.report() if line.startswith("heard")], ["heard GONE"])
        (created,) = (int(line.split()[1]) for line in one.report() if line.startswith("created"))
        check(created < gone, f"the next was made {(created - gone) / 1e6:.1f} ms after the last was gone")


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@case
def out_of_memory() -> None:
    "a tenant that runs out of memory all the time is told of, and costs hutchd little of its time, with 300 neighbours"
    with daemon(stand_in="oom", HUTCH_TEST_SANDBOXES=str(portion(300))) as one:
        one.wait_report("done")
        one.wait_report("heard OOM")
        before, began = cpu_seconds(one.process.pid), time.monotonic()
        time.sleep(1.5)
        share = (cpu_seconds(one.process.pid) - before) / (time.monotonic() - began)
        check(one.report().count("heard OOM") >= 3, "it does not run out of memory all the time")
        check(share < 0.1, f"hutchd spent {share:.0%} of its time")


@case
def disk_sizes() -> None:
    "a gateway gets no disk that is larger than the configuration permits; many at once are made one after the other"
    with daemon("sandbox: {max_disk_mb: 64, resource_limits: {disk_mb: 64}}\nprofiles: {}\n", stand_in="disks") as one:
        most = 0
        while "done" not in one.report():
            check(one.process.poll() is None, f"hutchd ended: {one.log}")
            most = max(most, len(helpers_of(one)))
        contains("refused", "\n".join(one.report()), "refused the disk is larger than the configuration permits (64 MiB)")
        contains("made", "\n".join(one.report()), "made 40")
        check(0 < most <= 12, f"{most} helpers at once")


if __name__ == "__main__":
    main()
