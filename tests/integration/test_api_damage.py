#!/usr/bin/env python3
"""The daemon's own disk: a database that is lost or damaged, and no room to record anything."""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
from collections.abc import Iterator

from harness import Failed, case, check, contains, equal, eventually, main, place
from service import Service, sandbox, service

V = "/api/v1"


def refuses_to_start(one: Service) -> str:
    """What it says."""
    try:
        one.start()
    except Failed:
        equal("its status", one.process.wait(30), 1)
        return one.log
    one.end()
    raise Failed("it started")


@case
def damaged() -> None:
    """A damaged database: refuses to start, says which file and what to do, changes nothing; mended it starts."""
    with service("damage") as one:
        with sandbox(one) as box:
            one.shell(box, "echo before")
        equal("ended", one.end(), 0)
        database = one.state / "gateway/hutch.db"
        good = database.read_bytes()
        for what, data in {
            "its head": b"x" * 100 + good[100:],
            "its pages": good[:4096] + os.urandom(len(good) - 4096),
            "cut short": good[:5000],
            "another file": b"hello\n",
        }.items():
            database.write_bytes(data)
            contains(what, refuses_to_start(one), "hutch.db is damaged; nothing was changed. Move it away")
            check(database.read_bytes() == data, f"{what}: it was changed")
        database.write_bytes(good)
        one.start()
        check(one.ok("GET", f"{V}/sandboxes/{box}/logs").json["count"] > 0, "all is there again")


@case
def lost() -> None:
    """A database that is gone: a new one, with the credentials that were preset and nothing of before."""
    with service("damage") as one:
        with sandbox(one) as box:
            old = one.ok("POST", f"{V}/keys", {"name": "before", "scope": "admin"}, 201).json["secret"]
        equal("ended", one.end(), 0)
        for path in (one.state / "gateway").glob("hutch.db*"):
            path.unlink()
        one.start()
        equal("its log", one.call("GET", f"{V}/sandboxes/{box}/logs").status, 404)
        equal("a key of before", one.call("GET", f"{V}/tools", key=old).status, 401)
        with sandbox(one) as other:
            equal("it works", one.shell(other, "echo on")["stdout"], "on\n")


@contextlib.contextmanager
def small_disk(path: pathlib.Path) -> Iterator[None]:
    path.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
        path.rmdir()


def refusals(one: Service) -> int:
    """Of what never became a request, how many are in the audit log of a daemon that has ended."""
    with contextlib.closing(sqlite3.connect(one.state / "gateway/hutch.db")) as database:
        rows = database.execute("SELECT action, detail FROM audit WHERE principal IS NULL AND action LIKE 'request%'")
        return sum(json.loads(detail)["refused"] if action == "request.refused" else 1 for action, detail in rows)


@case
def full() -> None:
    """A full disk: what can't be recorded is 503 and not done, /health says so; with room it goes on, none is lost."""
    with small_disk(place() / "full"), service("full") as one:
        box = one.create()
        one.shell(box, "echo before")
        calls = one.ok("GET", f"{V}/sandboxes/{box}/logs").json["entries"]
        filler = one.state / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

        def is_refused() -> bool:
            answer = one.tool(box, "shell_exec", command=f": {'x' * 60000}")
            return answer.status == 503 and answer.code == "unavailable"

        eventually("503", is_refused)
        equal("/healthz", one.call("GET", "/healthz", key=None).status, 200)
        health = one.call("GET", "/health")
        equal("/health", (health.status, health.json["status"], health.json["recording"]), (200, "degraded", False))
        equal("a creation", one.call("POST", f"{V}/sandboxes", {}).status, 503)
        equal("a command", one.tool(box, "shell_exec", command="touch late").status, 503)
        sent = 0

        def is_unrecorded() -> bool:
            nonlocal sent
            contains("malformed", one.raw(b"GET / HTTP/1.1\r\nHost : x\r\n\r\n").decode(), "400 Bad Request")
            sent += 1
            return "event=unrecorded action=request peer=127.0.0.1 refused=1" in one.log

        eventually("a stranger's refusal", is_unrecorded)
        filler.unlink()
        eventually("with room", lambda: one.tool(box, "shell_exec", command="echo on").status == 200)
        check("late" not in one.shell(box, "ls")["stdout"], "a command ran that could not be recorded")
        equal("well again", one.ok("GET", "/health").json["status"], "ok")
        now = {
            entry["number"]: entry["hash"]
            for entry in one.ok("GET", f"{V}/sandboxes/{box}/logs?limit=1000").json["entries"]
        }
        check(all(now.get(entry["number"]) == entry["hash"] for entry in calls), "no record was lost")
        equal("it ends well", one.end(), 0)
        equal("refusals, those that could not be recorded at first as well", refusals(one), sent)


if __name__ == "__main__":
    main()
