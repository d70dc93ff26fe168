#!/usr/bin/env python3
"""hutchd and its gateway: its confinement and restarts, and sandboxes that outlive it."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

from daemons import (
    BUILT,
    USER,
    Daemon,
    alive,
    can_connect,
    daemon,
)
from harness import (
    SANITIZED,
    SLOWNESS,
    Failed,
    case,
    check,
    contains,
    equal,
    eventually,
    folder,
    main,
    place,
    quick,
    status_of,
)


def user_id() -> int:
    return int(subprocess.run(["id", "-u", USER], capture_output=True, text=True, check=True).stdout)


@contextlib.contextmanager
def valuable() -> Iterator[None]:
    """What is started here is not what the kernel kills when memory is short; where one may say so."""
    path = pathlib.Path("/proc/self/oom_score_adj")
    before = path.read_text()
    with contextlib.suppress(PermissionError):
        path.write_text("-500")
    try:
        yield
    finally:
        path.write_text(before)


@case
def confined() -> None:
    "the gateway is the service user, without capabilities, with no_new_privs, a filter and namespaces of its own"
    with (
        valuable(),
        daemon(HUTCH_ADMIN_PASSWORD="a secret that is long", HUTCH_API_KEY="another-key-of-16-and-more") as one,
    ):
        one.ready()
        pid = one.gateway()
        fields = status_of(pathlib.Path(f"/proc/{pid}/status").read_text())
        equal("uids", fields["Uid"].split(), [str(user_id())] * 4)
        check(fields["Gid"].split()[0] != "0", "the group is root's")
        equal("groups", fields["Groups"], "")
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            equal(name, int(fields[name], 16), 0)
        equal("NoNewPrivs", fields["NoNewPrivs"], "1")
        equal("Seccomp", fields["Seccomp"], "2")
        for name in ("mnt", "pid", "ipc", "uts", "net"):
            check(
                os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"),
                f"it shares the {name} namespace",
            )
        score = int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())
        check(score >= 0, f"it outlives others when memory is short: {score}")
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        check(re.search(r"^Max processes +256 +256 ", limits, re.M) is not None, limits)
        equal("its root", sorted(os.listdir(f"/proc/{pid}/root")), sorted(expected_root()))
        equal("its state", (one.state / "gateway").stat().st_uid, user_id())
        environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        check(b"secret" not in environ and b"another" not in environ, f"credentials in {environ}")
        check("secret" not in one.log and "another" not in one.log, "credentials in the log")
        equal("end", one.end(), 0)


def expected_root() -> set[str]:
    usual = {name for name in ("lib", "lib64", "lib32") if os.path.lexists(f"/{name}")}
    sometimes = {"proc": SANITIZED, "etc": os.path.exists("/etc/ld.so.cache")}
    return usual | {"usr", "dev", "state"} | {name for name, is_there in sometimes.items() if is_there}


@case
def denied() -> None:
    "a gateway that was taken over can make no socket, no process, no code, and sees no file but its own"
    with daemon(stand_in="deny") as one:
        one.wait_report("done")
        outcomes = dict(line.split(" ", 1) for line in one.report() if line.count(" ") == 1)
        for name in ("socket", "netlink", "fork", "execve", "chown", "code", "linger", "fastopen"):
            equal(name, outcomes[name], "EPERM")
        for name in ("filter", "buffer", "ttl", "md5", "md5-ext", *(f"ao-{option}" for option in range(38, 44))):
            equal(name, outcomes[name], "EPERM")
        equal("what the gateway sets", outcomes["nodelay"], "done")
        check(can_connect(one.ports[0]), "its listener was made deaf")
        for name in ("setuid", "ptrace", "unshare"):
            equal(name, outcomes[name], "ENOSYS")
        equal("passwd", outcomes["passwd"], "ENOENT")
        if not SANITIZED:
            equal("proc", outcomes["proc"], "ENOENT")
        for name in ("usr", "root"):
            equal(name, outcomes[name], "EROFS")
        equal("its own folder", outcomes["state"], "done")
        equal("environment", outcomes["environment"], "clean")


@case
def standard_error() -> None:
    "the gateway's standard error is a pipe of its own; what it says there comes out whole, and harmless"
    with daemon() as one:
        one.ready()
        contains("standard error", os.readlink(f"/proc/{one.gateway()}/fd/2"), "pipe:")
        contains("first credentials", one.log, "shown once", "\ngateway:   API key   ", "\ngateway:   admin password")
        contains("its log", one.log, "program=hutch-gateway")
        # All of it is there before the gateway is said to be ready.
        check(one.log.index("admin password") < one.log.index("event=ready"), one.log)
    with daemon("server: {drain_seconds: 0}\n", stand_in="noisy") as one:
        one.wait_report("done")
        outcomes = dict(line.split(" ", 1) for line in one.report() if line.count(" ") == 1)
        equal("reading it", outcomes["read"], "EBADF")
        equal("cutting it", outcomes["truncate"], "EINVAL")
        equal("shutting it down", outcomes["shutdown"], "ENOTSOCK")
        os.kill(one.gateway(), signal.SIGKILL)
        one.wait_event("gateway-ended")
        said = one.log[: one.log.index("event=gateway-ended")]
        contains("what it said", said, "\ngateway: red \\x1b[31m\n", "\ngateway: last word\n")
        contains("what it imitated", said, "\ngateway: time=0 level=info program=hutchd event=imitated\n")
        lines = said.splitlines()
        flood = [line.removeprefix("gateway: ") for line in lines]
        equal("the flood", sum(len(line) for line in flood if set(line) == {"y"}), 100_000)
        check(max(map(len, lines)) < 4096, "a line was not cut")
        equal("its own", [line for line in lines if not line.startswith(("gateway: ", "time="))], [])
    with daemon("server: {drain_seconds: 0}\nlogging: {format: json}\n", stand_in="noisy") as one:
        one.wait_report("done")
        eventually("what it imitated", lambda: "event=imitated" in one.log)
        lines = [json.loads(line) for line in one.log.splitlines()]
        imitated = [line for line in lines if "imitated" in str(line)]
        equal("as JSON", [(line["source"], "program" in line) for line in imitated], [("gateway", False)])


@case
def service_user() -> None:
    "a service user that is root, has root's group or is not there is refused"
    passwd = place() / "passwd"
    script = 'mount --bind "$0" /etc/passwd && exec "$1" --check-config'
    for ids, message in (("999:0", "has root's group"), ("0:999", "there is no user"), ("", "there is no user")):
        passwd.write_text("root:x:0:0::/:/bin/sh\n" + (f"{USER}:x:{ids}::/:/bin/false\n" if ids else ""))
        words = ["unshare", "--mount", "sh", "-c", script, passwd, BUILT / "hutchd"]
        outcome = subprocess.run(words, capture_output=True, text=True, check=False)
        equal(f"status with {ids}", outcome.returncode, 1)
        contains(f"message with {ids}", outcome.stderr, message)


@case
def presets() -> None:
    "the first credentials come through a descriptor"
    with daemon(stand_in="idle", HUTCH_ADMIN_PASSWORD="pass word", HUTCH_API_KEY="k") as one:
        one.wait_report("done")
        contains("report", one.report()[0], "password=pass word", "key=k", "listeners=2")
    with daemon(stand_in="idle", HUTCH_API_KEY="k2") as one:
        one.wait_report("done")
        contains("report", one.report()[0], "password=- key=k2")


def memory_of(pid: int) -> bytes:
    """What it can write to: its stack, on which the environment lies, its data and its heap."""
    found = []
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, access = line.split()[:2]
            first, last = (int(number, 16) for number in span.split("-"))
            if access.startswith("rw") and last - first < 64 << 20:
                memory.seek(first)
                with contextlib.suppress(OSError):
                    found.append(memory.read(last - first))
    return b"".join(found)


@case
def forgotten() -> None:
    "the first credentials are in nobody's environment or memory any more, not in hutchd's nor in its zygote's"
    with daemon(HUTCH_ADMIN_PASSWORD="a secret that is long", HUTCH_API_KEY="another-key-of-16-and-more") as one:
        one.ready()
        children = pathlib.Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text().split()
        check(len(children) >= 2, f"no zygote and gateway: {children}")
        for pid in (one.process.pid, *map(int, children)):
            environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            check(b"secret that" not in environ and b"another-key" not in environ, f"credentials in {pid}: {environ}")
            if pid != one.gateway() and not SANITIZED:
                memory = memory_of(pid)
                check(len(memory) > 4096, "no memory to look at")
                check(b"secret that" not in memory and b"another-key" not in memory, f"credentials in {pid}")
        left = [path for path in pathlib.Path(f"/proc/{one.process.pid}/fd").iterdir() if "presets" in os.readlink(path)]
        equal("what is left for the next gateway: the key", [len(path.read_bytes()) for path in left], [2 + 32])


@case
def comes_back() -> None:
    "a gateway that was killed comes back, later each time; its listeners never close"
    with daemon() as one:
        one.ready()
        (port,) = one.ports
        for count in range(1, 5):
            old = one.gateway()
            os.kill(old, signal.SIGKILL)
            one.wait_event("gateway-ended", count)
            check(can_connect(port), "the port was closed")
            one.wait_event("ready", count + 1)
            check(one.gateway() not in (0, old), "it is the old one")
        pauses = [int(event["restart_ms"]) for event in one.events("gateway-ended")]
        check(all(abs(a - b) <= 2 * SLOWNESS for a, b in zip(pauses, [100, 200, 400, 800])), f"pauses {pauses}")
        equal("signal", one.events("gateway-ended")[0]["signal"], "9")


@case
def deaf() -> None:
    "a gateway that shut its listeners down leaves none of that to the next one"
    with daemon(stand_in="deaf") as one:
        one.wait_report("done")
        equal("what it did", [line for line in one.report() if line.startswith("shutdown")], ["shutdown done"] * 2)
        (port,) = one.ports
        check(can_connect(port), "nobody listens any more")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(one.state / "api.sock"))
        equal("reopened", one.events("listeners-reopened")[0]["count"], "2")


@case
def gives_up() -> None:
    "a gateway that is never ready ends the daemon after five times, with a reason"
    with daemon(stand_in="crash") as one:
        equal("status", one.wait(), 1)
        equal("tries", len(one.events("gateway-ended")), 5)
        contains("log", one.log, "again and again", "status=3")


@case
def lingers() -> None:
    "a gateway that says no more and does not end is ended, and the next starts"
    with daemon(stand_in="linger") as one:
        # To wait for its end takes longer than the first pause.
        equal("pause", one.wait_event("gateway-ended")[0]["restart_ms"], "0")
        one.wait_event("ready", 2)


LINES = 5_000_000


@case
def goes_on() -> None:
    "what runs goes on running when the gateway is killed, and its output continues at the right byte: 5,000,000 lines"
    expected = hashlib.sha256("".join(f"{i}\n" for i in range(1, LINES + 1)).encode()).hexdigest()
    with daemon(stand_in="exec", HUTCH_TEST_SCRIPT=f"seq 1 {LINES}; exit 5") as one:
        output = one.state / "gateway" / "output"

        def size() -> int:
            return output.stat().st_size if output.exists() else 0

        def has_ended() -> bool:
            return "exit 5" in one.report()

        for count in range(3):
            so_far = size()
            try:
                eventually("some output", lambda: has_ended() or size() > so_far)
            except Failed as failed:
                raise Failed(f"{failed}: {size()} bytes; {one.report()}; {one.log}") from None
            if has_ended():
                break
            os.kill(one.gateway(), signal.SIGKILL)
            one.wait_event("ready", count + 2)
            check(one.events("ready")[-1]["sandboxes"] == "1", f"no sandbox left: {one.log} {one.report()}")
        one.wait_report("exit 5")
        check("adopted 7" in one.report(), f"never adopted: {one.report()}")
        equal("output", hashlib.sha256(output.read_bytes()).hexdigest(), expected)
        equal("end", one.end(), 0)


@case
def silent() -> None:
    "a gateway that was stopped is replaced within the time for an answer, and what runs goes on"
    script = "echo one; while ! [ -e /workspace/go ]; do sleep 0.1; done & sleep 3; echo two; touch /workspace/go; exit 5"
    with daemon(stand_in="exec", HUTCH_GATEWAY_ANSWER_SECONDS="1", HUTCH_TEST_SCRIPT=script) as one:
        output = one.state / "gateway" / "output"
        eventually("output", lambda: output.exists() and output.stat().st_size > 0)
        stopped = one.gateway()
        began = time.monotonic()
        os.kill(stopped, signal.SIGSTOP)
        contains("reason", one.wait_event("gateway-ended")[0]["reason"], "it has not answered for 1 s")
        quick("the replacement", time.monotonic() - began, 4)
        check(not alive(stopped), "it still lives")
        one.wait_event("ready", 2)
        one.wait_report("exit 5")
        equal("output", output.read_text(), "one\ntwo\n")
        equal("replaced", len(one.events("gateway-ended")), 1)
    with daemon(HUTCH_GATEWAY_ANSWER_SECONDS="1") as one:
        one.ready()
        time.sleep(2.5)
        equal("one that answers", one.events("gateway-ended"), [])


def gateway_cgroups(one: Daemon) -> dict[str, pathlib.Path]:
    """The folders of the gateway's cgroups, by controller; the unified one is ""."""
    found = {}
    for line in pathlib.Path(f"/proc/{one.gateway()}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        mount = "unified" if os.path.isdir("/sys/fs/cgroup/unified") else ""
        found[controllers] = pathlib.Path("/sys/fs/cgroup") / (controllers or mount) / path.lstrip("/")
    return found


@case
def enclosed() -> None:
    "the gateway has a cgroup with its limits; a new configuration changes them, and its end is the end of all in it"
    with daemon("gateway: {memory_mb: 512, max_processes: 100}\n") as one:
        one.ready()
        folders = gateway_cgroups(one)
        hybrid = "memory" in folders
        memory = folders["memory"] / "memory.limit_in_bytes" if hybrid else folders[""] / "memory.max"
        processes = folders["pids" if hybrid else ""] / "pids.max"
        check(all("-gateway" in folders[name].name for name in (("memory", "pids", "") if hybrid else ("",))), folders)
        equal("memory", int(memory.read_text()), 512 << 20)
        equal("processes", int(processes.read_text()), 101)
        one.config.write_text("gateway: {memory_mb: 600}\n")
        one.signal(signal.SIGHUP)
        one.wait_event("reloaded")
        equal("memory", int(memory.read_text()), 600 << 20)
        os.kill(one.gateway(), signal.SIGKILL)
        one.wait_event("ready", 2)
        check(gateway_cgroups(one)[""] != folders[""], "the next one has the same")
        check(not folders[""].exists() and not memory.exists(), "the last one's is still there")


@case
def too_large() -> None:
    "a gateway that needs more memory than it may is started again, and the log says why"
    with daemon("gateway: {memory_mb: 64}\n", stand_in="greedy") as one:
        contains("reason", one.wait_event("gateway-ended")[0]["reason"], "more memory than gateway.memory_mb permits")
        one.wait_event("ready", 2)


@case
def adopts_many() -> None:
    "a new gateway gets every sandbox there is, in pieces, and can end them"
    count = 150
    with daemon(stand_in="many", HUTCH_TEST_SANDBOXES=str(count)) as one:
        one.wait_report("done")
        os.kill(one.gateway(), signal.SIGKILL)
        one.wait_report("done", 2)
        contains("report", "\n".join(one.report()), f"start adopted={count} ")
        eventually("all are gone", lambda: one.report().count("heard GONE") == count)
        equal("end", one.end(), 0)


@case
def misbehaves() -> None:
    "a gateway that says what its state does not permit is replaced"
    with daemon(stand_in="violate") as one:
        event = one.wait_event("gateway-ended")[0]
        contains("reason", event["reason"], "Bad message")
        one.wait_event("ready", 2)


@case
def other_version() -> None:
    "a gateway of another version drains the sandboxes and ends the daemon"
    with daemon(stand_in="version") as one:
        equal("status", one.wait(), 1)
        contains("log", one.log, "another version")


@case
def shares() -> None:
    "a share is named and its path stays beneath it; a folder of the gateway's own is refused"
    data = folder("shared")
    sub = data / "sub"
    sub.mkdir()
    (sub / "given").write_text("from the host\n")
    os.chown(sub, 12345, 12346)
    os.chmod(sub, 0o700)
    os.chown(sub / "given", 12345, 12346)
    with daemon(f"shares: {{data: {{folder: {data}, access: rw}}}}\n", stand_in="shares") as one:
        one.wait_report("done")
        refused = [line for line in one.report() if line.startswith("refused")]
        equal("refused", len(refused), 3)
        contains("out of it", refused[0], "ross-device link")
        contains("unknown", refused[1], "there is no share 'other'")
        contains("a descriptor", refused[2], "named here, not handed over")
        equal("output", (one.state / "gateway" / "output").read_text(), "from the host\n")
        made = (sub / "made").stat()
        equal("owner", (made.st_uid, made.st_gid), (12345, 12346))
    with daemon(f"shares: {{data: {{folder: {data}, access: ro}}}}\n", stand_in="shares") as one:
        one.wait_report("done")
        contains("read-only", one.report()[-2], "may only be read")


if __name__ == "__main__":
    main()
