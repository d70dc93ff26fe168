#!/usr/bin/env python3
"""Commands, output, files and events as streams; clients that vanish; a gateway that is killed."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import signal
import sqlite3
import socket
import threading
import time

from harness import SANITIZED, case, check, contains, equal, eventually, main, portion
from service import KEY, Events, Service, sandbox, service

V = "/api/v1"
RAW = {"Accept": "application/octet-stream"}


@case
def execs() -> None:
    """Commands with an id: argv, wait, detach, their list, their result, their end."""
    with service("streams") as one, sandbox(one) as box:
        path = f"{V}/sandboxes/{box}/execs"
        waited = one.ok("POST", path, {"argv": ["printf", "%s|", "a b", "c"], "wait": True}).json
        equal("argv", (waited["stdout"], waited["exit_code"], waited["status"]), ("a b|c|", 0, "exited"))
        equal("no program", one.ok("POST", path, {"argv": ["/no/such"], "wait": True}).json["exit_code"], 127)
        started = one.ok("POST", path, {"command": "echo one; sleep 100"}, 201)
        run = started.json["id"]
        equal("location", started.headers["Location"], f"{V}/execs/{run}")
        equal("running", (started.json["status"], started.json["exit_code"]), ("running", None))
        eventually("output", lambda: one.ok("GET", f"{V}/execs/{run}").json["output_next"] == 4)
        equal("listed", [item["id"] for item in one.ok("GET", path).json["execs"]][-1], run)
        one.ok("POST", f"{V}/execs/{run}/signal", {"signal": "TERM"}, 204)
        eventually("ended", lambda: one.ok("GET", f"{V}/execs/{run}").json["status"] == "exited")
        equal("by a signal", one.ok("GET", f"{V}/execs/{run}").json["exit_code"], 143)
        equal("signal after the end", one.call("POST", f"{V}/execs/{run}/signal", {"signal": "TERM"}).status, 409)
        one.ok("DELETE", f"{V}/execs/{run}", status=204)
        equal("its result stays", one.ok("GET", f"{V}/execs/{run}").json["exit_code"], 143)
        run = one.start_exec(box, command="sleep 101 & sleep 102")
        one.ok("DELETE", f"{V}/execs/{run}", status=204)
        eventually("killed", lambda: one.ok("GET", f"{V}/execs/{run}").json["status"] == "exited")
        equal("and it says so", one.ok("GET", f"{V}/execs/{run}").json["killed"], True)
        eventually("the whole tree", lambda: "sleep" not in one.shell(box, "ps -eo args")["stdout"])
        for body, part in (
            ({}, "command"),
            ({"command": "x", "argv": ["x"]}, "command"),
            ({"argv": []}, "argv"),
            ({"argv": [""]}, "command"),
            ({"argv": ["x"], "tty": 1}, "tty"),
            ({"command": "x", "stdin": "a", "stdin_open": True}, "stdin_open"),
            ({"command": "x", "output_bytes": 0}, "output_bytes"),
            ({"command": "x", "nice": 5}, "nice"),
        ):
            answer = one.call("POST", path, body)
            equal(f"{body}: {answer.body[:100]!r}", answer.status, 400)
            contains(str(body), answer.message, part)
        equal("blocked", one.call("POST", path, {"argv": ["rm", "-rf", "/"]}).code, "command_blocked")
        for body in ({}, {"signal": "NOPE"}, {"signal": 9}, {"signal": "TERM", "scope": "world"}):
            equal(str(body), one.call("POST", f"{V}/execs/{run}/signal", body).status in (400, 404), True)


@case
def large_input() -> None:
    "Input larger than any pipe goes on when the call that brought it has been answered; a second writer is told to wait"
    with service("input") as one, sandbox(one) as box:
        path = f"{V}/sandboxes/{box}/execs"
        size = 6_000_000
        execs = [
            one.ok("POST", path, {"command": "sleep 1; wc -c", "stdin": "A" * size}, 201).json["id"] for _ in range(4)
        ]
        equal("busy", one.call("POST", f"{V}/execs/{execs[0]}/stdin", data=b"more").status, 409)
        for run in execs:
            eventually("ended", lambda: one.ok("GET", f"{V}/execs/{run}").json["status"] == "exited")
            output = one.call("GET", f"{V}/execs/{run}/output", headers=RAW)
            equal("all of it", output.body.strip(), str(size).encode())


@case
def output() -> None:
    """Output as pages, as events and as bytes, from any point on, each stream alone."""
    with service("streams") as one, sandbox(one) as box:
        run = one.start_exec(box, command="printf 'out\\303'; sleep .2; printf err >&2; sleep .2; printf '\\251\\377.'")
        path = f"{V}/execs/{run}/output"
        events = list(Events(one, f"{path}?follow=true"))
        text = "".join(data["data"] for event, _, data in events if event == "stdout")
        equal("text is cut between characters", text, "out\u00e9\ufffd.")
        equal("stderr", [data["data"] for event, _, data in events if event == "stderr"], ["err"])
        event, identity, data = events[-1]
        equal("the end", (event, identity, data["exit_code"]), ("exit", "10", 0))
        raw = one.ok("GET", path, headers=RAW).body
        equal("bytes", raw, b"out\xc3err\xa9\xff.")
        equal("stdout alone", one.ok("GET", f"{path}?stream=stdout", headers=RAW).body, b"out\xc3\xa9\xff.")
        page = one.ok("GET", f"{path}?encoding=base64").json
        joined = b"".join(base64.b64decode(chunk["data"]) for chunk in page["chunks"])
        equal("base64", joined, raw)
        equal("page", (page["first"], page["next"], page["more"], page["exit_code"]), (0, 10, False, 0))
        for after in range(11):
            equal(f"after {after}", one.ok("GET", f"{path}?after={after}", headers=RAW).body, raw[after:])
        after = list(Events(one, path, **{"Last-Event-ID": "7"}))
        equal("Last-Event-ID", after[0][2]["seq"], 7)
        for query in ("after=-1", "after=x", "follow=1", "stream=both", "encoding=x", "x=1"):
            equal(query, one.call("GET", f"{path}?{query}").status, 400)


@case
def much() -> None:
    """A command that prints much is followed byte by byte by a slow reader, and by two at once."""
    lines = portion(200000)
    expected = hashlib.sha256("".join(f"{i}\n" for i in range(1, lines + 1)).encode()).hexdigest()
    with service("streams") as one, sandbox(one) as box:
        run = one.start_exec(box, command=f"sleep .5; seq 1 {lines}", detach=True)
        found = []

        def follow(pause: float) -> None:
            connection = one.connect()
            headers = {"Authorization": f"Bearer {KEY}", **RAW}
            connection.request("GET", f"{V}/execs/{run}/output?follow=true", headers=headers)
            response = connection.getresponse()
            digest = hashlib.sha256()
            while part := response.read(65536):
                digest.update(part)
                time.sleep(pause)
            found.append(digest.hexdigest())

        threads = [threading.Thread(target=follow, args=(pause,)) for pause in (0, 0.02)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal("both", found, [expected] * 2)


@case
def stdin() -> None:
    """Standard input in pieces, large, with its end; and a terminal with its size."""
    with service("streams") as one, sandbox(one) as box:
        run = one.start_exec(box, command="sha256sum", stdin_open=True)
        data = os.urandom(3 << 20)
        for start in range(0, len(data), 1 << 20):
            one.ok("POST", f"{V}/execs/{run}/stdin", data=data[start : start + (1 << 20)], status=204)
        one.ok("POST", f"{V}/execs/{run}/stdin?end=true", data=b"", status=204)
        eventually("it has ended", lambda: one.ok("GET", f"{V}/execs/{run}").json["status"] == "exited")
        got = one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body.split()[0].decode()
        equal("every byte", got, hashlib.sha256(data).hexdigest())
        equal("after the end", one.call("POST", f"{V}/execs/{run}/stdin", data=b"x").status, 409)
        run = one.start_exec(box, command="stty size; read x; stty size; echo got $x", tty=True, rows=10, columns=20)
        eventually("its size", lambda: b"10 20" in one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body)
        one.ok("POST", f"{V}/execs/{run}/resize", {"rows": 30, "columns": 40}, 204)
        one.ok("POST", f"{V}/execs/{run}/stdin", data=b"word\n", status=204)
        eventually("its new size", lambda: b"30 40" in one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body)
        eventually("what was typed", lambda: b"got word" in one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body)
        for body in ({}, {"rows": 0, "columns": 1}, {"rows": 1, "columns": 65536}):
            equal(str(body), one.call("POST", f"{V}/execs/{run}/resize", body).status in (400, 404), True)


def stdin_next(one: Service, run: str) -> int:
    """Where its standard input goes on, as soon as the gateway is back and knows."""
    found: list[int] = []

    def known() -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            value = one.ok("GET", f"{V}/execs/{run}").json["stdin_next"]
            found.extend([] if value is None else [value])
        return found != []

    eventually("it is known", known)
    return found[0]


@case
def stdin_again() -> None:
    """Standard input by offset: what came before is left out, a gap is refused, the end may be said twice."""
    with service("streams") as one, sandbox(one) as box:
        run = one.start_exec(box, command="cat > got; sleep 100", stdin_open=True)
        path = f"{V}/execs/{run}/stdin"
        rows = [
            ("?offset=0", b"abc", 204, 3),
            ("?offset=0", b"abc", 204, 3),
            ("?offset=1", b"bcde", 204, 5),
            ("?offset=6", b"g", 409, 5),
            ("?offset=-1", b"g", 400, 5),
            ("", b"f", 204, 6),
            ("?offset=2&end=true", b"cdefgh", 204, 8),
            ("?offset=2&end=true", b"cdefgh", 204, 8),
            ("?offset=7&end=true", b"hi", 400, 8),
        ]
        for query, data, status, after in rows:
            answer = one.call("POST", path + query, data=data)
            equal(f"{query} {data!r}: {answer.body!r}", (answer.status, stdin_next(one, run)), (status, after))
        eventually("every byte once", lambda: one.shell(box, "cat got")["stdout"] == "abcdefgh")
        run = one.start_exec(box, command="exec <&-; sleep 100", stdin_open=True)
        for offset in (0, 10, 20):
            one.ok("POST", f"{V}/execs/{run}/stdin?offset={offset}", data=b"nobody's\n\n", status=204)
            eventually("thrown away", lambda: stdin_next(one, run) == offset + 10)
        run = one.start_exec(box, command="sleep 100")
        equal("it has none", one.ok("GET", f"{V}/execs/{run}").json["stdin_next"], None)


def inits(pid: int) -> list[int]:
    """The processes below this one that are the first of a sandbox."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [int(child) for child in children if "hutch-init" in pathlib.Path(f"/proc/{child}/comm").read_text()]
    return found + [init for child in children for init in inits(int(child))]


@case
def stdin_when_init_is_slow() -> None:
    """The end of standard input comes also when nothing can be said to the sandbox at that moment."""
    with service("streams") as one, sandbox(one) as box:
        runs = [one.start_exec(box, command="wc -c", stdin_open=True) for _ in range(2)]
        path = f"{V}/execs/{runs[0]}/stdin?end=true"
        stopped = inits(one.process.pid)
        check(stopped != [], "no sandbox has an init")
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        again = threading.Timer(1, lambda: [os.kill(pid, signal.SIGCONT) for pid in stopped])
        again.start()
        much = threading.Thread(target=lambda: one.call("POST", path, data=b"x" * 500_000))
        much.start()
        eventually("the link is full", lambda: one.ok("GET", f"{V}/execs/{runs[0]}").json["stdin_next"] > 200_000)
        one.ok("POST", f"{V}/execs/{runs[1]}/stdin?end=true", data=b"", status=204)
        much.join()
        again.join()
        for run, size in zip(runs, (b"500000", b"0")):
            eventually("it has ended", lambda: one.ok("GET", f"{V}/execs/{run}").json["status"] == "exited")
            equal("every byte", one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body.strip(), size)


@case
def stdin_over_restarts() -> None:
    """kill -9 of the gateway while a client writes standard input: it goes on, and every byte comes once."""
    data = os.urandom(portion(24) << 20)
    with service("streams") as one, sandbox(one) as box:
        slow = "while head -c 400000 > part && [ -s part ]; do cat part; sleep 0.02; done | sha256sum"
        run = one.start_exec(box, command=slow, stdin_open=True)
        at, kills, answered = 0, 0, 0
        while at < len(data):
            piece = data[at : at + (5 << 20)]
            end = "&end=true" if at + len(piece) == len(data) else ""
            timer = threading.Timer(0.1, os.kill, (one.gateway(), signal.SIGKILL)) if kills < 3 else None
            kills += timer is not None
            if timer is not None:
                timer.start()
            with contextlib.suppress(OSError, http.client.HTTPException):
                status = one.call("POST", f"{V}/execs/{run}/stdin?offset={at}{end}", data=piece).status
                equal("written", status, 204)
                answered = at + len(piece)
            if timer is not None:
                timer.join()
                eventually("another gateway", lambda: one.log.count("event=adopted") > kills)
            at = stdin_next(one, run)
            check(at >= answered, f"{answered} bytes were answered, {at} are there")
        eventually("it has ended", lambda: one.ok("GET", f"{V}/execs/{run}").json["status"] == "exited", 60)
        got = one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body.split()[0].decode()
        equal("every byte", got, hashlib.sha256(data).hexdigest())
        equal("gateways", one.log.count("event=adopted"), kills + 1)


@case
def large_files() -> None:
    """A large file up and down, with the daemon's memory no larger for it."""
    size = (64 if SANITIZED else 200) << 20
    block = os.urandom(1 << 20)
    with service("streams") as one, sandbox(one, resource_limits={"disk_mb": 400, "memory_mb": 512}) as box:
        path = f"{V}/sandboxes/{box}/files/large"
        before = memory(one)
        digest = hashlib.sha256()

        def pieces():
            for _ in range(size >> 20):
                digest.update(block)
                yield block

        connection = one.connect(120)
        connection.request("PUT", path, body=pieces(), headers={"Authorization": f"Bearer {KEY}"}, encode_chunked=True)
        response = connection.getresponse()
        equal("up", (response.status, json.loads(response.read())["bytes_written"]), (200, size))
        connection.request("GET", path, headers={"Authorization": f"Bearer {KEY}"})
        response = connection.getresponse()
        equal("length", int(response.headers["Content-Length"]), size)
        got = hashlib.sha256()
        while part := response.read(1 << 20):
            got.update(part)
        equal("down", got.hexdigest(), digest.hexdigest())
        check(memory(one) - before < 64 << 20, f"the gateway grew by {memory(one) - before} bytes")


def memory(one: Service) -> int:
    with open(f"/proc/{one.gateway()}/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) << 10


@case
def events() -> None:
    """Everything that happens is told, in order, and again from any point on."""
    with service("streams") as one:
        stream = Events(one, f"{V}/events")
        box = one.create()
        one.shell(box, "exit 3")
        one.destroy(box)
        seen = []
        for event, identity, data in stream:
            if data["sandbox_id"] == box:
                seen.append((event, int(identity), data))
            if event == "sandbox.ended":
                break
        stream.close()
        names = [event for event, _, _ in seen]
        for name in ("sandbox.ready", "exec.started", "exec.ended", "sandbox.ended"):
            check(name in names, f"{name} in {names}")
        equal("in order", [identity for _, identity, _ in seen], sorted(identity for _, identity, _ in seen))
        ended = next(data for event, _, data in seen if event == "exec.ended")
        equal("exit code", ended["exit_code"], 3)
        equal("reason", seen[-1][2]["reason"], "destroyed")
        again = Events(one, f"{V}/events?after={seen[1][1]}")
        for _, identity, _ in again:
            check(int(identity) > seen[1][1], "only what came after")
            if int(identity) >= seen[-1][1]:
                break
        again.close()


@case
def vanishing() -> None:
    """Clients that vanish at each stage: their command is killed, nothing is left, nobody else notices."""
    with service("streams") as one, sandbox(one) as box:
        path = f"{V}/sandboxes/{box}/tools/execute"
        body = json.dumps({"tool": "shell_exec", "arguments": {"command": "sleep 333"}}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        whole = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        for length in (0, 1, 20, len(head), len(whole) - len(body), len(whole) - 1, len(whole)):
            with socket.create_connection(("127.0.0.1", one.port)) as connection:
                connection.sendall(whole[:length])
                time.sleep(0.1)
        eventually("its command is killed", lambda: "sleep 333" not in one.shell(box, "ps -eo args")["stdout"])
        upload = f"PUT {V}/sandboxes/{box}/files/half HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        with socket.create_connection(("127.0.0.1", one.port)) as connection:
            connection.sendall(f"{upload}Content-Length: 10000000\r\n\r\n".encode() + bytes(1 << 20))
            time.sleep(0.2)
        equal("half an upload", one.call("GET", f"{V}/sandboxes/{box}/files/half").status, 404)
        one.shell(box, "head -c 50000000 /dev/zero > zeros")
        for _ in range(5):
            connection = one.connect()
            headers = {"Authorization": f"Bearer {KEY}"}
            connection.request("GET", f"{V}/sandboxes/{box}/files/zeros", headers=headers)
            connection.getresponse().read(1000)
            connection.close()
        run = one.start_exec(box, command="yes", detach=False)
        follower = one.connect()
        headers = {"Authorization": f"Bearer {KEY}", **RAW}
        follower.request("GET", f"{V}/execs/{run}/output?follow=true", headers=headers)
        follower.getresponse().read(100000)
        follower.close()
        eventually("its last follower left", lambda: one.ok("GET", f"{V}/execs/{run}").json["status"] == "exited")
        eventually("no request is left", lambda: metric(one, "hutch_requests_in_flight") == 1)
        equal("it works", one.shell(box, "echo on")["stdout"], "on\n")


def metric(one: Service, name: str) -> float:
    text = one.ok("GET", "/metrics").body.decode()
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")))


@case
def killed() -> None:
    """kill -9 of the gateway: commands go on, their output has every byte, no recorded call is lost."""
    lines = portion(1000000)
    half = lines // 2
    expected = hashlib.sha256("".join(f"{i}\n" for i in range(1, lines + 1)).encode()).hexdigest()
    with service("streams") as one, sandbox(one) as box:
        one.shell(box, "echo kept > file")
        command = f"seq 1 {half}; sleep 1; seq {half + 1} {lines}"
        run = one.start_exec(box, command=command, output_bytes=64 << 20)
        ended = one.start_exec(box, command="echo ended before")
        eventually("it prints", lambda: one.ok("GET", f"{V}/execs/{run}").json["output_next"] > 1000)
        eventually("ended", lambda: one.ok("GET", f"{V}/execs/{ended}").json["status"] == "exited")
        calls = one.ok("GET", f"{V}/sandboxes/{box}/logs?limit=1000").json["entries"]
        before = one.gateway()
        os.kill(before, signal.SIGKILL)
        eventually("another gateway", lambda: one.gateway() not in (0, before) and answers(one))
        equal("the sandbox is there", one.ok("GET", f"{V}/sandboxes/{box}").json["status"], "running")
        got = hashlib.sha256(one.ok("GET", f"{V}/execs/{run}/output?follow=true", headers=RAW).body).hexdigest()
        equal("every byte", got, expected)
        equal("and its end", one.ok("GET", f"{V}/execs/{run}").json["exit_code"], 0)
        equal("its files", one.shell(box, "cat file")["stdout"], "kept\n")
        entries = one.ok("GET", f"{V}/sandboxes/{box}/logs?limit=1000").json["entries"]
        now = {entry["number"]: entry["hash"] for entry in entries}
        check(all(now.get(entry["number"]) == entry["hash"] for entry in calls), "no record was lost")
        equal("what had ended", one.ok("GET", f"{V}/execs/{ended}").json["exit_code"], 0)
        equal("its output", one.ok("GET", f"{V}/execs/{ended}/output", headers=RAW).body, b"ended before\n")
        page = one.ok("GET", f"{V}/execs/{ended}/output?after=6").json
        equal("a page of it", ("".join(chunk["data"] for chunk in page["chunks"]), page["more"]), ("before\n", False))


@case
def killed_often() -> None:
    """kill -9 of the gateway again and again while a command prints: not one byte is lost or comes twice."""
    part = portion(60000 if SANITIZED else 200000)
    lines = 25 * part
    expected = hashlib.sha256("".join(f"{i}\n" for i in range(1, lines + 1)).encode()).hexdigest()
    with service("streams") as one, sandbox(one) as box:
        # Slow enough that each gateway meets it while it prints.
        command = f"for i in $(seq 0 24); do seq $((i * {part} + 1)) $(((i + 1) * {part})); sleep .15; done"
        run = one.start_exec(box, command=command, output_bytes=64 << 20)
        seen = 0
        for _ in range(4):
            eventually("it prints", lambda: one.ok("GET", f"{V}/execs/{run}").json["output_next"] > seen, 30)
            seen = one.ok("GET", f"{V}/execs/{run}").json["output_next"]
            before = one.gateway()
            os.kill(before, signal.SIGKILL)
            eventually("another gateway", lambda: one.gateway() not in (0, before) and answers(one), 30)
        got = hashlib.sha256(one.ok("GET", f"{V}/execs/{run}/output?follow=true", headers=RAW).body).hexdigest()
        equal("every byte", got, expected)
        equal("and its end", one.ok("GET", f"{V}/execs/{run}").json["exit_code"], 0)


@case
def environments() -> None:
    """A sandbox's environment is there after kill -9 of the gateway, but in no file of the state folder, log or answer."""
    canary, mine = "canary-" + os.urandom(12).hex(), "canary-" + os.urandom(12).hex()
    with service("streams", HUTCH_LOGGING_LEVEL="debug") as one:
        made = one.ok("POST", f"{V}/sandboxes", {"env": {"SECRET": canary, "OTHER": "x y"}}, 201)
        box = made.json["id"]
        equal("it is there", one.shell(box, "test $SECRET = $MINE", env={"MINE": canary})["exit_code"], 0)
        run = one.start_exec(box, command="test -n $MINE && sleep 100", env={"MINE": mine})
        for _ in range(2):
            before = one.gateway()
            os.kill(before, signal.SIGKILL)
            eventually("another gateway", lambda: one.gateway() not in (0, before) and answers(one))
        digest = hashlib.sha256(canary.encode()).hexdigest()
        command = f"test $(printf %s $SECRET | sha256sum | cut -c-64) = {digest}"
        equal("it is still there", one.shell(box, command)["exit_code"], 0)
        equal("all of it", one.shell(box, "echo $OTHER")["stdout"], "x y\n")
        shown = [made.body, one.ok("GET", f"{V}/sandboxes").body, one.ok("GET", f"{V}/sandboxes/{box}").body]
        shown += [one.ok("GET", f"{V}/execs/{run}").body, one.ok("GET", f"{V}/sandboxes/{box}/logs?limit=1000").body]
        files = {path: path.read_bytes() for path in one.state.rglob("*") if path.is_file() and not path.is_socket()}
        check(any(path.name == "hutch.db" for path in files), f"{list(files)}")
        for secret in (canary.encode(), mine.encode()):
            check(not any(secret in body for body in shown), "not in an answer")
            check(secret.decode() not in one.log, "not in the log")
            found = [str(path) for path, data in files.items() if secret in data]
            equal("not in a file", found, [])
        one.destroy(box)


def spools(one: Service) -> list[str]:
    return sorted(path.name for path in (one.state / "gateway/spool").iterdir())


def printed(number: int) -> int:
    """How many bytes `seq 1 number` prints."""
    digits = len(str(number))
    return sum(9 * 10 ** (n - 1) * (n + 1) for n in range(1, digits)) + (number - 10 ** (digits - 1) + 1) * (digits + 1)


def last_line(body: bytes) -> int:
    """Of numbered lines without a gap, whose first and last may be cut off."""
    numbers = [int(line) for line in body.split(b"\n")[1:-1]]
    check(len(numbers) > 1000, f"{len(body)} bytes")
    equal("not a line is missing", numbers, list(range(numbers[0], numbers[-1] + 1)))
    return numbers[-1]


@case
def spooled() -> None:
    """What a flood prints goes to a spool and not to the database; what is kept is there in the end, the spool is not."""
    with service("streams") as one, sandbox(one) as box:
        equal("none", spools(one), [])
        run = one.start_exec(box, command="seq 1 100000000")
        eventually("a flood", lambda: one.ok("GET", f"{V}/execs/{run}").json["output_next"] > 30 << 20, 30)
        equal("its spool", spools(one), [run])
        size = sum(path.stat().st_size for path in (one.state / "gateway").glob("hutch.db*"))
        check(size < 10 << 20, f"the database has {size} bytes")
        one.ok("DELETE", f"{V}/execs/{run}", status=204)
        eventually("ended", lambda: one.ok("GET", f"{V}/execs/{run}").json["status"] == "exited")
        eventually("removed", lambda: spools(one) == [])
        before = one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body
        last_line(before)
        old = one.gateway()
        os.kill(old, signal.SIGKILL)
        eventually("another gateway", lambda: one.gateway() not in (0, old) and answers(one), 30)
        stored = one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body
        equal("the database has it", (len(stored), stored == before), (len(before), True))
        run = one.start_exec(box, command="seq 1 1000000; sleep 100")
        eventually("calm", lambda: one.ok("GET", f"{V}/execs/{run}").json["output_next"] == printed(1000000), 30)
        eventually("recorded while it runs", lambda: spools(one) == [], 10)


@case
def spooled_and_killed() -> None:
    """kill -9 of everything during a flood: all that was ever shown of it is there afterwards."""
    with service("streams") as one:
        run = one.start_exec(one.create(), command="seq 1 100000000", output_bytes=8 << 20)
        eventually("a flood", lambda: one.ok("GET", f"{V}/execs/{run}").json["output_next"] > 30 << 20, 30)
        equal("its spool", spools(one), [run])
        seen = one.ok("GET", f"{V}/execs/{run}").json["output_next"]
        one.process.kill()
        one.process.wait()
        eventually("the gateway has gone", lambda: answers(one) is False)
        one.start()
        equal("no spool", spools(one), [])
        body = one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body
        check(7 << 20 < len(body) <= 9 << 20, f"{len(body)} bytes are kept")
        last = last_line(body)
        check(printed(last + 1) > seen, f"it ends with {last} at {printed(last)}, but {seen} had been shown")


@case
def little_memory() -> None:
    """All the output that may be kept at once fits into the gateway's memory, also when another takes it over."""
    memory_mb = 2048 if SANITIZED else 128  # a sanitizer takes most of it
    size, count = 12000000, 16  # each has the least size: a quarter of it in all
    with service("streams", HUTCH_GATEWAY_MEMORY_MB=str(memory_mb)) as one:
        box = one.create(resource_limits={"max_processes": 4 * count})
        script = f"head -c {size} /dev/zero | cat; sleep 500"
        runs = [one.start_exec(box, command=script, output_bytes=64 << 20) for _ in range(count)]
        refused = one.call("POST", f"{V}/sandboxes/{box}/execs", {"command": "true"})
        check(SANITIZED or (refused.status, refused.code) == (429, "too_many"), f"one more: {refused.status}")

        def said(run: str) -> tuple[str, int]:
            info = one.ok("GET", f"{V}/execs/{run}").json
            return info["status"], info["output_next"]

        for run in runs:
            eventually("all of it", lambda run=run: said(run) == ("running", size), 60)
        before = one.gateway()
        os.kill(before, signal.SIGKILL)
        eventually("another gateway", lambda: one.gateway() not in (0, before) and answers(one))
        for run in runs:
            equal("it goes on", said(run), ("running", size))
            body = one.ok("GET", f"{V}/execs/{run}/output", headers=RAW).body
            check(min(size, 2 << 20) <= len(body) <= size, f"{len(body)} bytes are kept")
        equal("gateways", one.log.count("event=adopted"), 2)
        one.process.kill()
        one.process.wait()
        eventually("the gateway has gone", lambda: answers(one) is False)
        one.start()
        with sqlite3.connect(f"file:{one.state}/gateway/hutch.db?mode=ro", uri=True) as database:
            lost = database.execute("SELECT exec FROM audit WHERE action = 'exec.end' AND detail LIKE '%lost%'")
            equal("the end of each", sorted(row[0] for row in lost), sorted(runs))


def answers(one: Service) -> bool:
    try:
        return one.call("GET", "/healthz", key=None).status == 200
    except OSError:
        return False


@case
def drains() -> None:
    """SIGTERM while streams are open: they end, the daemon ends with 0, in time."""
    with service("streams", HUTCH_SERVER_DRAIN_SECONDS="2") as one:
        box = one.create()
        stream = Events(one, f"{V}/events")
        run = one.start_exec(box, command="sleep 500")
        follower = Events(one, f"{V}/execs/{run}/output?follow=true")
        started = time.monotonic()
        equal("it ends well", one.end(), 0)
        check(time.monotonic() - started < 15, "in time")
        stream.close()
        follower.close()


if __name__ == "__main__":
    main()
