#!/usr/bin/env python3
"""The door /api/v1 of a real daemon: every route, what it answers, and what it refuses."""

import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

from harness import BUILD, REPOSITORY, Skipped, case, check, contains, equal, eventually, main, make_root, place
from service import KEY, Service, quote, sandbox, service

V = "/api/v1"
NOBODY_HAS = "a" * 26


@case
def health() -> None:
    """What needs no credentials, and what /health and /metrics say."""
    with service("api") as one:
        equal("healthz", one.ok("GET", "/healthz", key=None).json, {"status": "ok"})
        contains("openapi.yaml", one.ok("GET", "/openapi.yaml", key=None).body.decode(), "openapi: 3.1.0")
        equal("health", one.ok("GET", "/health").json["status"], "ok")
        with sandbox(one) as box:
            one.shell(box, "true")
            text = one.ok("GET", "/metrics").body.decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        equal("execs counted", values["hutch_execs_total"], "1")
        equal("running sandboxes", values['hutch_sandboxes{state="running"}'], "1")
        check(float(values["hutch_loop_stall_seconds_max"]) < 1, "the loop was never held up for a second")
        check(float(values["hutch_store_batches_total"]) > 0, "records were counted")


@case
def headers() -> None:
    """Headers that every answer has, and request ids that come back."""
    with service("api") as one:
        answer = one.call("GET", "/healthz", headers={"X-Request-ID": "abc-DEF-123"}, key=None)
        equal("id", answer.headers["X-Request-ID"], "abc-DEF-123")
        for bad in ("a b", "x" * 65, "a;b"):
            made = one.call("GET", "/healthz", headers={"X-Request-ID": bad}, key=None).headers["X-Request-ID"]
            check(made != bad and re.fullmatch(r"[A-Za-z0-9-]{1,64}", made), f"{bad!r} became {made!r}")
        for name, value in (
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cache-Control", "no-store"),
        ):
            equal(name, answer.headers[name], value)
        contains("CSP", answer.headers["Content-Security-Policy"], "default-src 'none'")
        refused = one.call("GET", f"{V}/nothing")
        equal("the id is in the body", refused.json["error"]["request_id"], refused.headers["X-Request-ID"])


@case
def life() -> None:
    """A sandbox from its creation to its end, with every field of the answer."""
    with service("api") as one:
        made = one.ok(
            "POST",
            f"{V}/sandboxes",
            {
                "profile": "python-eval",
                "resource_limits": {"memory_mb": 200, "cpu": 0.75},
                "files": {"a.txt": "text", "d/b.bin": {"base64": base64.b64encode(bytes(range(256))).decode()}},
                "env": {"COLOUR": "red"},
                "labels": {"job": "17"},
                "idle_timeout_seconds": 300,
                "command_blocklist": ["forbidden-word"],
            },
            201,
            headers={"X-Agent": "tester"},
        )
        box = made.json
        equal("location", made.headers["Location"], f"{V}/sandboxes/{box['id']}")
        check(re.fullmatch(r"sb_[a-z0-9]{26}", box["id"]), "the id has its shape")
        for name, value in {
            "status": "running",
            "template": "host",
            "profile": "python-eval",
            "labels": {"job": "17"},
            "user": "nobody",
            "root": "ro",
            "agent": "tester",
            "idle_timeout_seconds": 300,
            "tools": ["shell_exec", "file_read", "file_write", "file_list"],
            "command_blocklist": ["forbidden-word"],
        }.items():
            equal(name, box[name], value)
        limits = box["resource_limits"]
        equal("explicit over profile", (limits["memory_mb"], limits["cpu"]), (200, 0.75))
        equal("profile over default", (limits["max_processes"], limits["timeout_seconds"]), (64, 120))
        check(box["expires_at"] > box["created_at"], "it expires later")
        for name in ("created_at", "expires_at"):
            check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", box[name]), f"{name} is {box[name]}")
        result = one.shell(box["id"], "cat a.txt; od -An -tu1 d/b.bin | tail -1; echo $COLOUR; id -u")
        equal("files and environment", result["stdout"].split(), ["text", *map(str, range(240, 256)), "red", "65534"])
        equal("blocked", one.tool(box["id"], "shell_exec", command="echo forbidden-word").code, "command_blocked")
        equal("details", one.ok("GET", f"{V}/sandboxes/{box['id']}").json["execs"], 1)
        one.ok("DELETE", f"{V}/sandboxes/{box['id']}", status=204)
        for method in ("GET", "DELETE"):
            equal("after the end", one.call(method, f"{V}/sandboxes/{box['id']}").status, 404)
        entries = one.ok("GET", f"{V}/sandboxes/{box['id']}/logs").json["entries"]
        check(any(entry["action"] == "sandbox.end" for entry in entries), "the end is in the log, which stays")


@case
def lists() -> None:
    """Lists by agent and status, page by page."""
    with service("api") as one:
        boxes = [
            one.ok("POST", f"{V}/sandboxes", {}, 201, headers={"X-Agent": f"agent{i % 2}"}).json["id"] for i in range(5)
        ]
        equal("all", [box["id"] for box in one.ok("GET", f"{V}/sandboxes").json["sandboxes"]], boxes)
        equal("by agent", one.ok("GET", f"{V}/sandboxes?agent=agent1").json["count"], 2)
        one.ok("POST", f"{V}/sandboxes/{boxes[3]}/pause")
        equal("paused", [b["id"] for b in one.ok("GET", f"{V}/sandboxes?status=paused").json["sandboxes"]], [boxes[3]])
        seen, cursor = [], ""
        for _ in range(10):
            page = one.ok("GET", f"{V}/sandboxes?limit=2{cursor}").json
            check(page["count"] <= 2, "a page is no larger than asked for")
            seen += [box["id"] for box in page["sandboxes"]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        equal("page by page", seen, boxes)
        for query in ("limit=0", "limit=1001", "limit=x", "cursor=-1", "unknown=1", "limit=1e3"):
            answer = one.call("GET", f"{V}/sandboxes?{query}")
            equal(query, (answer.status, answer.code), (400, "invalid_request"))
            contains(query, answer.message, query.split("=")[0])


@case
def too_many() -> None:
    """More sandboxes or commands than allowed are 429, and room is made by an end."""
    with service("api", HUTCH_SANDBOX_MAX_CONCURRENT="2", HUTCH_SANDBOX_MAX_EXECS="1") as one:
        box = one.create()
        other = one.create()
        answer = one.call("POST", f"{V}/sandboxes", {})
        equal("a third", (answer.status, answer.code), (429, "too_many"))
        check(int(answer.headers["Retry-After"]) >= 1, "it says when to try again")
        one.destroy(other)
        eventually("room for another", lambda: one.call("POST", f"{V}/sandboxes", {}).status == 201)
        one.start_exec(box, command="sleep 30")
        equal("a second command", one.tool(box, "shell_exec", command="true").code, "too_many")


@case
def bad_creations() -> None:
    """Creations that are refused, with the field and without a sandbox."""
    rows = [
        ({"profil": "x"}, 400, "profil: there is no such field; did you mean profile?"),
        ({"resource_limits": {"cpu": 0}}, 400, "resource_limits.cpu"),
        ({"resource_limits": {"cpu": "1"}}, 400, "resource_limits.cpu: must be a number"),
        ({"resource_limits": {"memory_mb": 1.5}}, 400, "resource_limits.memory_mb: must be a whole number"),
        ({"resource_limits": {"memory_mb": 1 << 60}}, 400, "resource_limits.memory_mb"),
        ({"resource_limits": {"disk_mb": 65537}}, 400, "resource_limits.disk_mb: must be at most 65536 here"),
        ({"resource_limits": []}, 400, "resource_limits: must be an object"),
        ({"resource_limits": {"swap": 1}}, 400, "resource_limits.swap"),
        ({"tools": ["shell_exec", "rocket"]}, 400, "tools[1]"),
        ({"tools": [1]}, 400, "tools[0]: must be a string"),
        ({"env": {"A B": "x"}}, 400, "env.A B"),
        ({"env": {"A": 1}}, 400, "env.A: must be a string"),
        ({"env": {"A": "a" * 70000}}, 413, "the environment may be 64 KiB"),
        ({"files": {"x": 1}}, 400, "files.x"),
        ({"files": {"x": {"base64": "!"}}}, 400, "files.x"),
        ({"files": {"x": {"base64": "AA==", "y": 1}}}, 400, "files.x.y"),
        ({"user": "admin"}, 400, "user: must be one of"),
        ({"root": "rx"}, 400, "root: must be one of"),
        ({"labels": {"x": None}}, 400, "labels.x"),
        ({"command_blocklist": ["("]}, 400, "command_blocklist[0]"),
        ({"template": "a", "base_image": "b"}, 400, "base_image"),
        ({"idle_timeout_seconds": -1}, 400, "idle_timeout_seconds"),
        ({"profile": "nobody-made-it"}, 422, "profile"),
        ({"base_image": "ubuntu"}, 422, "base_image: there is no template ubuntu"),
        ({"template": "../x"}, 422, "template"),
        ({"root": "rw"}, 422, "root: rw needs a template"),
        ({"network": {"mode": "full"}}, 422, "this build grants no network"),
        ({"network": {"mode": "allowlist", "domain_allowlist": ["x.org"]}}, 422, "this build grants no network"),
        ({"network": {"mode": "some"}}, 400, "network.mode"),
        ({"files": {"/usr/x": "no"}}, 403, "files./usr/x"),
    ]
    with service("api") as one:
        for body, status, part in rows:
            answer = one.call("POST", f"{V}/sandboxes", body)
            equal(f"{body}: {answer.body[:200]!r}", answer.status, status)
            contains(str(body), answer.message, part)
        equal("none was left", one.ok("GET", f"{V}/sandboxes").json["count"], 0)


@case
def bad_json() -> None:
    """Bodies that are no JSON, or too much of it."""
    rows = [
        (b"{", 400),
        (b"[]", 400),
        (b"3", 400),
        (b'{"env":{"A":"1","A":"2"}}', 400),
        (b'{"profile":"\xff\xfe"}', 400),
        (b'{"profile":"\\ud800"}', 400),
        (b'{"profile":"\\u0000"}', 400),
        (b'{"resource_limits":{"cpu":1e999}}', 400),
        (b'{"resource_limits":{"cpu":NaN}}', 400),
        (b'{"files":' + b"[" * 10000, 400),
        (b'{"tools":[' + b'"",' * 70000 + b'""]}', 400),
        (b"{} {}", 400),
        (b'{"profile":null}', 400),
        (b" " * (33 << 20), 413),
    ]
    with service("api") as one:
        for data, status in rows:
            answer = one.call("POST", f"{V}/sandboxes", data=data, headers={"Content-Type": "application/json"})
            equal(f"{data[:40]!r}", answer.status, status)
            equal("the daemon is well", one.call("GET", "/healthz", key=None).status, 200)
        answer = one.call("POST", f"{V}/sandboxes", data=b"{}", headers={"Content-Type": "text/plain"})
        equal("not JSON", answer.status, 415)


@case
def tools() -> None:
    """Every tool: its schema, what it does, and what it answers."""
    with service("api") as one:
        listed = one.ok("GET", f"{V}/tools").json
        names = [tool["name"] for tool in listed["tools"]]
        equal("tools", names, ["shell_exec", "file_read", "file_write", "file_list", "http_request"])
        check(all(tool["parameters"]["type"] == "object" for tool in listed["tools"]), "each has a schema")
        with sandbox(one) as box:
            answer = one.tool(box, "shell_exec", command="cat; echo err >&2; exit 7", stdin="in").json
            equal("success", (answer["success"], answer["tool"]), (False, "shell_exec"))
            check(answer["exec_id"].startswith("ex_"), "an exec has an id")
            result = answer["result"]
            equal("result", (result["stdout"], result["stderr"], result["exit_code"]), ("in", "err\n", 7))
            equal("flags", (result["timed_out"], result["truncated"]), (False, False))
            equal("workdir", one.shell(box, "pwd", workdir="/tmp")["stdout"], "/tmp\n")
            equal("env", one.shell(box, "echo $X", env={"X": "a b"})["stdout"], "a b\n")
            equal("a signal", one.shell(box, "kill -9 $$")["exit_code"], 137)
            equal("text", one.shell(box, "printf 'a\\377b'")["stdout"], "a\ufffdb")
            equal("base64", one.shell(box, "printf 'a\\377b'", encoding="base64")["stdout"], "Yf9i")
            timed = one.shell(box, "echo before; sleep 60", timeout_seconds=1)
            equal("timeout", (timed["timed_out"], timed["exit_code"], timed["stdout"]), (True, -1, "before\n"))
            flood = one.shell(box, "head -c 3000000 /dev/zero | tr '\\0' x")
            equal("truncated", (flood["truncated"], flood["stdout_bytes"]), (True, 3000000))
            equal("kept", len(flood["stdout"]), 1 << 20)
            wrote = one.tool(box, "file_write", path="d/x.txt", content="hello").json["result"]
            equal("written", wrote, {"path": "d/x.txt", "bytes_written": 5})
            one.tool(box, "file_write", path="d/x.txt", content=" more", mode="a")
            one.tool(box, "file_write", path="run.sh", content="echo ran", mode="0755")
            read = one.tool(box, "file_read", path="/workspace/d/x.txt").json["result"]
            equal("read", read, {"content": "hello more", "size": 10})
            one.tool(box, "file_write", path="b", content="AP8=", encoding="base64")
            equal("bytes", one.tool(box, "file_read", path="b", encoding="base64").json["result"]["content"], "AP8=")
            equal("mode", one.shell(box, "./run.sh")["stdout"], "ran\n")
            entries = one.tool(box, "file_list", recursive=True).json["result"]["entries"]
            large = "x" * (31 << 20)
            wrote = one.tool(box, "file_write", path="/tmp/large", content=large).json["result"]
            equal("a body of nearly 32 MiB", wrote["bytes_written"], len(large))
            found = {entry["path"]: (entry["type"], entry["size"], entry["mode"]) for entry in entries}
            equal("listed", found["d/x.txt"], ("file", 10, "0644"))
            equal("folder", found["d"][0], "directory")


@case
def refused_tools() -> None:
    """Tools that are not allowed, commands that are blocked, arguments that are wrong."""
    with service("api") as one, sandbox(one, tools=["shell_exec", "http_request", "file_read"]) as box:
        rows = [
            ("file_write", {"path": "x", "content": ""}, 403, "tool_not_allowed", "file_write"),
            ("http_request", {"method": "GET", "url": "http://example.org/"}, 403, "domain_not_allowed", "no network"),
            ("http_request", {"method": "BREW", "url": "x"}, 400, "invalid_request", "arguments.method"),
            ("shell_exec", {"command": "rm -rf /"}, 403, "command_blocked", "rm"),
            ("shell_exec", {"command": ":(){ :|:& };:"}, 403, "command_blocked", ""),
            ("shell_exec", {"command": "mkfs.ext4 /dev/sda"}, 403, "command_blocked", "mkfs"),
            ("shell_exec", {}, 400, "invalid_request", "arguments.command: is missing"),
            ("shell_exec", {"command": ""}, 400, "invalid_request", "arguments.command"),
            ("shell_exec", {"command": "true", "cwd": "/"}, 400, "invalid_request", "arguments.cwd"),
            ("shell_exec", {"command": "true", "timeout_seconds": 0}, 400, "invalid_request", "timeout_seconds"),
            ("shell_exec", {"command": "true", "workdir": "/nowhere"}, 400, "invalid_request", "workdir"),
            ("shell_exec", {"command": "true", "env": {"1": "x"}}, 400, "invalid_request", "env.1"),
            ("file_read", {"path": "missing"}, 404, "not_found", ""),
            ("file_read", {"path": "mine"}, 403, "path_not_allowed", ""),
            ("file_read", {"path": "/proc/1/mem"}, 404, "not_found", ""),
            ("file_read", {"path": "."}, 400, "invalid_request", ""),
            ("file_read", {"path": "x", "encoding": "utf-16"}, 400, "invalid_request", "arguments.encoding"),
            ("rocket", {}, 400, "invalid_request", "rocket"),
        ]
        one.shell(box, "touch mine; chmod 0 mine")
        for tool, arguments, status, code, part in rows:
            answer = one.tool(box, tool, **arguments)
            equal(f"{tool} {arguments}: {answer.body[:200]!r}", (answer.status, answer.code), (status, code))
            contains(f"{tool} {arguments}", answer.message, part)
        path = f"{V}/sandboxes/{box}/tools/execute"
        equal("no tool", one.call("POST", path, {}).status, 400)
        equal("arguments", one.call("POST", path, {"tool": "shell_exec", "arguments": []}).status, 400)
        for size, status in (((128 << 10) - 1, 200), (128 << 10, 413), (2 << 20, 413)):
            answer = one.tool(box, "shell_exec", command="#" * size)
            equal(f"a command of {size} bytes", answer.status, status)
            words = ["true", "x" * (size - 5)]
            answer = one.call("POST", f"{V}/sandboxes/{box}/execs", {"argv": words, "wait": True})
            equal(f"words of {size} bytes", answer.status, status)
            check(status == 200 or answer.code == "too_large", f"{answer.body!r}")
        log = json.dumps(one.ok("GET", f"{V}/sandboxes/{box}/logs?limit=1000").json)
        contains("what was denied is in the log", log, "command_blocked", "tool_not_allowed", "rm -rf /")


@case
def files() -> None:
    """Files up, down and away, whatever they are called."""
    with service("api") as one, sandbox(one) as box:
        base = f"{V}/sandboxes/{box}/files"
        for name in ("x.bin", "deep/er/x", "with blank", "ümläut", "quote\"s", "%41", "a+b", "line\nbreak"):
            data = os.urandom(5000)
            wrote = one.ok("PUT", f"{base}/{quote(name)}", data=data, headers={"Content-Type": "text/x-odd"})
            equal(name, wrote.json["bytes_written"], 5000)
            got = one.ok("GET", f"{base}/{quote(name)}")
            equal(f"{name!r} is the same", hashlib.sha256(got.body).digest(), hashlib.sha256(data).digest())
            equal("type", got.headers["Content-Type"], "application/octet-stream")
            contains("disposition", got.headers["Content-Disposition"], "attachment")
            one.ok("DELETE", f"{base}/{quote(name)}", status=204)
            equal(f"{name!r} is gone", one.call("GET", f"{base}/{quote(name)}").status, 404)
        one.ok("PUT", f"{base}/empty", data=b"")
        equal("empty", one.ok("GET", f"{base}/empty").body, b"")
        one.ok("PUT", f"{base}//tmp/abs", data=b"absolute")
        equal("absolute", one.shell(box, "cat /tmp/abs")["stdout"], "absolute")
        check(one.ok("GET", f"{base}//proc/version").body.startswith(b"Linux"), "a file without a size")
        head = one.ok("HEAD", f"{base}/empty")
        equal("HEAD", head.body, b"")
        one.shell(box, "mkdir full; touch full/x; mkfifo pipe; ln -s /etc/shadow link")
        for method, path, status, code in (
            ("GET", "full", 400, "invalid_request"),
            ("GET", "pipe", 400, "invalid_request"),
            ("GET", "missing/x", 404, "not_found"),
            ("DELETE", "full", 409, "not_empty"),
            ("DELETE", "missing", 404, "not_found"),
            ("DELETE", "full?recursive=maybe", 400, "invalid_request"),
            ("DELETE", "/usr/bin/env", 403, "path_not_allowed"),
        ):
            answer = one.call(method, f"{base}/{path}")
            equal(f"{method} {path}: {answer.body[:200]!r}", (answer.status, answer.code), (status, code))
        equal("read-only", one.call("PUT", f"{base}//usr/x", data=b"x").code, "path_not_allowed")
        check(one.call("GET", f"{base}/link").status in (403, 404), "no shadow")
        one.ok("DELETE", f"{base}/full?recursive=true", status=204)
        for path in ("../x", "a/../../x", "%2e%2e/x", "a%2fb", "a%00b"):
            equal(path, one.call("GET", f"{base}/{path}").status, 400)


@case
def full_disk() -> None:
    """An upload that does not fit is 507, leaves nothing, and harms nobody."""
    with service("api") as one, sandbox(one, resource_limits={"disk_mb": 8, "memory_mb": 64}) as box:
        base = f"{V}/sandboxes/{box}/files"
        answer = one.call("PUT", f"{base}/big", data=os.urandom(20 << 20))
        equal(f"too big: {answer.body[:200]!r}", (answer.status, answer.code), (507, "disk_full"))
        equal("nothing is left", one.call("GET", f"{base}/big").status, 404)
        one.ok("PUT", f"{base}/small", data=b"x")


@case
def states() -> None:
    """Pause, resume, usage, and what a paused sandbox refuses."""
    with service("api") as one, sandbox(one) as box:
        path = f"{V}/sandboxes/{box}"
        one.shell(box, "head -c 1000000 /dev/zero > x")
        usage = one.ok("GET", f"{path}/usage").json
        check(usage["memory_bytes"] > 100000 and usage["processes"] >= 1, f"usage {usage}")
        equal("paused", one.ok("POST", f"{path}/pause").json["status"], "paused")
        answer = one.tool(box, "shell_exec", command="true")
        equal("not while paused", (answer.status, answer.code), (409, "not_running"))
        equal("twice", one.call("POST", f"{path}/pause").status, 409)
        equal("resumed", one.ok("POST", f"{path}/resume", {}).json["status"], "running")
        equal("again", one.call("POST", f"{path}/resume").status, 409)
        equal("a body with fields", one.call("POST", f"{path}/pause", {"x": 1}).status, 400)
        equal("it runs", one.shell(box, "echo on")["stdout"], "on\n")


@case
def expiry() -> None:
    """A sandbox ends with its time, and the log says why."""
    with service("api") as one:
        box = one.create(resource_limits={"timeout_seconds": 1})
        eventually("it has expired", lambda: one.call("GET", f"{V}/sandboxes/{box}").status == 404, 15)
        entries = one.ok("GET", f"{V}/sandboxes/{box}/logs").json["entries"]
        reasons = [entry["detail"]["reason"] for entry in entries if entry["action"] == "sandbox.end"]
        equal("reason", reasons, ["expired"])


@case
def audit() -> None:
    """The log: newest first, page by page, a hash for each record, nothing of a secret."""
    with service("api") as one, sandbox(one) as box:
        for i in range(5):
            one.shell(box, f"echo {i} {'long ' * 1000}")
        path = f"{V}/sandboxes/{box}/logs"
        everything = one.ok("GET", f"{path}?limit=1000").json["entries"]
        numbers = [entry["number"] for entry in everything]
        equal("newest first", numbers, sorted(numbers, reverse=True))
        seen, cursor = [], ""
        while True:
            page = one.ok("GET", f"{path}?limit=3{cursor}").json
            seen += [entry["number"] for entry in page["entries"] if entry["number"] <= numbers[0]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        equal("page by page", seen, numbers)
        ends = [entry for entry in everything if entry["action"] == "exec.end"]
        equal("each command's end", len(ends), 5)
        check(all(re.fullmatch("[0-9a-f]{64}", entry["hash"]) for entry in everything), "hashes")
        check(all("output_hash" in entry for entry in ends), "hashes of output")
        check(KEY not in json.dumps(everything), "no key in the log")


@case
def methods() -> None:
    """Paths and methods that there are not."""
    with service("api") as one:
        answer = one.call("PUT", f"{V}/sandboxes", {})
        equal("405", answer.status, 405)
        equal("Allow", set(answer.headers["Allow"].split(", ")), {"GET", "HEAD", "POST", "OPTIONS"})
        boxes = f"{V}/sandboxes"
        for path in (f"{boxes}/", f"{boxes}/x", f"{boxes}/sb_{NOBODY_HAS}", "/api", "/", f"{V}//tools"):
            equal(path, one.call("GET", path).status, 404)
        equal("an id of another kind", one.call("GET", f"{V}/sandboxes/ex_{NOBODY_HAS}").status, 404)
        equal("an exec", one.call("GET", f"{V}/execs/ex_{NOBODY_HAS}").status, 404)
        equal("OPTIONS", one.call("OPTIONS", f"{V}/sandboxes").status, 204)


def _use(one: Service) -> None:
    with sandbox(one) as box:
        equal("it works", one.shell(box, "echo yes")["stdout"], "yes\n")


@case
def again() -> None:
    """A daemon that was ended starts again on the same state, with the same key and the log before it."""
    with service("api") as one:
        box = one.create()
        one.shell(box, "echo before")
        equal("ended", one.end(), 0)
        one.start()
        _use(one)
        equal("it was drained", one.call("GET", f"{V}/sandboxes/{box}").status, 404)
        entries = one.ok("GET", f"{V}/sandboxes/{box}/logs").json["entries"]
        check(any(entry["action"] == "tool.execute" for entry in entries), "the log before it")


@case
def database_path() -> None:
    """audit.database_path says where the database is, below the gateway's own folder."""
    with service("api", "audit:\n  database_path: records/of/calls.db\n") as one:
        _use(one)
        check((one.state / "gateway/records/of/calls.db").is_file(), "it is there")
        check(not (one.state / "gateway/hutch.db").exists(), "and nowhere else")


def _certificate(name: str) -> tuple[str, str]:
    paths = [str(place() / f"{name}.{kind}") for kind in ("crt", "key")]
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split()
    words += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*words, "-subj", f"/CN={name}", "-out", paths[0], "-keyout", paths[1]],
        check=True,
        capture_output=True,
    )
    return paths[0], paths[1]


@case
def tls() -> None:
    """HTTPS with a certificate, which a reload replaces without a connection being lost."""
    certificate, key = _certificate("first")
    with service("api", f"server:\n  tls_certificate: {certificate}\n  tls_key: {key}\n") as one:
        first = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", one.port, context=first, timeout=30)

        def ask(over: http.client.HTTPSConnection) -> int:
            over.request("GET", f"{V}/tools", headers={"Authorization": f"Bearer {KEY}"})
            response = over.getresponse()
            response.read()
            return response.status

        equal("over TLS", ask(connection), 200)
        check(b"HTTP/1.1 200" not in one.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), "not without it")
        other, other_key = _certificate("second")
        one.config.write_text(f"server:\n  tls_certificate: {other}\n  tls_key: {other_key}\n")
        one.process.send_signal(signal.SIGHUP)
        second = ssl.create_default_context(cafile=other)

        def has_changed() -> bool:
            try:
                return ask(http.client.HTTPSConnection("127.0.0.1", one.port, context=second, timeout=30)) == 200
            except ssl.SSLError:
                return False

        eventually("the new certificate", has_changed)
        equal("the old connection goes on", ask(connection), 200)


@case
def reload() -> None:
    """SIGHUP: profiles, blocklists and limits are new at once; a file that is wrong changes nothing."""
    with service("api", HUTCH_SANDBOX_MAX_CONCURRENT="", HUTCH_SANDBOX_MAX_EXECS="") as one, sandbox(one) as box:
        one.config.write_text(
            "sandbox:\n  max_concurrent: 2\n  command_blocklist: ['only-this']\n"
            "profiles:\n  tiny:\n    tools: [file_read]\n"
        )
        one.process.send_signal(signal.SIGHUP)
        eventually("the new profile", lambda: one.call("POST", f"{V}/sandboxes", {"profile": "tiny"}).status == 201)
        equal("a limit that is new", one.call("POST", f"{V}/sandboxes", {}).code, "too_many")
        equal("a rule that is new", one.tool(box, "shell_exec", command="echo only-this").code, "command_blocked")
        equal("one that is gone", one.tool(box, "shell_exec", command="echo mkfs.ext4").status, 200)
        one.config.write_text("sandbox:\n  command_blocklist: ['(']\n")
        one.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        equal("still", one.tool(box, "shell_exec", command="echo only-this").code, "command_blocked")


@case
def templates() -> None:
    """A template that is a folder of the machine: its programs, and a root that can be written."""
    root = make_root("template")
    with service("api", f"templates:\n  own: {root}\n") as one, sandbox(one, template="own", root="rw") as box:
        equal("template", one.ok("GET", f"{V}/sandboxes/{box}").json["template"], "own")
        answer = one.ok("POST", f"{V}/sandboxes/{box}/execs", {"argv": ["/payload", "pid"], "wait": True}).json
        check(answer["exit_code"] != 127, f"its own program runs: {answer}")
        one.ok("PUT", f"{V}/sandboxes/{box}/files//tmp/x", data=b"x")


@case
def demo() -> None:
    """What `make run` shows: the service starts, the lines to paste work, and without a terminal it ends well."""
    for need in (REPOSITORY / "tools/demo", "curl"):
        if shutil.which(need) is None:
            raise Skipped(f"{need} is not on this machine")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    shutil.rmtree(place() / "demo", ignore_errors=True)
    words = [REPOSITORY / "tools/demo", BUILD]
    env = {"PATH": os.environ["PATH"], "HUTCH_LISTEN": listen, "HUTCH_STATE": str(place() / "demo")}
    for turn in ("first", "second"):
        shown = subprocess.run(
            words, cwd=REPOSITORY, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
        )
        equal(f"{turn}: {shown.stderr[-500:]}", shown.returncode, 0)
        contains(turn, shown.stdout, "hello from the sandbox\\n", "# Hutch", '"bytes_written"')
        contains(turn, shown.stdout, "destroyed: 204", "yes:")
        equal(f"{turn}: credentials are shown once", "admin password" in shown.stdout, turn == "first")


if __name__ == "__main__":
    main()
