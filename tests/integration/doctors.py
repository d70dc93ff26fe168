"""hutch doctor to run, whole or deprived of something, and what it says."""

import functools
import json
import os
import subprocess
from collections.abc import Iterable

from deprive import Step
from harness import (
    HUTCH,
    Outcome,
    check,
    contains,
    environment,
    equal,
    finish,
)

NEEDED = (
    "kernel root capabilities system-calls clone3 user-namespace pid-namespace mount-namespace network-namespace "
    "ipc-namespace uts-namespace cgroup-namespace runtime-folder ids cgroup-tree swap-limit cgroup-limits "
    "clone-into-cgroup cgroup-kill mount-api devices state-folder idmap tmpfs overlay proc seccomp keyring merged-usr "
    "sandbox"
).split()
CLONE_NEWNET, CLONE_NEWCGROUP = 0x40000000, 0x02000000
CAPABILITIES = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_ADMIN": 12,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_MKNOD": 27,
}


class Report:
    def __init__(self, result: Outcome) -> None:
        self.result = result
        self.whole = json.loads(result.out)
        self.checks = {row["name"]: row for row in self.whole["checks"]}
        self.can = self.whole["can_make_sandbox"]

    def no(self) -> set[str]:
        return {name for name, row in self.checks.items() if row["ok"] is False}

    def untried(self) -> set[str]:
        return {name for name, row in self.checks.items() if row["ok"] is None}


def doctor(*words: str, without: Step | None = None, program: list[str] | None = None, **popen: object) -> Outcome:
    popen.setdefault("env", environment())
    process = subprocess.Popen(
        [*(program or [HUTCH]), "doctor", *words],
        stdin=subprocess.DEVNULL,
        stdout=popen.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        preexec_fn=without,
        close_fds=False,  # what it opened for the program stays open
        **popen,
    )
    return finish(process, seconds=60)


def report(*words: str, **popen: object) -> Report:
    result = doctor("--json", *words, **popen)
    check(result.out, f"no output; status {result.status}, stderr {result.err!r}")
    told = Report(result)
    equal("status", (result.status, result.err), (0 if told.can else 1, ""))
    equal("verdict", told.can, all(told.checks[name]["ok"] is True for name in NEEDED))
    for row in told.checks.values():
        check(
            (row["mend"] is not None and row["meaning"] is not None) == (row["ok"] is False), f"meaning and mend: {row}"
        )
    return told


def some(rows: Iterable) -> list:
    """All of them; on a machine that is emulated every third."""
    return list(rows)[:: 1 if float(os.environ.get("HUTCH_TEST_SLOWNESS", "1")) <= 1 else 3]


@functools.cache
def lacking() -> frozenset[str]:
    """What only some options need and this machine does not have anyway."""
    told = report()
    check(told.can, f"a sandbox can be made: {told.no()}")
    return frozenset(told.no())


def more(told: Report) -> set[str]:
    """What says no besides; a filter that took something away is one above Hutch."""
    return told.no() - lacking() - {"own-filter"}


def taken(
    name: str,
    without: Step,
    found: str,
    mend: str,
    *,
    besides: tuple[str, ...] = (),
    sandbox: bool | None = None,
    **popen: object,
) -> Report:
    """Without it the check says no with these words, and so does nothing but `besides`; a sandbox can be made exactly
    when the check is not needed. `sandbox`: whether the real one is still made, when the two must differ."""
    told = report(without=without, **popen)
    row = told.checks[name]
    equal(f"{name}: {row}", row["ok"], False)
    contains(name, row["found"], found)
    contains(name, row["mend"], mend)
    needed = name in NEEDED
    equal(f"{name}: verdict", told.can, not needed)
    made = sandbox if sandbox is not None else not needed
    equal(f"{name}: the real sandbox: {told.checks['sandbox']['found']}", told.checks["sandbox"]["ok"], made)
    expected = {name, *besides} | ({"sandbox"} if not made else set())
    equal(f"{name}: what else says no", more(told) | {name}, expected - lacking() | {name})
    return told
