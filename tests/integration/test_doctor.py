#!/usr/bin/env python3
"""hutch doctor: its words, its options, and what it says where all is there, or nothing may be tried."""

import atexit
import errno
import json
import os
import pty
import shutil
import subprocess
import tempfile

import deprive
from deprive import EPERM, call, capability
from doctors import (
    CAPABILITIES,
    CLONE_NEWNET,
    NEEDED,
    doctor,
    more,
    report,
)
from harness import (
    HUTCH,
    NOBODY,
    case,
    check,
    contains,
    environment,
    equal,
    folder,
    main,
    run,
    state,
)


@case
def everything() -> None:
    "on a machine that can run these tests everything that is needed is a yes, and a real sandbox was made"
    told = report()
    equal("needed, and missing", (told.can, told.no() & set(NEEDED)), (True, set()))
    equal("keys", set(told.whole), {"version", "kernel", "checks", "can_make_sandbox"})
    equal("kernel", told.whole["kernel"], os.uname().release)
    version = subprocess.run([HUTCH, "version"], capture_output=True, text=True, check=True).stdout
    equal("version", f"hutch {told.whole['version']}\n", version)
    equal("needed", [row["name"] for row in told.whole["checks"] if row["required"]], NEEDED)
    equal("needed, and not tried", told.untried() & set(NEEDED), set())
    for row in told.checks.values():
        equal("keys of a check", list(row), ["name", "ok", "required", "found", "meaning", "mend"])
        check(row["found"], f"nothing found: {row}")
    contains("a sandbox", told.checks["sandbox"]["found"], "made, a command run and all removed in", "ms (ready after")


@case
def table() -> None:
    "for people: one aligned line per check, and the answer last; no colour in a pipe"
    result = doctor()
    equal("status", (result.status, result.err), (0, ""))
    equal("the last line", result.lines[-1], "A sandbox can be made here.")
    rows = [line for line in result.lines if line.startswith(("  yes  ", "  no   ", "  ?    "))]
    equal("one line each", [line.split()[1] for line in rows], list(report().checks))
    width = max(len(line.split()[1]) for line in rows)
    check(all(line[7 + width : 9 + width] == "  " and line[9 + width] != " " for line in rows), "aligned")
    check(b"\033" not in result.out, "colour")


def on_terminal(**variables: str) -> bytes:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [HUTCH, "doctor"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(**variables)
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 65536):
            seen += part
    except OSError as error:
        equal("reading the terminal", error.errno, errno.EIO)
    os.close(ours)
    equal("status", process.wait(), 0)
    return seen


@case
def colour() -> None:
    "on a terminal yes is green; not with NO_COLOR, nor on a dumb one"
    check(b"\033[32myes\033[0m  root" in on_terminal(TERM="xterm"), "no colour on a terminal")
    check(b"\033" in on_terminal(TERM="xterm", NO_COLOR=""), "an empty NO_COLOR is none")
    check(b"\033" not in on_terminal(TERM="xterm", NO_COLOR="1"), "colour with NO_COLOR")
    check(b"\033" not in on_terminal(TERM="dumb"), "colour on a dumb terminal")


@case
def options() -> None:
    "options that are unknown, lack a value or have one too many; --help"
    for words, message in (
        (["--jsn"], "hutch: unknown option --jsn; did you mean --json?\n"),
        (["--frobnicate"], "hutch: unknown option --frobnicate; 'hutch doctor --help' lists them\n"),
        (["--json=yes"], "hutch: --json takes no value\n"),
        (["--state"], "hutch: --state needs a value: --state FOLDER\n"),
        (["overlay"], "hutch: 'overlay': hutch doctor takes options alone\n"),
    ):
        result = doctor(*words)
        equal(f"{words}", (result.status, result.out, result.err), (125, b"", message))
    result = doctor("--json", "--nosuch")
    equal("an error as JSON", (result.status, json.loads(result.out)["error"]["code"]), (125, "invalid"))
    for word in ("--help", "-h"):
        result = doctor(word)
        equal(f"{word}: status", (result.status, result.err), (0, ""))
        contains(word, result.text, "usage: hutch doctor [options]", "--json", "--state FOLDER", "Exit status: 0")
    help_text = subprocess.run([HUTCH, "help"], capture_output=True, text=True, check=True).stdout
    contains("hutch help", help_text, "  doctor    ")


@case
def output_lost() -> None:
    "an output that can't be written is an error of its own"
    with open("/dev/full", "wb") as full:
        result = doctor(stdout=full)
    equal("status", result.status, 125)
    contains("message", result.err, "writing standard output: No space left on device")


def open_copy() -> str:
    """Of hutch, where everybody may execute it."""
    path = tempfile.mkdtemp(prefix="hutch-test-", dir="/var/tmp")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    os.chmod(path, 0o755)
    return shutil.copy(HUTCH, path)


@case
def without_root() -> None:
    "another user: what can be said is said, the rest is not tried, and the sudo line is there"
    program = [open_copy()]
    told = report(without=deprive.user(NOBODY), program=program)
    equal("no", told.no() & set(NEEDED), {"root"})
    equal("mend", told.checks["root"]["mend"], "sudo hutch doctor")
    for name in ("sandbox", "overlay", "capabilities", "loop"):
        equal(name, told.checks[name]["found"], "not tried: needs root")
    for name in ("seccomp", "clone3", "cgroup-tree", "merged-usr"):
        equal(name, told.checks[name]["ok"], True)
    result = doctor(without=deprive.user(NOBODY), program=program)
    equal("status", (result.status, result.lines[-1]), (1, "No sandbox can be made here: root"))
    contains("the sudo line", result.text, "         mend   sudo hutch doctor\n")


@case
def user_namespace() -> None:
    "root of a user namespace is not enough"
    told = report(program=["unshare", "--user", "--map-root-user", HUTCH])
    equal("no", told.no() & set(NEEDED), {"root"})
    contains("root", told.checks["root"]["found"], "root of a user namespace")
    equal("container", told.checks["container"]["ok"], False)


@case
def containers() -> None:
    "a pid or cgroup namespace that is not the machine's first is told; alone it is no reason to make no sandbox"
    told = report(program=["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", HUTCH])
    equal("a pid namespace", (told.can, more(told)), (True, {"container"}))
    contains("a pid namespace", told.checks["container"]["found"], "its pid namespace is not the machine's first")
    told = report(program=["unshare", "--cgroup", HUTCH])
    contains("a cgroup namespace", told.checks["container"]["found"], "its cgroup namespace is not the machine's first")
    if not told.can:
        # Below a cgroup of its own it can't reach those of sandboxes.
        equal("a cgroup namespace", more(told), {"container", "clone-into-cgroup", "sandbox"})
        contains("a cgroup namespace", told.checks["clone-into-cgroup"]["mend"], "the machine's own cgroup namespace")


@case
def no_init() -> None:
    "hutch without its init: only the real sandbox shows it, with what was looked for"
    alone = folder("alone") / "hutch"
    shutil.copy(HUTCH, alone)
    told = report(program=[str(alone)])
    equal("no", (told.can, more(told)), (False, {"sandbox"}))
    contains("found", told.checks["sandbox"]["found"], "opening hutch-init")
    result = doctor(program=[str(alone)])
    equal("the last line", result.lines[-1], "No sandbox can be made here: sandbox")


@case
def failing_step() -> None:
    "a sandbox that fails in the middle is told with the step"
    told = report(without=call("unshare", EPERM, bits={0: CLONE_NEWNET}))
    equal("no", more(told), {"sandbox"})
    contains(
        "found",
        told.checks["sandbox"]["found"],
        "failed while making the network namespace (step network): making the network namespace: Operation not",
    )


@case
def run_points_here() -> None:
    "a run that fails for want of something on this machine points to the doctor; one that was asked wrongly does not"
    result = run("--", "true", preexec_fn=capability(CAPABILITIES["CAP_MKNOD"]))
    equal("status", result.status, 125)
    contains("the machine's fault", result.err, "; 'sudo hutch doctor' says what this machine lacks\n")
    result = run("--root", "/nonexistent", "--", "true")
    equal("status", result.status, 125)
    check("doctor" not in result.err, f"the caller's fault: {result.err!r}")


@case
def own_state() -> None:
    "a fresh state folder holds what a run leaves, and no more"
    fresh = folder("fresh")
    fresh.chmod(0o700)
    check(report("--state", str(fresh)).can, "a sandbox can be made")
    by_doctor = sorted(str(path.relative_to(fresh)) for path in fresh.glob("*/*"))
    check(run("--state", str(fresh), "--", "true").status == 0, "a run")
    equal("what is there", sorted(str(path.relative_to(fresh)) for path in fresh.glob("*/*")), by_doctor)
    check(state(), "the tests' own")


if __name__ == "__main__":
    main()
