#!/usr/bin/env python3
"""Connections to a real daemon that are many, slow, half-closed, never reading, or say two things at once."""

import contextlib
import json
import pathlib
import resource
import select
import socket
import statistics
import time
from collections.abc import Iterator

from harness import SANITIZED, case, check, contains, equal, eventually, main, quick
from service import KEY, Service, sandbox, service

V = "/api/v1"
HOST = "Host: localhost\r\n"
WITH_KEY = f"{HOST}Authorization: Bearer {KEY}\r\n"
MANY = 10000


def healthz(one: Service, times: int = 20) -> float:
    """How long /healthz takes, each time on a connection of its own."""
    took = []
    for _ in range(times):
        began = time.monotonic()
        one.ok("GET", "/healthz", key=None)
        took.append(time.monotonic() - began)
    return statistics.median(took)


def dial(one: Service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", one.port), timeout=30)


@contextlib.contextmanager
def dialled(one: Service, count: int) -> Iterator[list[socket.socket]]:
    """That many connections, which say nothing."""
    connections = []
    try:
        for _ in range(count):
            connections.append(dial(one))
        yield connections
    finally:
        for connection in connections:
            connection.close()


def metric(one: Service, name: str) -> float:
    lines = one.ok("GET", "/metrics").body.decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


def memory(one: Service) -> int:
    text = pathlib.Path(f"/proc/{one.gateway()}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) << 10


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def ended(connections: list[socket.socket], seconds: float) -> int:
    """How many of them the server closes within that time."""
    waiting = select.poll()
    by_fd = {connection.fileno(): connection for connection in connections}
    for fd in by_fd:
        waiting.register(fd, select.POLLIN)
    deadline = time.monotonic() + seconds
    count = 0
    while by_fd and time.monotonic() < deadline:
        for fd, _ in waiting.poll(1000):
            equal("what the server says at the end", by_fd[fd].recv(100), b"")
            waiting.unregister(fd)
            del by_fd[fd]
            count += 1
    return count


@case
def idle() -> None:
    """10,000 idle connections: little memory each, /healthz as quick as ever, all closed when their time is over."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (MANY + 200, max(MANY + 200, limit[1])))
    with service("connections", HUTCH_SERVER_IDLE_TIMEOUT_SECONDS="15" if SANITIZED else "6") as one:
        alone = healthz(one)
        before = memory(one)
        with dialled(one, MANY - 1) as connections:
            eventually("all are there", lambda: metric(one, "hutch_connections") == MANY, 30)
            each = (memory(one) - before) / MANY
            check(SANITIZED or each < 4096, f"{each:.0f} bytes for an idle connection")
            beside = healthz(one)
            check(
                beside < 3 * alone + 0.005,
                f"/healthz took {alone * 1000:.2f} ms alone, {beside * 1000:.2f} ms beside them",
            )
            check(metric(one, "hutch_loop_stall_seconds_max") < 0.5, "the loop was held up")
            equal("none was closed early", metric(one, "hutch_connections_evicted_total"), 0)
            equal("all are closed in the end", ended(connections, 40), MANY - 1)
        eventually("the server has none", lambda: metric(one, "hutch_connections") <= 2)


@case
def one_too_many() -> None:
    """Beyond the limit the longest idle one makes room; when all are busy the next is told so; later there is room."""
    with service("connections", HUTCH_SERVER_MAX_CONNECTIONS="20") as one, sandbox(one) as box:
        with dialled(one, 20) as connections:
            equal("room is made", one.call("GET", "/healthz", key=None).status, 200)
            equal("by the longest idle one", connections[0].recv(100), b"")
        run = one.start_exec(box, command="sleep 50")
        with dialled(one, 20) as followers:
            for connection in followers:
                connection.sendall(f"GET {V}/execs/{run}/output?follow=true HTTP/1.1\r\n{WITH_KEY}\r\n".encode())
                contains("it follows", connection.recv(4096).decode(), "200 OK")
            for _ in range(5):
                answer = one.call("GET", "/healthz", key=None)
                equal("one too many", (answer.status, answer.code), (503, "unavailable"))
        eventually("room again", lambda: one.call("GET", "/healthz", key=None).status == 200)


@case
def slow_heads() -> None:
    """Heads that come byte by byte: their time is over soon, they keep nobody out, and are told 408."""
    with service("connections", HUTCH_SERVER_HEADER_TIMEOUT_SECONDS="1", HUTCH_SERVER_MAX_CONNECTIONS="100") as one:
        with dialled(one, 150) as connections:
            for connection in connections:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHo")
            equal("somebody else", one.call("GET", "/healthz", key=None).status, 200)
            last = connections[-1]
            began = time.monotonic()
            while not select.select([last], [], [], 0.1)[0] and time.monotonic() - began < 10:
                last.send(b"s")
            contains("slow", read_all(last).decode(), "HTTP/1.1 408 ")
            quick("a slow head", time.monotonic() - began, 4)
        equal("afterwards", one.call("GET", "/healthz", key=None).status, 200)


@case
def slow_bodies() -> None:
    """A body that stops coming is 408, and what it was for did not happen."""
    with service("connections", HUTCH_SERVER_BODY_TIMEOUT_SECONDS="1") as one, dialled(one, 1) as (connection,):
        head = f"POST {V}/sandboxes HTTP/1.1\r\n{WITH_KEY}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
        connection.sendall(f"{head}{{".encode())
        contains("slow", read_all(connection).decode(), "HTTP/1.1 408 ")
        equal("nothing happened", one.ok("GET", f"{V}/sandboxes").json["count"], 0)


@case
def half_closed() -> None:
    """A client that closes its end after a request that takes no time gets the answer; the command of one is killed."""
    with service("connections") as one, sandbox(one) as box, dialled(one, 2) as (quickly, slowly):
        quickly.sendall(f"GET {V}/sandboxes/{box} HTTP/1.1\r\n{WITH_KEY}\r\n".encode())
        quickly.shutdown(socket.SHUT_WR)
        contains("its answer", read_all(quickly).decode(), "200 OK", box)
        body = json.dumps({"tool": "shell_exec", "arguments": {"command": "sleep 444"}})
        head = f"POST {V}/sandboxes/{box}/tools/execute HTTP/1.1\r\n{WITH_KEY}Content-Type: application/json\r\n"
        slowly.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        eventually("it runs", lambda: "sleep 444" in one.shell(box, "ps -eo args")["stdout"])
        slowly.shutdown(socket.SHUT_WR)
        eventually("it is killed", lambda: "sleep 444" not in one.shell(box, "ps -eo args")["stdout"])


@case
def never_reading() -> None:
    """Clients that ask for much and never read are ended; the gateway keeps little for them, and others are served."""
    with service("connections", HUTCH_SERVER_SEND_TIMEOUT_SECONDS="1") as one:
        with sandbox(one, resource_limits={"disk_mb": 100, "memory_mb": 256}) as box, dialled(one, 40) as connections:
            one.shell(box, "head -c 50000000 /dev/zero > zeros")
            before = memory(one)
            for connection in connections:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(f"GET {V}/sandboxes/{box}/files/zeros HTTP/1.1\r\n{WITH_KEY}\r\n".encode())
            quick("/healthz", healthz(one), 0.5)
            grown = memory(one) - before
            check(SANITIZED or grown < 40 << 20, f"the gateway grew by {grown >> 20} MiB for 40 of them")
            eventually("they are ended", lambda: metric(one, "hutch_requests_in_flight") == 1, 20)


@case
def pipelined() -> None:
    """Requests in one go: answered in order; after one that is malformed nothing more is taken from that connection."""
    good = f"GET /healthz HTTP/1.1\r\n{HOST}\r\n"
    with service("connections") as one:
        last = f"GET /healthz HTTP/1.1\r\n{HOST}Connection: close\r\nX-Request-ID: last\r\n\r\n"
        answer = one.raw((good + f"GET /nothing HTTP/1.1\r\n{HOST}\r\n" + good + last).encode()).decode()
        statuses = [line.split()[1] for line in answer.splitlines() if line.startswith("HTTP/1.1 ")]
        equal("an error that was understood ends nothing", statuses, ["200", "404", "200", "200"])
        for bad in (
            "GET /healthz HTTP/1.1\r\n\r\n",
            f"GET  /healthz HTTP/1.1\r\n{HOST}\r\n",
            f"GET /healthz HTTP/1.1\r\n{HOST}X: 1\r\n folded\r\n\r\n",
            f"GET /healthz HTTP/1.1\r\n{HOST}X: a\nY: b\r\n\r\n",
            f"BREW /healthz HTTP/1.1\r\n{HOST}\r\n",
            f"GET /{'x' * 9000} HTTP/1.1\r\n{HOST}\r\n",
            f"GET /healthz HTTP/1.1\r\n{HOST}X: {'x' * 40000}\r\n\r\n",
        ):
            answer = one.raw((good + bad + last).encode()).decode()
            statuses = [line.split()[1] for line in answer.splitlines() if line.startswith("HTTP/1.1 ")]
            check(len(statuses) == 2 and statuses[0] == "200" and statuses[1][0] in "45", f"{bad[:40]!r}: {statuses}")
            check("X-Request-ID: last" not in answer, f"{bad[:40]!r}: the one behind it was heard")


@case
def smuggled() -> None:
    """Requests whose end could be seen in two places are refused, and what is hidden in them is not heard."""
    hidden = f"GET {V}/sandboxes HTTP/1.1\r\n{WITH_KEY}X-Request-ID: hidden\r\n\r\n"
    size = len(hidden)
    lengths = (
        f"Content-Length: 0\r\nContent-Length: {size}\r\n",
        f"Content-Length: {size}\r\nContent-Length: 0\r\n",
        f"Content-Length: 0, {size}\r\n",
        f"Content-Length: +{size}\r\n",
        "Content-Length: -1\r\n",
        f"Content-Length: 0x{size:x}\r\n",
        "Content-Length: 99999999999999999999\r\n",
        f"Content-Length : {size}\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "X: 1\nTransfer-Encoding: chunked\r\n",
        "X: 1\r Transfer-Encoding: chunked\r\n",
    )
    chunks = (
        "0;\n\r\n",
        "0\r\n\n",
        "+0\r\n\r\n",
        "0x0\r\n\r\n",
        " 0\r\n\r\n",
        "-1\r\n\r\n",
        "1\r\nxx\r\n0\r\n\r\n",
        "1\r\nx0\r\n\r\n",
    )
    head = f"POST {V}/sandboxes HTTP/1.1\r\n{WITH_KEY}Content-Type: application/json\r\n"
    with service("connections") as one:
        tries = [f"{head}{length}\r\n0\r\n\r\n{hidden}" for length in lengths]
        tries += [f"{head}Transfer-Encoding: chunked\r\n\r\n{chunk}{hidden}" for chunk in chunks]
        for data in tries:
            answer = one.raw(data.encode("latin-1")).decode()
            check(answer.startswith(("HTTP/1.1 400 ", "HTTP/1.1 501 ")), f"{data[160:260]!r}: {answer[:80]!r}")
            equal(f"{data[160:260]!r}: answers", answer.count("HTTP/1.1 "), 1)
            check("hidden" not in answer, f"{data[160:260]!r}: what was hidden was heard")
        equal("nothing was made", one.ok("GET", f"{V}/sandboxes").json["count"], 0)


@case
def large_bodies() -> None:
    """Bodies of 100 MB are refused while they come, told so, and cost no memory; one that lies about its length too."""
    block = b" " * (1 << 20)
    with service("connections") as one:
        before = memory(one)
        for lengths in ("Content-Length: 104857600\r\n", "Transfer-Encoding: chunked\r\n"):
            with dialled(one, 1) as (connection,):
                head = f"POST {V}/sandboxes HTTP/1.1\r\n{WITH_KEY}Content-Type: application/json\r\n{lengths}\r\n"
                connection.sendall(head.encode())
                for _ in range(100):
                    connection.sendall(b"100000\r\n" + block + b"\r\n" if "chunked" in lengths else block)
                contains(lengths, read_all(connection).decode(), "HTTP/1.1 413 ", "too_large")
        grown = memory(one) - before
        check(SANITIZED or grown < 48 << 20, f"the gateway grew by {grown >> 20} MiB")


if __name__ == "__main__":
    main()
