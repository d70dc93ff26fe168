#!/usr/bin/env python3
"""hutchd: configuration, the gateway's confinement and restarts, sandboxes that outlive it, signals, and the end."""

import contextlib
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

from harness import (
    SLOWNESS,
    HUTCH,
    SANITIZED,
    Failed,
    Outcome,
    Skipped,
    case,
    check,
    contains,
    equal,
    eventually,
    finish,
    folder,
    main,
    place,
    portion,
    quick,
    status_of,
)

BUILT = pathlib.Path(HUTCH).parent
STAND_IN = os.environ.get("STAND_IN", str(BUILT / "tests/integration/stand-in"))
USER = "hutch"


class Daemon:
    """A hutchd on a state folder of its own, which nobody but root can even reach."""

    def __init__(self, config: str = "", *words: str, stand_in: str = "", state: str = "daemon", **env: str) -> None:
        self.state = place() / state
        self.log_path = place() / f"{state}.log"
        self.config = place() / f"{state}.yaml"
        self.config.write_text(config)
        program = BUILT / "hutchd"
        if stand_in:
            program = with_stand_in() / "hutchd"
            env["HUTCH_TEST_MODE"] = stand_in
        if not any(word.startswith("--listen") for word in words) and "listen" not in config:
            words += ("--listen", "127.0.0.1:0")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, "--config", self.config, "--state", self.state, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={"PATH": os.environ["PATH"], **env},
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def events(self, name: str) -> list[dict[str, str]]:
        """Of hutchd's own: what others say is marked."""
        found = []
        for line in self.log.splitlines():
            if not line.startswith("time="):
                continue
            fields = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line))
            if fields.get("event") == name and fields.get("program") == "hutchd":
                found.append(fields)
        return found

    def wait_event(self, name: str, count: int = 1, seconds: float = 20) -> list[dict[str, str]]:
        def is_there() -> bool:
            if self.process.poll() is not None and len(self.events(name)) < count:
                raise Failed(f"hutchd ended while waiting for {count} x {name}: {self.log}")
            return len(self.events(name)) >= count

        try:
            eventually(name, is_there, seconds)
        except Failed as failed:
            raise Failed(f"{failed}; log: {self.log}") from None
        return self.events(name)

    def ready(self) -> "Daemon":
        self.wait_event("ready")
        return self

    @property
    def ports(self) -> list[int]:
        return [int(e["address"].rsplit(":", 1)[1]) for e in self.events("listening") if ":" in e["address"]]

    def gateway(self) -> int:
        """The gateway's pid."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in map(int, children):
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() in ("hutch-gateway", "exe"):
                    return pid
                if b"--serve" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return 0

    def report(self) -> list[str]:
        path = self.state / "gateway" / "report"
        return path.read_text().splitlines() if path.exists() else []

    def wait_report(self, line: str, count: int = 1, seconds: float = 30) -> None:
        try:
            eventually(line, lambda: sum(text.startswith(line) for text in self.report()) >= count, seconds)
        except Failed as failed:
            raise Failed(f"{failed}; report: {self.report()}; log: {self.log}") from None

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, seconds: float = 30) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.wait(seconds)

    def wait(self, seconds: float = 30) -> int:
        return finish(self.process, seconds=seconds).status


@contextlib.contextmanager
def daemon(config: str = "", *words: str, clean: bool = True, **more: str) -> Iterator[Daemon]:
    state = place() / more.get("state", "daemon")
    if clean:
        shutil.rmtree(state, ignore_errors=True)
    one = Daemon(config, *words, **more)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.terminate()
            try:
                one.process.wait(30)
            except subprocess.TimeoutExpired:
                one.process.kill()
                one.process.wait()
        one.process.stdout.close()


def with_stand_in() -> pathlib.Path:
    """A folder with hutchd in it, beside a gateway of the tests' own."""
    path = place() / "programs"
    if not path.exists():
        path.mkdir(mode=0o700)
        shutil.copy(BUILT / "hutchd", path / "hutchd")
        shutil.copy(BUILT / "hutch-init", path / "hutch-init")
        shutil.copy(STAND_IN, path / "hutch-gateway")
        for name in ("hutch-init", "hutch-gateway"):
            (path / name).chmod(0o755)
    return path


def hutchd(*words: str, **env: str) -> Outcome:
    process = subprocess.Popen(
        [BUILT / "hutchd", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **env},
    )
    return finish(process)


def check_config(text: str, **env: str) -> Outcome:
    path = place() / "checked.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return hutchd("--check-config", "--config", str(path), **env)


def user_id() -> int:
    return int(subprocess.run(["id", "-u", USER], capture_output=True, text=True, check=True).stdout)


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


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
    with daemon(stand_in="noisy") as one:
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
    with daemon("logging: {format: json}\n", stand_in="noisy") as one:
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
        left = [os.readlink(path) for path in pathlib.Path(f"/proc/{one.process.pid}/fd").iterdir()]
        check(not any("presets" in name for name in left), f"hutchd still has them: {left}")


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
def second_daemon() -> None:
    "a second daemon on the same state folder is refused, and the first is not disturbed"
    with daemon() as one:
        one.ready()
        other = hutchd("--state", str(one.state), "--listen", "127.0.0.1:0", "--config", str(one.config))
        equal("status", other.status, 1)
        contains("message", other.err, "another hutchd uses the state folder", "--state")
        check(can_connect(one.ports[0]), "the first was disturbed")
        equal("restarts", one.events("gateway-ended"), [])


@case
def side_by_side() -> None:
    "two daemons with folders of their own live side by side"
    with daemon() as one, daemon(state="daemon2") as two:
        one.ready()
        two.ready()
        check(can_connect(one.ports[0]) and can_connect(two.ports[0]), "one of them does not listen")


@case
def port_in_use() -> None:
    "a port in use is a clear message and no damage"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with daemon("", "--listen", address) as one:
            equal("status", one.wait(), 1)
            contains("message", one.log, f"listening on {address}: another program does", "in use")
            check(not (one.state / "api.sock").exists(), "a socket file was left")


@case
def state_folder() -> None:
    "a state folder that is not root's alone is refused"
    path = folder("open-state")
    path.chmod(0o755)
    outcome = hutchd("--state", str(path), "--listen", "127.0.0.1:0")
    equal("status", outcome.status, 1)
    contains("message", outcome.err, "must be root's alone", "chmod 0700")
    path.chmod(0o700)
    (path / "gateway").mkdir()
    outcome = hutchd("--state", str(path), "--listen", "127.0.0.1:0")
    contains("message", outcome.err, "must be the service user's alone")


BAD = [
    ("sandbox:\n  max_concurent: 5\n", "checked.yaml:2:3: sandbox.max_concurent: ", "did you mean max_concurrent?"),
    ("sandbox:\n  max_concurrent: lots\n", "checked.yaml:2:3: ", "expected a whole number from 1 to 16384, not 'lots'"),
    ("server:\n  listen: [example.org:80]\n", "server.listen: ", "not 'example.org:80'"),
    ("server: {listen: [0.0.0.0:80], auth: off}\n", "server.auth: ", "loopback"),
    ("server: {tls_key: /x}\n", "server.tls_certificate: ", "go together"),
    ("a: &x [*x]\n", "checked.yaml:1:", ""),
    ("[" * 5000, "checked.yaml:1:", ""),
    ("a: \x07\n", "checked.yaml:1:4: ", "control characters"),
    ("sandbox: {default_template: nope}\n", "sandbox.default_template: ", "no template 'nope'"),
    ("templates: {x: /does/not/exist}\n", "templates.x: ", "No such file or directory"),
    ("shares: {x: {folder: /proc/self/exe, access: ro}}\n", "shares.x: ", "/proc/self/exe"),
    ("server: {tls_certificate: /does/not, tls_key: /exist}\n", "server.tls_certificate: ", "No such file"),
    ("server: {tls_certificate: /etc/hostname, tls_key: /etc/hostname}\n", "tls_certificate: ", "no PEM certificate"),
    ("#" * 200000, "larger than 128 KiB", ""),
]


@case
def bad_configuration() -> None:
    "a bad configuration: file, line, column, key, what was expected, did you mean; and nothing starts"
    for text, *parts in BAD:
        outcome = check_config(text)
        equal(f"status of {text[:40]!r}", outcome.status, 1)
        contains(f"message of {text[:40]!r}", outcome.err, *parts)
    outcome = check_config("", HUTCH_SERVER_LISTENS="x")
    equal("status", outcome.status, 1)
    contains("environment", outcome.err, "HUTCH_SERVER_LISTENS: ", "did you mean HUTCH_SERVER_LISTEN?")
    with daemon("sandbox: {max_concurrent: 0}\n") as one:
        equal("status", one.wait(), 1)
        contains("log", one.log, "sandbox.max_concurrent", "not in order")
        equal("listening", one.events("listening"), [])
    outcome = hutchd("--check-config", "--config", "/does/not/exist")
    equal("status", outcome.status, 1)
    contains("message", outcome.err, "opening the configuration /does/not/exist: No such file")
    outcome = hutchd("--check-config", "--config", "/etc")
    contains("message", outcome.err, "Is a directory")


@case
def example() -> None:
    "the example is in order, and so is a file with nothing in it"
    words = [BUILT / "hutch-gateway", "--print-example"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    check(text.count("\n") > 100, "the example is short")
    for config in (text, ""):
        outcome = check_config(config)
        equal("status", outcome.status, 0)
        contains("answer", outcome.text, "yes:", "is in order")


@case
def options() -> None:
    "options: unknown ones, values, help and version"
    outcome = hutchd("--sate", "/x")
    equal("status", outcome.status, 2)
    contains("message", outcome.err, "unknown option '--sate'; did you mean --state?")
    equal("status", hutchd("--state").status, 2)
    equal("status", hutchd("--version=1").status, 2)
    contains("help", hutchd("--help").text, "--check-config", "HUTCH_ADMIN_PASSWORD")
    contains("version", hutchd("--version").text, "hutchd ")
    many = ",".join(f"[0000:0000:0000:0000:0000:0000:0000:0001]:{port}" for port in range(10000, 10016))
    equal("many addresses", hutchd("--check-config", "--listen", many).status, 0)
    outcome = hutchd("--check-config", "--listen", many + "," * 2000)
    equal("status", outcome.status, 1)
    contains("message", outcome.err, "--listen takes at most 20", "server.listen")


@case
def beyond_loopback() -> None:
    "an address beyond loopback without a credential is refused; with one it is served"
    with daemon("server: {listen: ['0.0.0.0:0']}\n") as one:
        equal("status", one.wait(), 1)
        contains("log", one.log, "beyond loopback", "HUTCH_ADMIN_PASSWORD")
    with daemon("server: {listen: ['0.0.0.0:0']}\n", HUTCH_API_KEY="a-key-of-16-and-more") as one:
        one.ready()


def make_certificate(name: str) -> tuple[pathlib.Path, pathlib.Path]:
    if shutil.which("openssl") is None:
        raise Skipped("no openssl here")
    key, certificate = place() / f"{name}.key", place() / f"{name}.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    return certificate, key


@case
def certificates() -> None:
    "a certificate that does not match its key is refused, at start and on SIGHUP; one that does is taken"
    certificate, key = make_certificate("one")
    _, other = make_certificate("other")
    good = f"server: {{listen: ['127.0.0.1:0'], tls_certificate: {certificate}, tls_key: {key}}}\n"
    bad = f"server: {{listen: ['127.0.0.1:0'], tls_certificate: {certificate}, tls_key: {other}}}\n"
    contains("check", check_config(bad).err, "this key does not belong to the certificate")
    equal("status", check_config(good).status, 0)
    with daemon(bad) as one:
        equal("status", one.wait(), 1)
        contains("log", one.log, "this key does not belong to the certificate")
    with daemon(good) as one:
        one.ready()
        one.config.write_text(bad)
        one.signal(signal.SIGHUP)
        contains("reason", one.wait_event("not-reloaded")[0]["reason"], "this key does not belong")


@case
def certificate_checker() -> None:
    "a checker of certificates that is never done is ended"
    certificate, key = make_certificate("slow")
    config = place() / "slow.yaml"
    config.write_text(f"server: {{tls_certificate: {certificate}, tls_key: {key}}}\n")
    program = with_stand_in() / "hutchd"
    began = time.monotonic()
    process = subprocess.Popen(
        [program, "--check-config", "--config", config],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HUTCH_TEST_MODE": "drip"},
    )
    outcome = finish(process, seconds=30)
    equal("status", outcome.status, 1)
    contains("message", outcome.err, "checking the certificate: ", "timed out")
    quick("the refusal", time.monotonic() - began, 14)


@case
def reload_bad() -> None:
    "SIGHUP with a bad file: the old configuration stays, and the log says why"
    with daemon("server: {listen: ['127.0.0.1:0']}\n") as one:
        one.ready()
        before = one.gateway()
        one.config.write_text("server: {lisen: []}\n")
        one.signal(signal.SIGHUP)
        contains("reason", one.wait_event("not-reloaded")[0]["reason"], "not in order")
        contains("log", one.log, "server.lisen: there is no such key; did you mean listen?")
        one.config.unlink()
        one.signal(signal.SIGHUP)
        contains("reason", one.wait_event("not-reloaded", 2)[1]["reason"], "No such file")
        check(can_connect(one.ports[0]), "it does not listen any more")
        equal("gateway", one.gateway(), before)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@case
def reload_good() -> None:
    "SIGHUP with a good file: new listeners are opened, old ones closed, those that stay are the same sockets"
    first, second, third = free_port(), free_port(), free_port()
    with daemon(f"server: {{listen: ['127.0.0.1:{first}', '127.0.0.1:{second}']}}\n") as one:
        one.ready()
        before = one.gateway()
        # Accepted by nobody yet: it must still be there afterwards.
        waiting = socket.create_connection(("127.0.0.1", first))
        one.config.write_text(
            f"server: {{listen: ['127.0.0.1:{first}', '127.0.0.1:{third}'], unix_socket: off}}\n"
            "logging: {format: json}\n"
        )
        one.signal(signal.SIGHUP)
        eventually("reloaded", lambda: '"event":"reloaded"' in one.log)
        check(can_connect(third), "the new port is not open")
        check(not can_connect(second), "the old port is open")
        check(not (one.state / "api.sock").exists(), "the unix socket is still there")
        waiting.settimeout(0.2)
        try:
            equal("the waiting connection", waiting.recv(1), "nothing")
        except TimeoutError:
            pass
        waiting.close()
        equal("gateway", one.gateway(), before)


@case
def reload_revokes() -> None:
    "a gateway that keeps a listener which a reload took away hears nobody on it; those that stay are as before"
    kept, gone = free_port(), free_port()
    with daemon(f"server: {{listen: ['127.0.0.1:{kept}', '127.0.0.1:{gone}']}}\n", stand_in="keep") as one:
        one.wait_report("done")
        check(can_connect(kept) and can_connect(gone), "it does not listen")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            one.config.write_text(f"server: {{listen: ['127.0.0.1:{kept}', '127.0.0.1:{port}']}}\n")
            one.signal(signal.SIGHUP)
            one.wait_event("not-reloaded")
        check(can_connect(kept) and can_connect(gone), "a reload that failed took a port away")
        one.config.write_text(f"server: {{listen: ['127.0.0.1:{kept}']}}\n")
        one.signal(signal.SIGHUP)
        one.wait_event("reloaded")
        one.wait_report(f"listen 127.0.0.1:{gone} done")
        check(can_connect(kept), "the port that stays is closed")
        check(not can_connect(gone), "the port that was taken away is open")


@case
def reload_while_starting() -> None:
    "SIGHUP while the gateway starts: it is told what came into force meanwhile, once it is ready"
    with daemon(stand_in="slow") as one:
        one.wait_report("start")
        one.signal(signal.SIGHUP)
        one.wait_event("listening", 4)
        equal("too early", one.events("reloaded"), [])
        (one.state / "gateway" / "go").touch()
        equal("generation", one.wait_event("reloaded")[0]["generation"], "2")
        equal("at its start", one.wait_event("ready")[0]["generation"], "1")
        equal("settings", one.report().count("heard SETTINGS"), 1)
        equal("restarts", one.events("gateway-ended"), [])


@case
def reload_often() -> None:
    "fifty SIGHUPs in a row: the gateway stays, and the last configuration is in force"
    ports = [free_port(), free_port()]

    def reload(one: Daemon, port: int, more: str = "") -> None:
        new = one.config.with_suffix(".new")
        new.write_text(f"server: {{listen: ['127.0.0.1:{port}']}}\n{more}")
        new.rename(one.config)  # at once: it may be read at any time
        one.signal(signal.SIGHUP)

    with daemon("server: {listen: ['127.0.0.1:0']}\n") as one:
        one.ready()
        before = one.gateway()
        for count in range(50):
            reload(one, ports[count % 2])
            time.sleep((5 + count * 7 % 16) / 1000)
        reload(one, ports[0], "logging: {format: json}\n")
        eventually("the last", lambda: re.search(r'"program":"hutchd","event":"reloaded"', one.log) is not None)
        equal("gateway", one.gateway(), before)
        equal("restarts", one.events("gateway-ended"), [])
        equal("refused", one.events("not-reloaded"), [])
        check(can_connect(ports[0]) and not can_connect(ports[1]), f"not the last configuration: {one.log}")


@case
def reload_unanswered() -> None:
    "a gateway that says it took what it was not given is replaced"
    with daemon(stand_in="invent") as one:
        contains("reason", one.wait_event("gateway-ended")[0]["reason"], "Bad message")


@case
def reload_port_in_use() -> None:
    "SIGHUP with a port that is in use changes nothing"
    with socket.create_server(("127.0.0.1", 0)) as taken, daemon("server: {listen: ['127.0.0.1:0']}\n") as one:
        one.ready()
        one.config.write_text(f"server: {{listen: ['127.0.0.1:{taken.getsockname()[1]}']}}\n")
        one.signal(signal.SIGHUP)
        contains("reason", one.wait_event("not-reloaded")[0]["reason"], "in use")
        check(can_connect(one.ports[0]), "the old port is closed")
        check((one.state / "api.sock").exists(), "the unix socket is gone")


@case
def unix_socket() -> None:
    "the unix socket is root's and the group's, and one that a killed daemon left is replaced"
    with daemon() as one:
        one.ready()
        path = one.state / "api.sock"
        equal("mode", path.stat().st_mode & 0o7777, 0o660)
        equal("owner", path.stat().st_uid, 0)
        one.process.kill()
        one.process.wait()
        check(path.exists(), "a killed daemon can't have removed it")
    with daemon(clean=False) as one:
        one.ready()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(one.state / "api.sock"))
        equal("end", one.end(), 0)
        check(not (one.state / "api.sock").exists(), "it was left behind")


@case
def terminated() -> None:
    "SIGTERM: the gateway is told, and nothing is left, not even a running sandbox"
    with daemon(stand_in="exec", HUTCH_TEST_SCRIPT="echo up; sleep 300") as one:
        eventually("output", lambda: (one.state / "gateway" / "output").exists())
        eventually("more", lambda: (one.state / "gateway" / "output").stat().st_size > 0)
        one.config.write_text("server: {drain_seconds: 1}\n")
        one.signal(signal.SIGHUP)
        one.wait_event("listening", 4)
        began = time.monotonic()
        equal("status", one.end(), 0)
        quick("the end", time.monotonic() - began, 6)
        contains("log", one.log, "event=draining", "event=ended")


@case
def drained() -> None:
    "a gateway that has drained ends the daemon at once, another when the grace is over, or at a second signal"
    with daemon("server: {drain_seconds: 20}\n", stand_in="idle") as one:
        one.wait_report("done")
        began = time.monotonic()
        equal("status", one.end(), 0)
        quick("the end", time.monotonic() - began, 3)
        contains("report", "\n".join(one.report()), "heard DRAIN")
    with daemon("server: {drain_seconds: 1}\n", stand_in="stubborn") as one:
        one.wait_report("done")
        began = time.monotonic()
        equal("status", one.end(), 0)
        check(time.monotonic() - began > 1, "the grace was not given")
        quick("the end", time.monotonic() - began, 6)
    with daemon("server: {drain_seconds: 60}\n", stand_in="stubborn") as one:
        one.wait_report("done")
        one.signal(signal.SIGTERM)
        one.wait_event("draining")
        one.signal(signal.SIGINT)
        equal("status", one.wait(10), 0)


@case
def killed() -> None:
    "a hutchd that was killed takes its gateway and sandboxes along, and the next one starts clean"
    with daemon(stand_in="exec", HUTCH_TEST_SCRIPT="echo up; sleep 300") as one:
        output = one.state / "gateway" / "output"
        eventually("output", lambda: output.exists() and output.stat().st_size > 0)
        gateway = one.gateway()
        one.process.kill()
        one.process.wait()
        eventually("the gateway's end", lambda: not alive(gateway))
    with daemon(stand_in="idle", clean=False) as one:
        one.ready()
        equal("sandboxes", one.events("ready")[0]["sandboxes"], "0")


def alive(pid: int) -> bool:
    try:
        return "Z" not in status_of(pathlib.Path(f"/proc/{pid}/status").read_text())["State"]
    except OSError:
        return False


@case
def notifies() -> None:
    "systemd is told READY, RELOADING, STOPPING, and that it is alive"
    path = place() / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(10)
        with daemon(NOTIFY_SOCKET=str(path), WATCHDOG_USEC="200000") as one:
            heard = [listener.recv(4096).decode()]
            while not any("READY=1" == text for text in heard):
                heard.append(listener.recv(4096).decode())
            one.signal(signal.SIGHUP)
            while not any(text.startswith("RELOADING=1\nMONOTONIC_USEC=") for text in heard):
                heard.append(listener.recv(4096).decode())
            at = len(heard)
            while "READY=1" not in heard[at:] or heard[at:].count("WATCHDOG=1") < 3:
                heard.append(listener.recv(4096).decode())
            equal("end", one.end(), 0)
            while "STOPPING=1" not in heard:
                heard.append(listener.recv(4096).decode())
    path.unlink()


if __name__ == "__main__":
    main()
