#!/usr/bin/env python3
"""upstream: the world that the airlock's tests reach: servers of several kinds and a DNS server, in a network namespace
of their own. Nothing here, and nothing that can be reached from here, is anywhere else.

    upstream.py FOLDER      prints "made"; with a line on standard input it configures the interface `far` and serves,
                            prints "ready", and ends with its input. FOLDER/dns is the log of all questions.
"""

import base64
import hashlib
import http.server
import pathlib
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time

HOST = "203.0.113.1"
HOST6 = "2001:db8:1::1"
SECOND = "203.0.113.2"
SERVER = "203.0.113.10"
SERVER6 = "2001:db8:1::10"
RESOLVER = "203.0.113.53"
NOBODY6 = "2001:db8:1::99"
PRIVATE = "10.9.9.9"
BIG = 64 << 20

A, TXT, AAAA = 1, 16, 28
RECORDS = {
    "allowed.test": {A: [SERVER], AAAA: [SERVER6]},
    "other.test": {A: [SERVER], AAAA: [SERVER6]},
    "a.sub.test": {A: [SERVER]},
    "sub.test": {A: [SERVER]},
    "v4.test": {A: [SERVER]},
    "v6.test": {AAAA: [SERVER6]},
    "half.test": {A: [SERVER], AAAA: [NOBODY6]},
    "private.test": {A: [PRIVATE]},
    "loop.test": {A: ["127.0.0.1"], AAAA: ["::1"]},
    "mapped.test": {AAAA: ["::ffff:127.0.0.1"]},
    "own.test": {A: [HOST]},
    "own6.test": {AAAA: [HOST6]},
    "second.test": {A: [SECOND]},
    "wrapped.test": {AAAA: ["64:ff9b::cb00:7102"]},
    "metadata.test": {A: ["169.254.169.254"]},
    "mixed.test": {A: ["127.0.0.1", SERVER]},
    "many.test": {A: [SERVER] * 1000},
}
SILENT = "hang.test"


class Web(http.server.BaseHTTPRequestHandler):
    """Says who was asked for; /big is large; /ws echoes after an upgrade; a git repository lies below /repo.git."""

    protocol_version = "HTTP/1.1"
    folder = ""

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def upgrade(self) -> None:
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        self.close_connection = True
        while piece := self.connection.recv(65536):
            self.connection.sendall(piece)

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if self.headers.get("Upgrade") == "websocket":
            self.upgrade()
        elif path == "/big":
            self.send_response(200)
            self.send_header("Content-Length", str(BIG))
            self.end_headers()
            for _ in range(BIG >> 20):
                self.wfile.write(bytes(1 << 20))
        elif path.startswith("/repo.git/"):
            file = pathlib.Path(self.folder + path)
            self.answer(file.read_bytes() if file.is_file() else b"", 200 if file.is_file() else 404)
        else:
            self.answer(f"{self.command} {self.path} for {self.headers['Host']}\n".encode())

    do_HEAD = do_DELETE = do_GET

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(f"{len(body)} bytes for {self.headers['Host']}\n".encode())


class Greeter(socketserver.BaseRequestHandler):
    """Speaks first, as ssh and many others do, and then echoes."""

    def handle(self) -> None:
        self.request.sendall(b"welcome\n")
        while piece := self.request.recv(65536):
            self.request.sendall(piece)


class Counter(socketserver.BaseRequestHandler):
    """Answers only when its client has said all."""

    def handle(self) -> None:
        count = 0
        while piece := self.request.recv(65536):
            count += len(piece)
        self.request.sendall(f"{count}\n".encode())


class Resetter(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    address_family = socket.AF_INET6
    request_queue_size = 512

    def handle_error(self, *_: object) -> None:
        pass


def serve(port: int, handler: type, context: ssl.SSLContext | None = None) -> None:
    """On all addresses of both families."""
    server = Server(("::", port), handler, bind_and_activate=False)
    server.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.server_bind()
    server.server_activate()
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def answer_question(data: bytes, log: pathlib.Path, limit: int) -> bytes | None:
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode())
        at += data[at] + 1
    name = ".".join(labels).lower()
    kind = struct.unpack("!H", data[at + 1 : at + 3])[0]
    with log.open("a", encoding="ascii") as file:
        file.write(f"{name} {kind}\n")
    if name == SILENT:
        return None
    records = RECORDS.get(name, {}).get(kind, [])
    body = b""
    for text in records:
        address = socket.inet_pton(socket.AF_INET if kind == A else socket.AF_INET6, text)
        body += struct.pack("!HHHIH", 0xC00C, kind, 1, 60, len(address)) + address
    question = data[12 : at + 5]
    is_cut = 12 + len(question) + len(body) > limit
    flags = 0x8180 | (0 if name in RECORDS else 3) | (0x0200 if is_cut else 0)
    head = data[:2] + struct.pack("!HHHHH", flags, 1, 0 if is_cut else len(records), 0, 0)
    return head + question + (b"" if is_cut else body)


def serve_dns(log: pathlib.Path) -> None:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((RESOLVER, 53))

    class Tcp(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while size := self.rfile.read(2):
                answer = answer_question(self.rfile.read(struct.unpack("!H", size)[0]), log, 65535)
                if answer is not None:
                    self.wfile.write(struct.pack("!H", len(answer)) + answer)

    def loop() -> None:
        while True:
            data, peer = udp.recvfrom(4096)
            answer = answer_question(data, log, 512)
            if answer is not None:
                udp.sendto(answer, peer)

    serve(53, Tcp)
    threading.Thread(target=loop, daemon=True).start()


def make_certificates(folder: pathlib.Path) -> None:
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    names = ",".join(f"DNS:{name}" for name in RECORDS)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=test authority", "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", "ca.key",
            "-out", "ca.pem")  # fmt: skip
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=allowed.test",
            "-keyout", "server.key", "-out", "server.csr")  # fmt: skip
    (folder / "extensions").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n", encoding="ascii")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "extensions", "-out", "server.pem")  # fmt: skip


def make_repository(folder: pathlib.Path) -> None:
    work = folder / "work"
    settings = ["-c", "user.name=t", "-c", "user.email=t@t.test", "-c", "init.defaultBranch=main"]
    git = ["git", *settings]
    subprocess.run([*git, "init", "-q", str(work)], check=True)
    (work / "README").write_text("from the repository\n", encoding="ascii")
    subprocess.run([*git, "add", "README"], cwd=work, check=True)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=work, check=True)
    subprocess.run([*git, "clone", "-q", "--bare", str(work), str(folder / "repo.git")], check=True)
    subprocess.run([*git, "update-server-info"], cwd=folder / "repo.git", check=True)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    log = folder / "dns"
    log.touch()
    make_certificates(folder)
    make_repository(folder)
    print("made", flush=True)
    sys.stdin.readline()
    # Or an address of the link's own is looked for a second or two before anything else.
    pathlib.Path("/proc/sys/net/ipv6/conf/far/accept_dad").write_text("0", encoding="ascii")
    for words in (
        f"ip addr add {SERVER}/24 dev far",
        f"ip addr add {RESOLVER}/24 dev far",
        f"ip addr add {PRIVATE}/32 dev far",
        f"ip addr add {SERVER6}/64 dev far nodad",
        "ip link set lo up",
        "ip link set far up",
    ):
        subprocess.run(words.split(), check=True)
    Web.folder = str(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    serve(80, Web)
    serve(8080, Web)
    serve(443, Web, context)
    serve(8443, Web, context)
    # Clients guess another curve first, and are asked to say their hello again.
    again = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    again.load_cert_chain(folder / "server.pem", folder / "server.key")
    again.set_ecdh_curve("secp521r1")
    serve(8444, Web, again)
    serve(2222, Greeter)
    serve(7000, Counter)
    serve(7001, Resetter)
    serve_dns(log)
    # The addresses are there, but the link may take a moment.
    time.sleep(0.1)
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
