#!/usr/bin/env python3
"""Who may call what: credentials on every route, scopes, owners, hosts, origins and rates."""

import base64
import contextlib
import hashlib
import http.client
import json
import pathlib
import re
import socket
import sqlite3

from harness import REPOSITORY, case, check, contains, equal, eventually, main
from service import KEY, PASSWORD, Answer, Events, Service, sandbox, service

V = "/api/v1"


def routes() -> list[tuple[str, str, str]]:
    """Method, pattern and access of every row of the router's table."""
    text = (REPOSITORY / "src/gateway/surface/routes.c").read_text()
    text = text.replace('SANDBOX "', '"/api/v1/sandboxes/{id:sb}').replace('EXEC "', '"/api/v1/execs/{eid:ex}')
    text = re.sub(r"\bSANDBOX,", '"/api/v1/sandboxes/{id:sb}",', text)
    text = re.sub(r"\bEXEC,", '"/api/v1/execs/{eid:ex}",', text)
    rows = re.findall(r'\{METHOD_(\w+), "([^"]+)", \w+,\s*\w+,\s*\w+,\s*CALL_(\w+)', text)
    check(len(rows) > 25, f"{len(rows)} routes were found")
    return rows


def filled(pattern: str, box: str, run: str) -> str:
    path = pattern.replace("{id:sb}", box).replace("{eid:ex}", run)
    return path.replace("{path}", "x").replace("{kid:name}", "key_none")


def body_for(method: str) -> dict:
    return {"body": {}} if method == "POST" else {}


@case
def matrix() -> None:
    """No, wrong, expired and revoked credentials on every route; every scope on every route."""
    with service("auth") as one:
        expired = one.new_key("admin", expires_in_seconds=1)
        box = one.create()
        run = one.start_exec(box, command="sleep 100")
        made = one.ok("POST", f"{V}/keys", {"name": "gone", "scope": "admin"}, 201).json
        one.ok("DELETE", f"{V}/keys/{made['id']}", status=204)
        keys = {scope: one.new_key(scope) for scope in ("run", "read")}
        eventually("it has expired", lambda: one.call("GET", f"{V}/tools", key=expired).status == 401)
        for method, pattern, access in routes():
            path = filled(pattern, box, run)
            for what, headers in {
                "none": {},
                "wrong": {"Authorization": "Bearer " + "x" * 40},
                "empty": {"Authorization": "Bearer "},
                "wrong key header": {"X-API-Key": "wrong-" * 5},
                "revoked": {"Authorization": f"Bearer {made['secret']}"},
                "expired": {"Authorization": f"Bearer {expired}"},
                "another scheme": {"Authorization": f"Digest {KEY}"},
                "another user": {"Authorization": "Basic " + base64.b64encode(b"root:x").decode()},
            }.items():
                answer = one.call(method, path, key=None, headers=headers, **body_for(method))
                if access == "OPEN":
                    equal(f"{what} {method} {path}", answer.status, 200)
                    continue
                equal(f"{what} {method} {path}", (answer.status, answer.code), (401, "unauthenticated"))
                contains("challenge", answer.headers["WWW-Authenticate"], "Bearer", "Basic")
            for scope, key in keys.items():
                if method == "GET" and ("events" in path or "output" in path):
                    continue
                answer = one.call(method, path, key=key, **body_for(method))
                may = access in ("OPEN", "SEE") or (access, scope) in (("TOUCH", "run"), ("READ", "read"))
                if not may:
                    equal(f"{scope} {method} {path}", (answer.status, answer.code), (403, "forbidden"))
                elif scope == "run" and re.search("sb_|ex_", path):
                    equal(f"another's: {method} {path}", (answer.status, answer.code), (404, "not_found"))
                else:
                    check(answer.status not in (401, 403), f"{scope} {method} {path}: {answer.status}")
        equal("nothing was touched", one.ok("GET", f"{V}/execs/{run}").json["status"], "running")


@case
def ways() -> None:
    """Every way to give a credential, and the unix socket."""
    with service("auth") as one:
        basic = "Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        wrong = "Basic " + base64.b64encode(b"admin:wrong password").decode()
        for what, headers, status in (
            ("bearer", {"Authorization": f"Bearer {KEY}"}, 200),
            ("lower case", {"authorization": f"bearer {KEY}"}, 200),
            ("key header", {"X-API-Key": KEY}, 200),
            ("password", {"Authorization": basic}, 200),
            ("again", {"Authorization": basic}, 200),
            ("wrong password", {"Authorization": wrong}, 401),
            ("right key, wrong password", {"Authorization": wrong, "X-API-Key": KEY}, 401),
        ):
            equal(what, one.call("GET", f"{V}/tools", key=None, headers=headers).status, status)
        twice = one.raw(
            f"GET {V}/tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Authorization: Bearer {KEY}\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
        )
        contains("twice", twice.decode(), "401")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(one.state / "api.sock"))
            connection.sendall(f"GET {V}/keys HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while part := connection.recv(65536):
                answer += part
        contains("root over the unix socket is admin", answer.decode(), "200 OK", '"keys"')


@case
def owners() -> None:
    """A run key sees and touches what it made, and nothing else; read sees all and touches nothing."""
    with service("auth") as one:
        first, second, reader = one.new_key("run"), one.new_key("run"), one.new_key("read")
        box = one.create(key=first)
        equal("its own", one.call("GET", f"{V}/sandboxes/{box}", key=first).status, 200)
        equal("another's", one.call("GET", f"{V}/sandboxes/{box}", key=second).status, 404)
        equal("another's list", one.ok("GET", f"{V}/sandboxes", key=second).json["count"], 0)
        equal("another's log", one.call("GET", f"{V}/sandboxes/{box}/logs", key=second).status, 404)
        equal("another's end", one.call("DELETE", f"{V}/sandboxes/{box}", key=second).status, 404)
        equal("reader's list", one.ok("GET", f"{V}/sandboxes", key=reader).json["count"], 1)
        equal("reader's log", one.call("GET", f"{V}/sandboxes/{box}/logs", key=reader).status, 200)
        equal("reader's end", one.call("DELETE", f"{V}/sandboxes/{box}", key=reader).status, 403)
        seen = Events(one, f"{V}/events?after=0", key=second)
        other = one.create(key=second)
        for event, _, data in seen:
            equal("events of its own only", data["sandbox_id"], other)
            if event == "sandbox.ready":
                break
        seen.close()
        equal("admin", one.call("DELETE", f"{V}/sandboxes/{box}").status, 204)
        eventually("gone", lambda: one.call("GET", f"{V}/sandboxes/{box}/logs", key=first).status == 200)
        equal("another's log after the end", one.call("GET", f"{V}/sandboxes/{box}/logs", key=second).status, 404)


def shape(answer: Answer, identity: str) -> tuple:
    """All that could tell two refusals apart, but for what they name and when."""
    body = answer.body.decode().replace(identity, "ID").replace(answer.headers["X-Request-ID"], "REQUEST")
    headers = [(name, value) for name, value in answer.headers.items() if name not in ("Date", "X-Request-ID")]
    return answer.status, headers, body


@case
def strangers_ids() -> None:
    """Another's id and one that nobody has are refused alike on every route, and leave nothing in the other's log."""
    with service("auth") as one:
        owner, other = one.new_key("run"), one.new_key("run")
        box = one.create(key=owner)
        path = f"{V}/sandboxes/{box}/execs"
        runs = [one.ok("POST", path, {"command": command}, 201, key=owner).json["id"] for command in ("sleep 99", ":")]
        path = f"{V}/execs/{runs[1]}"
        eventually("one has ended", lambda: one.ok("GET", path, key=owner).json["status"] == "exited")
        tried = 0
        for method, pattern, _ in routes():
            if "{id:sb}" not in pattern and "{eid:ex}" not in pattern:
                continue
            nobodys = filled(pattern, "sb_" + "a" * 26, "ex_" + "a" * 26)
            expected = shape(one.call(method, nobodys, key=other, **body_for(method)), "a" * 26)
            equal(f"{method} {nobodys}", expected[0], 404)
            for run in runs:
                path = filled(pattern, box, run)
                answer = one.call(method, path, key=other, **body_for(method))
                equal(f"{method} {path}", shape(answer, (run if run in path else box)[3:]), expected)
                tried += 1
        check(tried > 30, f"{tried} were tried")
        entries = one.ok("GET", f"{V}/sandboxes/{box}/logs?limit=1000", key=owner).json["entries"]
        owners = {entry["principal"] for entry in entries}
        equal("who is in the log", len(owners), 1)


@case
def keys() -> None:
    """Keys: told once, bound to agents, expiring, revoked at once; bad requests for one."""
    with service("auth") as one:
        made = one.ok("POST", f"{V}/keys", {"name": "builder", "scope": "run", "agent": "bob"}, 201).json
        secret = made.pop("secret")
        listed = one.ok("GET", f"{V}/keys").json
        check(secret not in json.dumps(listed), "the secret is told once")
        check(any(key["id"] == made["id"] and key["name"] == "builder" for key in listed["keys"]), "it is listed")
        equal("bound", one.ok("POST", f"{V}/sandboxes", {}, 201, key=secret).json["agent"], "bob")
        answer = one.call("GET", f"{V}/tools", key=secret, headers={"X-Agent": "eve"})
        equal("another agent's name", (answer.status, answer.code), (403, "forbidden"))
        short = one.new_key("read", expires_in_seconds=1)
        eventually("expired", lambda: one.call("GET", f"{V}/tools", key=short).status == 401, 10)
        one.ok("DELETE", f"{V}/keys/{made['id']}", status=204)
        equal("revoked", one.call("GET", f"{V}/tools", key=secret).status, 401)
        equal("none", one.call("DELETE", f"{V}/keys/key_{'a' * 26}").status, 404)
        for body in (
            {},
            {"name": "x"},
            {"name": "x", "scope": "root"},
            {"name": "", "scope": "run"},
            {"name": "x" * 65, "scope": "run"},
        ):
            equal(str(body), one.call("POST", f"{V}/keys", body).status, 400)
        database = b"".join(path.read_bytes() for path in (one.state / "gateway").iterdir() if path.is_file())
        check(secret.encode() not in database, "the secret is not on disk")
        check(KEY.encode() not in database and PASSWORD.encode() not in database, "nor are the presets")
        check(secret not in one.log and KEY not in one.log and PASSWORD not in one.log, "nor in the log")


@case
def first_start() -> None:
    """Without presets a key and a password are made, told once, and work."""
    with service("auth", HUTCH_API_KEY="", HUTCH_ADMIN_PASSWORD="") as one:
        key = re.search(r"API key\s+(\S+)", one.log)
        password = re.search(r"admin password\s+(\S+)", one.log)
        check(key and password, f"both are told: {one.log}")
        equal("key", one.call("GET", f"{V}/keys", key=key[1]).status, 200)
        basic = "Basic " + base64.b64encode(f"admin:{password[1]}".encode()).decode()
        equal("password", one.call("GET", f"{V}/keys", key=None, headers={"Authorization": basic}).status, 200)
        equal("ended", one.end(), 0)
        one.start()
        check("API key" not in one.log, "not again")
        equal("still", one.call("GET", f"{V}/keys", key=key[1]).status, 200)


@case
def pages() -> None:
    """A web page can't reach a local Hutch: hosts and origins."""
    with service("auth", "server:\n  cors_origins: [https://page.example]\n  hosts: [hutch.example]\n") as one:
        for host, status in (
            (f"127.0.0.1:{one.port}", 200),
            ("localhost", 200),
            ("hutch.example:99", 200),
            ("evil.example", 421),
            (f"rebound.example:{one.port}", 421),
            ("127.0.0.2", 421),
        ):
            equal(host, one.call("GET", "/healthz", key=None, headers={"Host": host}).status, status)
        for headers, status in (
            ({"Origin": "https://page.example"}, 200),
            ({"Origin": f"http://127.0.0.1:{one.port}"}, 200),
            ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-origin"}, 200),
        ):
            answer = one.call("GET", f"{V}/tools", headers=headers)
            equal(str(headers), answer.status, status)
            allowed = answer.headers["Access-Control-Allow-Origin"]
            equal("who may read it", allowed, "https://page.example" if "page" in str(headers) else None)
        asked = one.call(
            "OPTIONS",
            f"{V}/sandboxes",
            key=None,
            headers={"Origin": "https://page.example", "Access-Control-Request-Headers": "authorization"},
        )
        equal("a browser that asks first", asked.headers["Access-Control-Allow-Headers"], "authorization")
        text = one.ok("GET", "/metrics").body.decode()
        contains("refusals are counted", text, 'hutch_refused_total{reason="foreign"} 6')


def chained(*parts: object) -> bytes:
    """The hash of a record, as src/gateway/store/chain.c makes it."""
    state = hashlib.blake2b(digest_size=32)
    for part in parts:
        if isinstance(part, int):
            state.update(part.to_bytes(8, "little"))
            continue
        data = part.encode() if isinstance(part, str) else part
        state.update((2**64 - 1 if data is None else len(data)).to_bytes(8, "little"))
        state.update(data or b"")
    return state.digest()


def audit(one: Service) -> list[dict]:
    """Every record of a daemon that has ended, once the chain was found to hold."""
    records, previous = [], None
    with contextlib.closing(sqlite3.connect(one.state / "gateway/hutch.db")) as database:
        database.row_factory = sqlite3.Row
        for row in map(dict, database.execute("SELECT * FROM audit ORDER BY number")):
            check(previous is None or row["previous"] == previous, f"record {row['number']} follows the one before")
            fields = [row[name] for name in ("number", "time_ms", "principal", "agent", "sandbox", "exec", "action")]
            rest = (row["verdict"], row["detail"], row["output_hash"])
            equal(f"{row['number']}", row["hash"], chained("hutch audit 1", row["previous"], *fields, *rest))
            previous = row["hash"]
            records.append({**row, "detail": json.loads(row["detail"])})
    return records


def ask_from(one: Service, source: str, method: str, path: str, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=30, source_address=(source, 0))
    try:
        connection.request(method, path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@case
def refusals() -> None:
    """Every refusal is in the audit log, those of a flood in one record, and the chain holds."""
    each, flood = 8, 300
    kinds = [
        ("GET", "/nowhere", {}, 404, "not_found"),
        ("PATCH", f"{V}/sandboxes", {}, 405, "method_not_allowed"),
        ("GET", "/healthz", {"Host": "evil.example"}, 421, "host_not_allowed"),
        ("GET", "/healthz", {"Origin": "https://evil.example"}, 403, "origin_not_allowed"),
        ("GET", f"{V}/tools", {}, 401, "unauthenticated"),
        ("GET", "/healthz", {"X": "x" * 40000}, 431, "too_large"),
    ]
    with service("auth") as one:
        key = one.ok("POST", f"{V}/keys", {"name": "known", "scope": "run"}, 201).json
        for method, path, headers, status, code in kinds:
            equal(code, ask_from(one, "127.0.0.2", method, path, headers), status)
        contains("malformed", one.raw(b"GET / HTTP/1.1\r\nHost : x\r\n\r\n").decode(), "400 Bad Request")
        contains("no such target", one.raw(b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n").decode(), "400")
        equal("a key that is known", one.call("GET", "/nowhere", key=key["secret"]).status, 404)
        for number in range(flood):
            method, path, headers, status, code = kinds[number % 5]
            equal(code, ask_from(one, "127.0.0.3", method, path, headers), status)
        contains("counted", one.ok("GET", "/metrics").body.decode(), f"hutch_refusals_counted_total {flood - each}")
        equal("it ends well", one.end(), 0)
        records = audit(one)
    alone = [record for record in records if record["detail"].get("peer") == "127.0.0.2"]
    equal("each by itself", [record["detail"]["error"] for record in alone], [kind[4] for kind in kinds])
    equal("and its status", [record["detail"]["status"] for record in alone], [kind[3] for kind in kinds])
    denied, failed = 1, 2
    equal("verdicts", [record["verdict"] for record in alone], [failed, failed, denied, denied, denied, failed])
    check(all(record["principal"] is None for record in alone), "nobody is known")
    messages = [record["detail"].get("message", "") for record in records]
    check(any("malformed" in message or "header" in message for message in messages), f"{messages}")
    known = [record for record in records if record["principal"] == key["id"]]
    equal("who is known is named", [(r["action"], r["detail"]["path"]) for r in known], [("request", "/nowhere")])
    flooded = [record for record in records if record["detail"].get("peer") == "127.0.0.3"]
    equal("records of a flood", len(flooded), each + 1)
    marks = [record["detail"].get("more") for record in flooded[:each]]
    equal("the last says so", marks, [None] * (each - 1) + ["counted"])
    equal("the sum", (flooded[each]["action"], flooded[each]["detail"]["refused"]), ("request.refused", flood - each))
    equal("of all reasons", sum(flooded[each]["detail"]["reasons"].values()), flood - each)
    equal("each of them", set(flooded[each]["detail"]["reasons"]), {kind[4] for kind in kinds[:5]})


@case
def off() -> None:
    """server.auth off: anybody on this machine may call, web pages still may not."""
    with service("auth", "server:\n  auth: off\n") as one:
        equal("anybody", one.call("GET", f"{V}/keys", key=None).status, 200)
        equal("a page", one.call("GET", f"{V}/keys", key=None, headers={"Origin": "https://x.example"}).status, 403)
    with service("auth", "server:\n  open_metrics: true\n") as one:
        equal("metrics", one.call("GET", "/metrics", key=None).status, 200)
        equal("the rest", one.call("GET", f"{V}/tools", key=None).status, 401)


@case
def rates() -> None:
    """More requests than allowed are 429 with Retry-After, by address and by agent."""
    with service("auth", HUTCH_LIMITS_PER_IP_RATE="1", HUTCH_LIMITS_PER_IP_BURST="5") as one:
        answers = [one.call("GET", "/healthz", key=None) for _ in range(8)]
        refused = [answer for answer in answers if answer.status == 429]
        check(2 <= len(refused) <= 3, f"{len(refused)} of 8 were refused")
        check(int(refused[0].headers["Retry-After"]) >= 1, "Retry-After")
        equal("code", refused[0].code, "too_many")
    with service("auth", HUTCH_LIMITS_PER_AGENT_PER_MINUTE="3") as one:
        statuses = [one.call("GET", f"{V}/tools", headers={"X-Agent": "bob"}).status for _ in range(5)]
        equal("bob", statuses, [200, 200, 200, 429, 429])
        equal("alice", one.call("GET", f"{V}/tools", headers={"X-Agent": "alice"}).status, 200)


@case
def unprivileged() -> None:
    """The gateway has no root, no capability, its filter, and sees little of the machine."""
    with service("auth") as one:
        status = pathlib.Path(f"/proc/{one.gateway()}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        check("0" not in fields["Uid"].split(), f"uid {fields['Uid']}")
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            equal(name, int(fields[name], 16), 0)
        equal("NoNewPrivs", fields["NoNewPrivs"], "1")
        equal("Seccomp", fields["Seccomp"], "2")
        with sandbox(one) as box:
            equal("and works", one.shell(box, "echo yes")["stdout"], "yes\n")


if __name__ == "__main__":
    main()
