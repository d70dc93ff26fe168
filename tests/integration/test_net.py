#!/usr/bin/env python3
"""hutch run --net: what is allowed works with every client, what is not fails at once, and nothing of it leaves.

The test, and with it every hutch and airlock, runs in a network namespace with one link, at whose other end
upstream.py is the world. The resolver there logs every question that it is asked.
"""

import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import harness
import upstream
from harness import case, check, contains, equal, eventually, main, quick, run, start

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
ALLOWED = "--net=allow=allowed.test"
WORLD = pathlib.Path(os.environ.get("HUTCH_TEST_WORLD", "/nonexistent"))
DIRECT = ["curl", "-sS", "--noproxy", "*", "-m", "10"]
PROXIED = ["curl", "-sS", "-m", "10"]
AUTHORITY = ["--put", f"{WORLD}/ca.pem:ca.pem"]


def asked() -> list[str]:
    """The names that the world's resolver was asked for."""
    return [line.split()[0] for line in (WORLD / "dns").read_text(encoding="ascii").splitlines()]


def python(code: str, *options: str, **more: object) -> harness.Outcome:
    return run(*options, "--", "python3", "-c", code, **more)


def works(what: str, outcome: harness.Outcome, *parts: str) -> None:
    equal(f"{what}: status (standard error {outcome.err!r})", outcome.status, 0)
    contains(what, outcome.text, *parts)


@case
def allowed_http() -> None:
    """an allowed name works in HTTP, direct and through the proxy"""
    works("direct", run(ALLOWED, "--", *DIRECT, "http://allowed.test/x"), "GET /x for allowed.test")
    works("proxied", run(ALLOWED, "--", *PROXIED, "http://allowed.test/x"), "GET /x for allowed.test")
    works("another port", run(ALLOWED, "--", *DIRECT, "http://allowed.test:8080/"), "for allowed.test:8080")
    body = ["-d", "x" * 1000, "http://allowed.test/"]
    works("a body", run(ALLOWED, "--", *DIRECT, *body), "1000 bytes for allowed.test")
    works("a body, proxied", run(ALLOWED, "--", *PROXIED, *body), "1000 bytes for allowed.test")
    chunked = ["-H", "Transfer-Encoding: chunked", *body]
    works("chunks", run(ALLOWED, "--", *DIRECT, *chunked), "1000 bytes")
    works("chunks, proxied", run(ALLOWED, "--", *PROXIED, *chunked), "1000 bytes")
    two = ["http://allowed.test/1", "http://allowed.test/2"]
    works("two on one connection", run(ALLOWED, "--", *DIRECT, *two), "GET /1 for", "GET /2 for")


@case
def allowed_https() -> None:
    """an allowed name works in HTTPS, direct and through the proxy"""
    secure = ["--cacert", "ca.pem", "https://allowed.test/s"]
    works("direct", run(ALLOWED, *AUTHORITY, "--", *DIRECT, *secure), "GET /s for allowed.test")
    works("proxied", run(ALLOWED, *AUTHORITY, "--", *PROXIED, *secure), "GET /s for allowed.test")
    port = ["--cacert", "ca.pem", "https://allowed.test:8443/s"]
    works("another port", run(ALLOWED, *AUTHORITY, "--", *DIRECT, *port), "for allowed.test:8443")


@case
def other_clients() -> None:
    """Python, node, git and wget work as they are"""
    fetch = "import urllib.request as u; print(u.urlopen('http://allowed.test/p').read().decode())"
    works("Python", python(fetch, ALLOWED), "GET /p for allowed.test")
    node = "fetch('http://allowed.test/n').then(r => r.text()).then(t => console.log(t))"
    works("node", run(ALLOWED, "--", "node", "-e", node), "GET /n for allowed.test")
    clone = "git clone -q http://allowed.test/repo.git r && cat r/README"
    works("git", run(ALLOWED, "--", "sh", "-c", clone), "from the repository")
    works("wget", run(ALLOWED, "--", "wget", "-qO-", "http://allowed.test/w"), "GET /w for allowed.test")


@case
def other_protocols() -> None:
    """a server that speaks first, a client that ends first, and WebSocket"""
    talk = """
import socket
s = socket.create_connection(("allowed.test", 2222), 5)
print(s.recv(100).decode().strip())
s.sendall(b"hello\\n")
print(s.recv(100).decode().strip())
"""
    works("greeting", python(talk, ALLOWED), "welcome\nhello")
    count = """
import socket
s = socket.create_connection(("allowed.test", 7000), 15)
s.sendall(bytes(3 << 20))
s.shutdown(socket.SHUT_WR)
print(s.recv(100).decode().strip())
"""
    works("half-close", python(count, ALLOWED), str(3 << 20))
    works("half a line", python(count.replace("bytes(3 << 20)", "b'hello'"), ALLOWED), "5")
    upgrade = """
import socket
s = socket.create_connection(("allowed.test", 80), 5)
s.sendall(b"GET /ws HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
          b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n")
head = b""
while not head.endswith(b"\\r\\n\\r\\n"):
    head += s.recv(1)
print(head.split()[1].decode())
s.sendall(b"\\x81\\x05not a request")
print(s.recv(100)[2:].decode())
"""
    works("WebSocket", python(upgrade, ALLOWED), "101\nnot a request")


@case
def both_families() -> None:
    """a name has addresses of both families inside, whatever it has outside, and a dead one is passed over"""
    for name in ("v4.test", "v6.test", "half.test"):
        for family in ("-4", "-6"):
            outcome = run(f"--net=allow={name}", "--", *DIRECT, family, f"http://{name}/")
            works(f"{name} {family}", outcome, f"for {name}")
            quick(f"{name} {family}", outcome.seconds, 3)


@case
def large() -> None:
    """64 MiB come through whole"""
    big = run(ALLOWED, "--", "sh", "-c", "curl -sS --noproxy '*' http://allowed.test/big | wc -c")
    equal("bytes", big.text.strip(), str(upstream.BIG))


@case
def denied_names() -> None:
    """a name that is not allowed does not exist, at once, and nobody outside hears of it"""
    for words in (
        [*DIRECT, "http://other.test/"],
        [*DIRECT, "http://secret-data.allowed.test/"],
        [*DIRECT, "https://sub.test/"],
        ["getent", "ahosts", "other.test"],
    ):
        outcome = run(ALLOWED, "--", *words)
        check(outcome.status != 0, f"{words} worked: {outcome.text}")
        quick(str(words), outcome.seconds, 2)
        contains(str(words), outcome.err, "hutch: network: ", "is not allowed: no rule names it")
    refused = run(ALLOWED, "--", *PROXIED, "-w", "%{http_code}", "http://other.test/")
    works("the proxy's words", refused, "403", "Hutch: other.test:80 is not allowed", "'other.test:80' would allow it")
    equal("what left", set(asked()) & {"other.test", "secret-data.allowed.test", "sub.test"}, set())


QUESTION = """
import socket, struct, sys
def ask(name, kind, to, stream=False, count=1):
    labels = b"".join(bytes([len(l)]) + l for l in name.encode().split(b".")) + b"\\0"
    data = struct.pack("!HHHHHH", 7, 0x100, count, 0, 0, 0) + (labels + struct.pack("!HH", kind, 1)) * count
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
    s.settimeout(3)
    s.connect((to, 53))
    s.send((struct.pack("!H", len(data)) if stream else b"") + data)
    answer = s.recv(600)[2 if stream else 0:]
    flags, questions, answers = struct.unpack("!HHH", answer[2:8])
    print(name, kind, "code", flags & 15, "answers", answers)
"""


@case
def questions() -> None:
    """every resolver is the airlock's: UDP, TCP, both families, and only A and AAAA have answers"""
    everywhere = QUESTION + "\n".join(
        f"ask('allowed.test', 1, {to!r}, {stream})"
        for to in ("198.18.0.2", "8.8.8.8", "2001:4860:4860::8888")
        for stream in (False, True)
    )
    outcome = python(everywhere, ALLOWED)
    equal("answers", outcome.lines, ["allowed.test 1 code 0 answers 1"] * 6)
    kinds = QUESTION + "for kind in (16, 10, 255, 65, 28): ask('allowed.test', kind, '198.18.0.2')"
    equal("kinds", python(kinds, ALLOWED).lines, [f"allowed.test {k} code 0 answers {int(k == 28)}" for k in (16, 10, 255, 65, 28)])  # fmt: skip
    others = QUESTION + """
for kind in (1, 16, 10, 255): ask('data.other.test', kind, '198.18.0.2')
ask('allowed.test', 1, '198.18.0.2', count=2)
"""
    equal("others", python(others, ALLOWED).lines, [f"data.other.test {k} code 3 answers 0" for k in (1, 16, 10, 255)] + ["allowed.test 1 code 1 answers 0"])  # fmt: skip
    check("data.other.test" not in asked(), "a question left the machine")


@case
def addresses() -> None:
    """addresses are refused with words, whichever way they are written"""
    for address in (
        upstream.SERVER,
        f"[{upstream.SERVER6}]",
        "3405803786",
        "0313.0.0161.012",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.100.100.200",
        upstream.HOST,
        upstream.PRIVATE,
        "198.18.77.77",
    ):
        outcome = run(ALLOWED, "--", *DIRECT, "-w", "%{http_code}", f"http://{address}/")
        works(address, outcome, "403", "Hutch: ")
        quick(address, outcome.seconds, 2)
    mapped = f"import socket; socket.create_connection(('::ffff:{upstream.SERVER}', 80), 3).sendall(b'x')"
    python(mapped, ALLOWED)
    named = run(f"--net=allow={upstream.SERVER}:80", "--", *DIRECT, f"http://{upstream.SERVER}/")
    works("an address that a rule names", named, f"for {upstream.SERVER}")
    private = run(f"--net=allow={upstream.PRIVATE}", "--", *DIRECT, f"http://{upstream.PRIVATE}/")
    works("a private address that a rule names", private, f"for {upstream.PRIVATE}")
    local = run(ALLOWED, "--", *DIRECT, "http://127.0.0.1:8080/")
    check(local.status == 7, f"something answers on loopback: {local}")


@case
def refused_in_its_own_protocol() -> None:
    """a direct connection that is refused hears it in TLS or in HTTP, and is reset when it speaks neither"""
    secure = run(ALLOWED, "--", *DIRECT, "-k", f"https://{upstream.SERVER}/")
    check(secure.status == 35 and "alert access denied" in secure.err, f"TLS: {secure}")
    works("HTTP", run(ALLOWED, "--", *DIRECT, f"http://{upstream.SERVER}:443/"), "Hutch: ", "is not allowed")
    silent = f"""
import socket
for first in (b"", b"hello", b"\\0\\1"):
    s = socket.create_connection(({upstream.SERVER!r}, 443), 3)
    s.sendall(first)
    try:
        print("answer", s.recv(100))
    except ConnectionResetError:
        print("reset")
"""
    equal("neither", python(silent, ALLOWED).lines, ["reset"] * 3)


@case
def names_that_lead_inside() -> None:
    """a name that leads to this machine or its network is as good as none"""
    for name in ("private.test", "loop.test", "mapped.test", "metadata.test"):
        outcome = run(f"--net=allow={name}", "--", *DIRECT, f"http://{name}/")
        check(outcome.status != 0, f"{name} worked")
        contains(name, outcome.err, f"{name} leads to a")
    works("the rest of the addresses", run("--net=allow=mixed.test", "--", *DIRECT, "http://mixed.test/"), "for mixed.test")  # fmt: skip
    both = run(f"--net=allow=private.test,{upstream.PRIVATE}", "--", *DIRECT, "http://private.test/")
    works("a private address that a rule names", both, "for private.test")
    works("1000 records", run("--net=allow=many.test", "--", *DIRECT, "http://many.test/"), "for many.test")


@case
def names_that_lead_to_the_machine() -> None:
    """neither a name nor a rule for an address leads to a service on all addresses of this machine"""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        for name in ("own.test", "own6.test", "second.test", "wrapped.test"):
            outcome = run(f"--net=allow={name}", "--", *DIRECT, f"http://{name}:{port}/")
            check(outcome.status != 0, f"{name} worked")
            contains(name, outcome.err, f"{name} leads to an address of this machine")
        for address in (upstream.HOST, upstream.SECOND, f"[{upstream.HOST6}]"):
            outcome = run(f"--net=allow={address}:{port}", "--", *DIRECT, "-w", "%{http_code}", f"http://{address}:{port}/")
            works(address, outcome, "403", "is the machine around the sandbox")
        server.settimeout(0)
        try:
            server.accept()
            check(False, "a connection came")
        except BlockingIOError:
            pass


@case
def what_is_visible_must_agree() -> None:
    """another Host, another SNI, another name behind CONNECT are refused"""
    host = run(ALLOWED, "--", *DIRECT, "-w", "%{http_code}", "-H", "Host: other.test", "http://allowed.test/")
    works("Host", host, "403", "but the Host header says other.test")
    elsewhere = ["--cacert", "ca.pem", "--connect-to", "other.test:443:allowed.test:443", "https://other.test/"]
    sni = run(ALLOWED, *AUTHORITY, "--", *DIRECT, *elsewhere)
    check(sni.status != 0 and "alert" in sni.err, f"SNI: {sni}")
    contains("SNI", sni.err, "but the TLS hello says other.test")
    tunnel = run(ALLOWED, *AUTHORITY, "--", *PROXIED, *elsewhere)
    check(tunnel.status != 0 and "alert" in tunnel.err, f"CONNECT: {tunnel}")
    second = """
import socket
s = socket.create_connection(("allowed.test", 80), 5)
s.sendall(b"GET /1 HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n")
answer = b""
while b"for allowed.test" not in answer:
    answer += s.recv(1000)
print(answer.decode().split()[1])
s.sendall(b"GET /2 HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n")
try:
    print("answer", len(s.recv(1000)))
except ConnectionResetError:
    print("reset")
"""
    equal("the second request", python(second, ALLOWED).lines, ["200", "reset"])


AGAIN = """
import socket, ssl, sys
context = ssl.create_default_context(cafile="ca.pem")
come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(come, go, server_hostname="allowed.test")
s = socket.create_connection(("allowed.test", 8444), 5)
flight = 0
def speak(step):
    global flight
    while True:
        try:
            result = step()
        except ssl.SSLWantReadError:
            result = None
        data = go.read()
        flight += len(data) > 0
        s.sendall(data.replace(b"allowed.test", sys.argv[1].encode()) if flight == 2 else data)
        if result is not None:
            return result
        come.write(s.recv(65536))
try:
    speak(lambda: tls.do_handshake() or True)
    speak(lambda: tls.write(b"GET /a HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n"))
    print(flight, speak(lambda: tls.read(1000)).split()[1].decode())
except ConnectionResetError:
    print(flight, "reset")
    sys.exit(1)
"""


@case
def the_second_hello() -> None:
    """a server that wants to hear the hello again hears the same name"""
    for name, last in (("allowed.test", "4 200"), ("refused.test", "2 reset")):
        outcome = run(ALLOWED, *AUTHORITY, "--", "python3", "-c", AGAIN, name)
        equal(f"{name} ({outcome.err})", outcome.lines, [last])
    contains("why", outcome.err, "but the TLS hello says refused.test")


@case
def service_of_the_machine() -> None:
    """host.hutch:PORT is a service of the machine around the sandbox, and only by that name and port"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        served = []

        def serve() -> None:
            client, _ = server.accept()
            with client:
                served.append(client.recv(1000))
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes")

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://host.hutch:{port}/"
        for words in ("--net=full", "--net=allow=host.hutch:1", "--net=allow=localhost,127.0.0.1"):
            check(run(words, "--", *DIRECT, "-f", url).status != 0, f"{words} leads to the machine")
            check(run(words, "--", *DIRECT, "-f", f"http://127.0.0.1:{port}/").status != 0, f"{words} leads to it")
        equal("what came", served, [])
        works("by its name", run(f"--net=allow=host.hutch:{port}", "--", *DIRECT, url), "yes")
        thread.join()


@case
def rules() -> None:
    """ports, suffixes, full, none, and rules that are none"""
    port = "--net=allow=allowed.test:80"
    works("its port", run(port, "--", *DIRECT, "http://allowed.test/"), "for allowed.test")
    closed = run(port, "--", *DIRECT, "-w", "%{http_code}", "http://allowed.test:8080/")
    works("another port", closed, "403", "allowed.test:8080 is not allowed")
    works("below", run("--net=allow=*.sub.test", "--", *DIRECT, "http://a.sub.test/"), "for a.sub.test")
    check(run("--net=allow=*.sub.test", "--", *DIRECT, "http://sub.test/").status != 0, "a suffix allows itself")
    works("full", run("--net=full", "--", *DIRECT, "http://other.test/"), "for other.test")
    missing = run("--net=full", "--", *DIRECT, "http://no-such.test/")
    equal("a name that does not exist", missing.status, 6)
    raw = run("--net=full", "--", *DIRECT, "-w", "%{http_code}", f"http://{upstream.SERVER}/")
    works("an address in full", raw, "403")
    none = run("--net=none", "--", *DIRECT, f"http://{upstream.SERVER}/")
    equal("none", none.status, 7)
    for text, why in (("a..b", "nothing between two dots"), ("https://x", "it is a URL"), ("*", "a star needs")):
        bad = run(f"--net=allow={text}", "--", "true")
        equal(text, bad.status, 125)
        contains(text, bad.err, "--net: rule", why)
    equal("an unknown mode", run("--net=some", "--", "true").status, 125)


@case
def datagrams() -> None:
    """no datagram goes anywhere, and whoever sends one is told at once"""
    send = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((socket.gethostbyname("allowed.test"), 443))
s.send(b"quic")
try:
    print(s.recv(10))
except OSError as error:
    print(error.strerror)
"""
    equal("UDP", python(send, ALLOWED).text.strip(), "Connection refused")


@case
def trouble_outside() -> None:
    """a server that resets, a port that is closed, a resolver that hangs"""
    reset = run(ALLOWED, "--", *DIRECT, "http://allowed.test:7001/")
    check(reset.status in (52, 56) or "can't be reached" in reset.text, f"reset: {reset}")
    closed = run(ALLOWED, "--", *DIRECT, "-w", "%{http_code}", "http://allowed.test:9/")
    works("closed", closed, "502", "allowed.test:9 can't be reached: connecting: Connection refused")
    hang = run("--net=allow=hang.test", "--", *DIRECT, "-m", "1", "http://hang.test/")
    check(hang.status in (6, 28), f"hang: {hang}")


@case
def many_connections() -> None:
    """2000 connections at once are bounded, and another sandbox is not harmed"""
    code = """
import socket, resource
kept = []
for _ in range(2000):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", 15004))
    kept.append(s)
print("ready", flush=True)
input()
"""
    hoarder = start(ALLOWED, "--open-files", "4096", "--", "python3", "-c", code)
    harness.wait_ready(hoarder)
    works("another sandbox", run(ALLOWED, "--", *DIRECT, "http://allowed.test/"), "for allowed.test")
    harness.finish(hoarder, b"\n")


def airlocks() -> list[int]:
    """Those of this namespace."""
    ours = os.stat("/proc/self/ns/net").st_ino
    found = []
    for pid in harness.processes_with("hutch-airlock"):
        try:
            if os.stat(f"/proc/{pid}/ns/net").st_ino == ours:
                found.append(pid)
        except OSError:
            pass
    return found


@case
def airlock_confined() -> None:
    """the airlock is nobody: its own user, no capability, no new privileges, a filter; it ends with its run"""
    waiting = start(ALLOWED, "--", "sh", "-c", "echo ready; read x")
    harness.wait_ready(waiting)
    pids = airlocks()
    equal("airlocks", len(pids), 1)
    status = harness.status_of(pathlib.Path(f"/proc/{pids[0]}/status").read_text(encoding="ascii"))
    check(status["Uid"].split()[1] != "0" and status["Groups"] == "", f"its ids: {status['Uid']}")
    equal("capabilities", {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")}, {0})
    equal("no_new_privs and filter", (status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    harness.finish(waiting, b"\n")
    eventually("it has ended", lambda: not airlocks())


@case
def airlock_killed() -> None:
    """with its airlock a sandbox's connections end; it comes back by itself, and what was denied stays so"""
    code = """
import socket
first = socket.create_connection(("allowed.test", 2222), 5)
print("ready", flush=True)
input()
first.recv(100)
try:
    print(len(first.recv(1)))
except ConnectionResetError:
    print("reset")
again = socket.create_connection(("allowed.test", 2222), 5)
print(again.recv(100).decode().strip())
try:
    print(socket.getaddrinfo("other.test", 80))
except OSError:
    print("denied")
"""
    sandbox = start(ALLOWED, "--", "python3", "-c", code)
    harness.wait_ready(sandbox)
    killed = set(airlocks())
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    eventually("it has ended", lambda: not killed & set(airlocks()))
    outcome = harness.finish(sandbox, b"\n")
    check(outcome.lines[0] in ("0", "reset"), f"the old connection lives: {outcome.lines}")
    equal("afterwards", outcome.lines[1:], ["welcome", "denied"])


@case
def refusals_in_json() -> None:
    """--json says what was refused, and how often"""
    outcome = run(ALLOWED, "--json", "--", "sh", "-c", "getent hosts other.test; true")
    network = json.loads(outcome.text)["network"]
    equal("refusals", len(network), 1)
    contains("words", network[0]["refused"], "other.test is not allowed")
    check("network" not in json.loads(run("--json", "--", "true").text), "there is no network without --net")


def unshare() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def can_reach(address: str) -> bool:
    try:
        socket.create_connection((address, 80), 0.2).close()
        return True
    except OSError:
        return False


def in_world() -> int:
    """Run the cases in a namespace with a link to the world."""
    unshare()
    with tempfile.TemporaryDirectory(prefix="hutch-net-", dir="/var/tmp") as name:
        world = subprocess.Popen(
            [sys.executable, upstream.__file__, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=unshare,
        )  # fmt: skip
        try:
            if world.stdout.readline() != "made\n":
                return 1
            resolver = pathlib.Path(name) / "resolv.conf"
            resolver.write_text(f"# a comment\nnameserver {upstream.RESOLVER}\noptions edns0\n", encoding="ascii")
            for words in (
                "mount --make-rprivate /",
                f"mount --bind {resolver} /etc/resolv.conf",
                "ip link set lo up",
                f"ip link add near type veth peer name far netns {world.pid}",
                f"ip addr add {upstream.HOST}/24 dev near",
                f"ip addr add {upstream.SECOND}/24 dev near",
                f"ip addr add {upstream.HOST6}/64 dev near nodad",
                "sysctl -qw net.ipv6.conf.near.accept_dad=0",
                "ip link set near up",
                f"ip route add {upstream.PRIVATE}/32 dev near",
            ):
                subprocess.run(words.split(), check=True)
            print("go", file=world.stdin, flush=True)
            if world.stdout.readline() != "ready\n":
                return 1
            # A new link carries nothing until the kernel has noticed that it is up, a second later at most.
            for address in (upstream.SERVER, upstream.SERVER6):
                eventually(f"{address} can be reached", lambda to=address: can_reach(to))
            return subprocess.run(
                [sys.executable, __file__], env={**os.environ, "HUTCH_TEST_WORLD": name}, check=False
            ).returncode
        finally:
            world.kill()
            world.wait()


if __name__ == "__main__":
    if "HUTCH_TEST_WORLD" in os.environ:
        main()
    else:
        sys.exit(in_world())
