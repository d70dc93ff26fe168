#!/usr/bin/env python3
"""Every system call and every allocation of keeper, zygote, helper, child, init and launcher fails once.

    test_faults.py [--all] [--seconds N] [--seed N] [--scenario NAME] [--role ROLE] [--key REGEX] [--fault NAME] [-v]

A first run writes down the calls that each process makes; each of them with each error is one case, and so is its
process being killed there. Without --all as many as fit into the time are drawn by lot. Each must end in one of two
ways: refused, with status 125 and a reason, or exactly as without the fault, which is accepted only of what is in the
table HARMLESS. Whatever happened, nothing is left.
"""

import argparse
import collections
import dataclasses
import difflib
import errno
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import harness  # noqa: E402

FOLDER = harness.BUILD / "tests/fault"
INJECT = str(FOLDER / "inject")
KILL = -1  # that process
ORPHAN = -2  # the keeper, at that moment of another
ERRORS = {name: getattr(errno, name) for name in ("ENOSYS", "EPERM", "ENOMEM", "EMFILE", "EINTR", "EAGAIN")}
FAULTS = {**ERRORS, "KILL": KILL, "ORPHAN": ORPHAN}
# The answers upon which the child makes its own /proc. From a call that masks the keeper's they mean no such thing.
WITHDRAWN = {name: getattr(errno, name) for name in ("EOPNOTSUPP", "ESRCH")}
MASKING = "(faccessat|open_tree|move_mount|mount_setattr) .*"
KILLED = 128 + 9
REFUSED = 125
NOT_EXECUTABLE = 126
LIMIT_SECONDS = 30

# They have no way to fail, whatever the kernel: musl and the C library rely on it.
INFALLIBLE = re.compile(r"(arch_prctl|set_tid_address|exit|exit_group|getpid|getppid|getuid|geteuid|getgid|umask)\b")
# Calls of a loop: the first, the second, one in the middle and the last stand for all.
LOOPS = "rt_sigaction|prctl 24|close"


@dataclasses.dataclass(frozen=True)
class Harmless:
    """Where a fault may go unnoticed: nothing that holds the sandbox depends on it."""

    role: str  # regular expressions
    key: str
    reason: str
    faults: tuple[str, ...] = ()  # all


ANY = ".*"
CLEANING = (
    "statfs|open hutch|open instances|(openat|unlinkat|mkdirat|faccessat) (hutch|instances) .*|munmap|poll"
    "|(read|write) (memory.usage_in_bytes|memory.current|cgroup.kill|memory.force_empty|memory.reclaim)"
    "|(flock|fstat|getdents64|fcntl) (instances|hutch|N).*|nanosleep|clock_nanosleep"
)
# A pipe with something in it never answers so.
IMPOSSIBLE = re.compile(r"readv: (ENOSYS|EPERM|EMFILE|EAGAIN)")
HARMLESS = [
    Harmless(ANY, "close", "the kernel closes the descriptor whatever it answers"),
    Harmless(ANY, "openat2 .*", "asked again: somebody mounted something meanwhile", ("EAGAIN",)),
    Harmless(ANY, "fcntl .* 2", "musl's open() sets close-on-exec again, which the open itself has set"),
    Harmless(ANY, "sendmsg .*|recvmsg .*|read .*|write .*|wait4|waitid.*|epoll_pwait|poll", "done again", ("EINTR",)),
    Harmless("keeper", "epoll_pwait|recvmsg .*", "asked again when there is something", ("EAGAIN",)),
    Harmless(ANY, "brk|mmap", "the allocator tries another way, and the next allocation says ENOMEM when there is none"),
    Harmless(ANY, "pipe2|signalfd4|epoll_create1|epoll_pwait|dup3|prlimit64 4", "musl falls back to the older call", ("ENOSYS",)),
    Harmless("keeper", "fcntl (null|pipe) 1", "taken for closed, and /dev/null opened at another number"),
    Harmless("keeper", "sched_[gs]etaffinity|getcpu", "where the zygote starts is a matter of speed"),
    Harmless("keeper", "statfs", "the other layout of cgroups is tried, and refused where it is not there"),
    Harmless("keeper", "fcntl ids 37", "the next range is taken", ("EAGAIN",)),
    Harmless("keeper", "prlimit64 [17]", "a higher limit of our own; the launcher sets the command's, or fails"),
    Harmless("keeper", "setsockopt socket 1 83", "SO_PASSRIGHTS is there since Linux 6.16; the receiver closes what comes"),
    Harmless("keeper", "rt_sigaction|ioctl .* 21523|read null", "the caller's signals and input, not the sandbox"),
    Harmless("keeper", "flock N", "taken for a sweep's: another name is taken", ("EAGAIN",)),
    Harmless("keeper", "poll", "whether a reader takes the output now; asked again"),
    Harmless("keeper", "sendmsg .*|write pipe", "said again; the last one leaves the cleaning to the zygote"),
    Harmless("keeper", "wait4|waitid", "for a process that ends by itself, and is the system's to reap when we end"),
    Harmless("keeper", "epoll_ctl eventpoll 2", "of a helper that has said all; its descriptor is closed as well"),
    Harmless("keeper", "pidfd_send_signal", "to a helper that has said all and ends by itself"),
    Harmless("init", "malloc", "for output: it stays in the pipe until there is memory"),
    Harmless("child", "keyctl 1", "the answer of a kernel without keys", ("ENOSYS",)),
    Harmless("child|zygote", "rt_sigprocmask .*", "musl's, around changes of ids; the mask is set again, and checked"),
    Harmless("zygote", "sched_getscheduler|getpriority", "what is not known to be ordinary is made so"),
    Harmless("zygote", "fcntl N-1 1030", "a second way to end the sandbox, should the keeper be killed"),
    Harmless("zygote", f"malloc|{CLEANING}", "cleaning up when nobody waits any more: it is tried again, and nothing is left"),
    Harmless("zygote", "ioctl / 2147768445", "without the shutdown what nobody wants is written to the image first"),
    Harmless("zygote", "recvmsg socket", "taken for the keeper's end: it ends the sandbox, whose command may be over"),
    Harmless("helper", "dup2|close_range|read pipe", "it holds a user namespace open until it is known, no more"),
    Harmless("init", "sendmsg .*|recvmsg .*", "said or heard again", ("EAGAIN",)),
    Harmless("init", "read signalfd", "it has woken us; who has ended is asked anyway"),
    Harmless("init", "statfs", "whether a full disk explains the end"),
    Harmless("init", "unlinkat / x0", "the keeper removes what is below as well"),
    Harmless("init", "mkdirat / x0", "made ahead: the command that needs it makes it, or does not start"),
    Harmless("init", "(openat|read) .*cgroup.events", "taken for not empty: what is left is ended, and its end waited for"),
    Harmless("init", "landlock_create_ruleset", "the answer of a kernel without Landlock, told in HELLO", ("ENOSYS",)),
    Harmless("init", "epoll_pwait", "once the command's end was told nobody waits for it; before, it ends the sandbox"),
    Harmless("init", "access ptmx", "no terminals, and HELLO says so"),
    Harmless("init", 'fstat ""|fcntl "" 1', "no /proc was handed over: a read-only one of its own keeps commands from starting"),
    Harmless("init", "readv", "read again", ("EINTR", "ENOMEM")),
    Harmless("init", "wait4", "an end that was heard of before", ("EINTR",)),
]


@dataclasses.dataclass(frozen=True)
class Case:
    scenario: str
    role: str
    key: str
    nth: int
    fault: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.role}: {self.key} ({self.nth}): {self.fault}"


@dataclasses.dataclass
class Scenario:
    name: str
    command: list[str]
    keys: str = ".*"
    faults: tuple[str, ...] = tuple(FAULTS)
    baseline: harness.Outcome | None = None
    calls: list[tuple[str, str]] = dataclasses.field(default_factory=list)


def scenarios() -> list[Scenario]:
    root = harness.folder("view-root")
    for below in ("dev", "proc", "run", "tmp"):
        (root / below).mkdir(mode=0o755)
    shutil.copy(FOLDER / "view", root / "view")
    (root / "view").chmod(0o755)
    shared = harness.folder("shared")
    shutil.copy(FOLDER / "view", shared / "view")
    folder = ["--root", str(root), "--dir", f"{shared}:/mnt/shared:rw", "--cpus", "0.5", "--file-size", "1M"]
    host = ["--dir", f"{shared}:/mnt/shared:ro", "--user", "root"]
    faulty = str(FOLDER / "hutch")
    return [
        Scenario("folder", [harness.HUTCH, "run", *folder, "--", "/view"]),
        Scenario("host", [harness.HUTCH, "run", *host, "--", "/mnt/shared/view"]),
        Scenario("image", [harness.HUTCH, "run", "--root", str(root), "--disk", "1G", "--rw-root", "--", "/view"]),
        Scenario("masks", [harness.HUTCH, "run", *folder, "--", "/view"], MASKING, tuple(WITHDRAWN)),
        Scenario("memory", [faulty, "run", *folder, "--", "/view"], "malloc", ("ENOMEM",)),
        Scenario("memory of an image", [faulty, "run", "--disk", "1G", *host, "--", "/mnt/shared/view"], "malloc", ("ENOMEM",)),
    ]


def execute(scenario: Scenario, *target: str) -> tuple[harness.Outcome, str]:
    """The outcome, and what the injector wrote down."""
    log = harness.place() / "log"
    process = subprocess.Popen(
        [INJECT, "--log", str(log), *target, "--", *scenario.command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=harness.environment(),
    )
    outcome = harness.finish(process, seconds=LIMIT_SECONDS)
    return outcome, log.read_text(encoding="utf-8")


def belongings(scenario: Scenario) -> tuple[object, ...]:
    """What is on the machine whether or not a sandbox was made."""
    mounts = [line for line in open("/proc/self/mountinfo", encoding="utf-8")]
    files = sorted(str(path) for path in harness.place().rglob("*"))
    return mounts, files, sorted(os.listdir("/run/hutch"))


def prepare(scenario: Scenario) -> None:
    for _ in range(2):  # the first one may fill caches
        scenario.baseline, log = execute(scenario)
    harness.equal(f"status of {scenario.name} ({scenario.baseline.err})", scenario.baseline.status, 0)
    scenario.calls = [tuple(line.split("\t")) for line in log.splitlines()]


def cases(scenario: Scenario) -> list[Case]:
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    total = collections.Counter(scenario.calls)
    found = []
    for role, key in scenario.calls:
        seen[role, key] += 1
        # One of many the same.
        if re.fullmatch(LOOPS, key) and seen[role, key] not in (1, 2, total[role, key] // 2, total[role, key]):
            continue
        if INFALLIBLE.match(key) or role in ("unknown", "other") or not re.fullmatch(scenario.keys, key):
            continue
        found += [
            Case(scenario.name, role, key, seen[role, key], fault)
            for fault in scenario.faults
            if not IMPOSSIBLE.fullmatch(f"{key}: {fault}") and not (role == "keeper" and fault == "ORPHAN")
        ]
    return found


def is_harmless(case: Case) -> bool:
    return any(
        re.fullmatch(row.role, case.role)
        and re.fullmatch(row.key, case.key)
        and (not row.faults or case.fault in row.faults)
        for row in HARMLESS
    )


def view(outcome: harness.Outcome) -> list[str]:
    """What the command saw; mounts are listed in the order in which they were made, which is not always the same."""
    return sorted(outcome.text.splitlines(keepends=True))


def judge(case: Case, scenario: Scenario, outcome: harness.Outcome) -> str:
    """refused, unnoticed or killed; anything else is a Failed."""
    wanted = scenario.baseline
    if outcome.status == REFUSED:
        said = outcome.text.splitlines(keepends=True)
        harness.check(set(said[:-1]) <= set(view(wanted)), f"standard output of a refusal: {said}")
        harness.check(
            re.match(r"hutch: (failed while [^:]+ \(step [a-z]+\): \S.*|[^:]+: \S.*)\n", outcome.err),
            f"a refusal without a reason: {outcome.err!r}",
        )
        return "refused"
    if case.key.startswith("execve ") and case.fault == "EPERM" and outcome.status == NOT_EXECUTABLE:
        return "refused"
    if case.fault == "KILL" and outcome.status == KILLED and case.role in ("keeper", "launch"):
        return "killed"
    if case.fault == "ORPHAN" and outcome.status == KILLED:
        return "killed"
    harness.equal(f"status (standard error {outcome.err!r})", outcome.status, wanted.status)
    if view(outcome) != view(wanted):
        difference = difflib.unified_diff(view(wanted), view(outcome), n=0, lineterm="")
        raise harness.Failed(f"what the command sees: {list(difference)[2:]}")
    harness.equal("standard error", outcome.err, wanted.err)
    harness.check(FAULTS.get(case.fault, 0) < 0 or is_harmless(case), "it failed, and the command ran all the same")
    return "unnoticed"


def attempt(case: Case, scenario: Scenario) -> tuple[str, str]:
    """What became of it, and its last words."""
    before = harness.traces()
    things = belongings(scenario)
    error = {**FAULTS, **WITHDRAWN}[case.fault]
    outcome, log = execute(scenario, case.role, case.key, str(case.nth), str(error))
    verdict = judge(case, scenario, outcome) if "hit" in log else "missed"
    if error < 0:
        execute(scenario)  # whose sweep finds what a killed keeper left
    harness.nothing_left(before)
    for was, now in zip(things, belongings(scenario)):
        if was != now:
            raise harness.Failed(f"left: {[x for x in now if x not in was]}, gone: {[x for x in was if x not in now]}")
    return verdict, outcome.err.strip()


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="all cases, however long it takes")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--scenario", default=".*")
    parser.add_argument("--role", default=".*")
    parser.add_argument("--key", default=".*")
    parser.add_argument("--fault", default=".*")
    parser.add_argument("-v", "--verbose", action="store_true", help="one line per case")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if os.geteuid() != 0:
        sys.exit("these tests make sandboxes and need root")
    harness.ctypes.CDLL(None).prctl(harness.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    harness.state()
    chosen = [one for one in scenarios() if re.fullmatch(options.scenario, one.name)]
    pending: list[Case] = []
    for scenario in chosen:
        prepare(scenario)
        pending += cases(scenario)
    pending = [
        case
        for case in pending
        if re.fullmatch(options.role, case.role)
        and re.fullmatch(options.key, case.key)
        and re.fullmatch(options.fault, case.fault)
    ]
    total = len(pending)
    if not options.all:
        random.Random(options.seed).shuffle(pending)
        pending.sort(key=lambda case: case.key != "malloc")  # these are few: all of them
        print(f"# --seed {options.seed}: as many of {total} cases as fit into {options.seconds:g} s", flush=True)
    deadline = time.monotonic() + options.seconds
    verdicts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    failed: dict[str, list[str]] = collections.defaultdict(list)
    by_name = {scenario.name: scenario for scenario in chosen}
    for case in pending:
        if not options.all and time.monotonic() > deadline:
            break
        group = f"{case.scenario}: {case.role}"
        try:
            verdict, words = attempt(case, by_name[case.scenario])
        except harness.Failed as failure:
            verdict, words = "FAILED", str(failure)
            failed[group].append(f"{case}: {failure}")
            for pid in harness.children():
                os.kill(pid, 9)
            harness.eventually("the last process has ended", harness.reap_orphans)
        verdicts[group][verdict] += 1
        if options.verbose:
            print(f"# {verdict}\t{case}\t{words}", flush=True)
    for number, (group, counts) in enumerate(sorted(verdicts.items()), 1):
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        print(f"{'not ok' if failed[group] else 'ok'} {number} - {group}: {told}")
        for line in failed[group]:
            print(f"# {line}")
    print(f"1..{len(verdicts)}")
    sys.exit(1 if any(failed.values()) else 0)


if __name__ == "__main__":
    main()
