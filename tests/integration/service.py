"""A real hutchd to call, and a caller."""

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import urllib.parse
from collections.abc import Iterator

from harness import HUTCH, Failed, check, eventually, place

BUILT = pathlib.Path(HUTCH).parent
KEY = "test-key-0123456789abcdefghijklmn"
PASSWORD = "a password for tests"


@dataclasses.dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> dict:
        try:
            return json.loads(self.body)
        except ValueError:
            raise Failed(f"no JSON in an answer with status {self.status}: {self.body[:200]!r}") from None

    @property
    def code(self) -> str:
        return self.json["error"]["code"]

    @property
    def message(self) -> str:
        return self.json["error"]["message"]


class Service:
    """A hutchd on a state folder of its own, on a free port."""

    def __init__(self, name: str, config: str = "", **env: str) -> None:
        self.state = place() / name
        self.log_path = place() / f"{name}.log"
        shutil.rmtree(self.state, ignore_errors=True)
        self.config = place() / f"{name}.yaml"
        self.config.write_text(config)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HUTCH_API_KEY": KEY,
            "HUTCH_ADMIN_PASSWORD": PASSWORD,
            "HUTCH_LIMITS_PER_IP_RATE": "0",
            "HUTCH_SANDBOX_MAX_CONCURRENT": "64",
            **env,
        }
        self.port = 0
        self.start()

    def start(self) -> None:
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [BUILT / "hutchd", "--config", self.config, "--state", self.state]
                + ["--listen", f"127.0.0.1:{self.port}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={name: value for name, value in self.environment.items() if value},
            )
        eventually("hutchd is ready", self.is_ready, 30)
        own = r"(?m)^time=\S+ level=info program=hutchd "
        ports = re.findall(own + r"event=listening address=127\.0\.0\.1:(\d+)", self.log)
        self.port = int(ports[-1])

    def is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise Failed(f"hutchd ended: {self.log}")
        return "event=ready" in self.log

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def gateway(self) -> int:
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in map(int, children):
            with contextlib.suppress(OSError):
                if b"--serve" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return 0

    def connect(self, seconds: float = 60) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)

    def raw(self, data: bytes, seconds: float = 30) -> bytes:
        """Bytes as they are; everything that comes back until the end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(data)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = KEY,
        headers: dict[str, str] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        sent = dict(headers or {})
        if key:
            sent.setdefault("Authorization", f"Bearer {key}")
        if data is None and body is not None:
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = self.connect()
        try:
            # A body that is refused is not read to its end; the answer is there all the same.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body=data, headers=sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: object = None, status: int = 200, **more: object) -> Answer:
        answer = self.call(method, path, body, **more)
        if answer.status != status:
            raise Failed(f"{method} {path}: {answer.status} instead of {status}: {answer.body[:400]!r}")
        return answer

    def create(self, **fields: object) -> str:
        key = fields.pop("key", KEY)
        return self.ok("POST", "/api/v1/sandboxes", fields, 201, key=key).json["id"]

    def destroy(self, sandbox: str) -> None:
        self.call("DELETE", f"/api/v1/sandboxes/{sandbox}")

    def tool(self, sandbox: str, tool: str, **arguments: object) -> Answer:
        return self.call("POST", f"/api/v1/sandboxes/{sandbox}/tools/execute", {"tool": tool, "arguments": arguments})

    def shell(self, sandbox: str, command: str, **arguments: object) -> dict:
        answer = self.tool(sandbox, "shell_exec", command=command, **arguments)
        check(answer.status == 200, f"shell_exec {command!r}: {answer.status} {answer.body[:300]!r}")
        return answer.json["result"]

    def start_exec(self, sandbox: str, **fields: object) -> str:
        return self.ok("POST", f"/api/v1/sandboxes/{sandbox}/execs", fields, 201).json["id"]

    def new_key(self, scope: str, **more: object) -> str:
        return self.ok("POST", "/api/v1/keys", {"name": f"test {scope}", "scope": scope, **more}, 201).json["secret"]

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(60)


@contextlib.contextmanager
def service(name: str, config: str = "", **env: str) -> Iterator[Service]:
    one = Service(name, config, **env)
    try:
        yield one
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.end()
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
    check("Sanitizer" not in one.log, f"a sanitizer spoke: {one.log[-4000:]}")


@contextlib.contextmanager
def sandbox(one: Service, **fields: object) -> Iterator[str]:
    identity = one.create(**fields)
    try:
        yield identity
    finally:
        one.destroy(identity)


class Events:
    """Server-sent events, one by one."""

    def __init__(self, one: Service, path: str, key: str = KEY, seconds: float = 60, **headers: str) -> None:
        self.connection = one.connect(seconds)
        self.connection.request(
            "GET", path, headers={"Authorization": f"Bearer {key}", "Accept": "text/event-stream", **headers}
        )
        self.response = self.connection.getresponse()
        check(self.response.status == 200, f"GET {path}: {self.response.status}")

    def __iter__(self) -> Iterator[tuple[str, str, dict]]:
        event, identity, data = "", "", []
        for line in self.response:
            text = line.decode().rstrip("\n")
            if text == "" and data:
                yield event, identity, json.loads("\n".join(data))
                event, identity, data = "", "", []
            name, _, value = text.partition(": ")
            if name == "event":
                event = value
            elif name == "id":
                identity = value
            elif name == "data":
                data.append(value)

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def quote(path: str) -> str:
    return urllib.parse.quote(path)
