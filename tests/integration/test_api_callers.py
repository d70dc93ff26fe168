#!/usr/bin/env python3
"""Callers who want to learn what they may not know, forge logs, or take all the time there is."""

import re
import statistics
import time

from harness import case, check, contains, equal, main, quick
from service import KEY, Answer, service

V = "/api/v1"
NOBODY_HAS = "a" * 26


def told(answer: Answer) -> tuple[int, str, set[str]]:
    """All that an answer tells but for what is different in each."""
    names = {name.lower() for name in answer.headers.keys()}
    body = answer.body.decode().replace(answer.headers["X-Request-ID"], "ID")
    return answer.status, re.sub(r"(sb|ex)_[0-9a-z]{26}", r"\1_ID", body), names


@case
def answers_tell_nothing() -> None:
    """Wrong, unknown, revoked and expired keys look the same; so do another's id and one that nobody has."""
    with service("callers") as one:
        made = one.ok("POST", f"{V}/keys", {"name": "gone", "scope": "admin"}, 201).json
        one.ok("DELETE", f"{V}/keys/{made['id']}", status=204)
        keys = [KEY[:-1] + "X", KEY + "X", KEY[:-1], "x", "x" * 4000, made["secret"], made["secret"][::-1]]
        answers = [told(one.call("GET", f"{V}/tools", key=key)) for key in keys]
        equal("keys", [answer for answer in answers if answer != answers[0]], [])
        other = one.new_key("run")
        box = one.create()
        run = one.start_exec(box, command="sleep 60")
        for method, theirs, nobodys in (
            ("GET", f"sandboxes/{box}", f"sandboxes/sb_{NOBODY_HAS}"),
            ("GET", f"sandboxes/{box}/logs", f"sandboxes/sb_{NOBODY_HAS}/logs"),
            ("GET", f"sandboxes/{box}/files/x", f"sandboxes/sb_{NOBODY_HAS}/files/x"),
            ("DELETE", f"sandboxes/{box}", f"sandboxes/sb_{NOBODY_HAS}"),
            ("GET", f"execs/{run}", f"execs/ex_{NOBODY_HAS}"),
            ("GET", f"execs/{run}/output", f"execs/ex_{NOBODY_HAS}/output"),
            ("DELETE", f"execs/{run}", f"execs/ex_{NOBODY_HAS}"),
        ):
            first = told(one.call(method, f"{V}/{theirs}", key=other))
            equal(f"{method} {theirs}", first, told(one.call(method, f"{V}/{nobodys}", key=other)))
            equal(f"{method} {theirs}", first[0], 404)


@case
def time_tells_nothing() -> None:
    """A key that is nearly right is refused as quickly as one that is all wrong."""
    with service("callers") as one:
        connection = one.connect()

        def ask(key: str) -> float:
            began = time.perf_counter()
            connection.request("GET", f"{V}/tools", headers={"Authorization": f"Bearer {key}"})
            response = connection.getresponse()
            response.read()
            equal("status", response.status, 401)
            return time.perf_counter() - began

        near, far = KEY[:-1] + "X", "X" * len(KEY)
        took = {near: [], far: []}
        for _ in range(400):
            for key, times in took.items():
                times.append(ask(key))
        medians = {key: statistics.median(times) for key, times in took.items()}
        ratio = medians[near] / medians[far]
        check(0.8 < ratio < 1.25, f"medians {medians}")


LINE = re.compile(r'(?:gateway: )?(?:[a-z_0-9]+=(?:"(?:[^"\\\x00-\x1f\x7f]|\\.)*"|[^\s"\\]*)(?: |$))+')


@case
def injection() -> None:
    """What callers send can't add a line, field or escape sequence to the daemon's log, nor a field to the audit."""
    nasty = 'x" level=error event="forged\\'
    bell = "\x1b[2J\x07\x9b31m\u2028\u202e"
    with service("callers", "logging:\n  level: debug\n") as one:
        one.call("GET", f"{V}/sandboxes/%0Atime=forged%0D%0A", headers={"X-Agent": nasty})
        one.call("GET", f"{V}/tools?x=%0Aforged%1b[2J", headers={"X-Agent": nasty, "X-Request-ID": 'a" b=c'})
        one.call(
            "GET",
            f"{V}/tools",
            headers={"User-Agent": nasty, "Referer": nasty, "X-Forwarded-For": "6.6.6.6"},
            key=nasty,
        )
        made = one.ok(
            "POST",
            f"{V}/sandboxes",
            {"labels": {f'a":1,"{bell}': f'b"}},"x":{{{bell}'}},
            201,
            headers={"X-Agent": nasty},
        )
        box = made.json["id"]
        equal("the label is as it was", made.json["labels"], {f'a":1,"{bell}': f'b"}},"x":{{{bell}'})
        command = f'echo \'"}},"verdict":"denied"\' #{bell}\n{nasty}\r\n'
        one.tool(box, "shell_exec", command=command)
        one.call("PUT", f"{V}/sandboxes/{box}/files/%22,%22forged%22:%221%1b%0a", data=b"x")
        entries = one.ok("GET", f"{V}/sandboxes/{box}/logs").json["entries"]
        names = {
            "number",
            "time",
            "action",
            "verdict",
            "principal",
            "agent",
            "sandbox_id",
            "exec_id",
            "detail",
            "hash",
            "output_hash",
        }
        for entry in entries:
            check(set(entry) <= names, f"fields {set(entry) - names}")
            check(entry["verdict"] == "allowed", f"{entry}")
            check("forged" not in entry["detail"] and "x" not in entry["detail"], f"{entry}")
            check(entry["detail"].get("peer", "127.0.0.1") == "127.0.0.1", "the peer is who it is")
        commands = [entry["detail"]["command"] for entry in entries if "command" in entry["detail"]]
        check(command in commands, f"the command is there as it was: {commands}")
        check(any(entry["agent"] == nasty for entry in entries), "and so is the agent")
        raw = one.ok("GET", f"{V}/sandboxes/{box}/logs").body
        check(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", raw), "a terminal that shows it is safe")
    for line in one.log.splitlines():
        check(LINE.fullmatch(line), f"a line of the log: {line!r}")
        check(not line.startswith("time=forged"), "a line was forged")
    contains("requests are logged", one.log, "event=request", "forged")
    check("event=forged" not in one.log and "\x1b" not in one.log, "the log")


@case
def exploding_expressions() -> None:
    """A regular expression that takes for ever: the command is not let through, the loop goes on, others are served."""
    with service("callers") as one:
        rules = ["^(a+)+$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"]
        box = one.create(command_blocklist=rules)
        for command in ("a" * 5000 + "!", "x" * 5000, "a" * 5000):
            began = time.monotonic()
            answer = one.tool(box, "shell_exec", command=command)
            quick(f"{command[:10]}...", time.monotonic() - began, 2)
            equal(f"{command[:10]}...", (answer.status, answer.code), (403, "command_blocked"))
        equal("what does not match", one.shell(box, "echo b")["stdout"], "b\n")
        lines = one.ok("GET", "/metrics").body.decode().splitlines()
        stall = float(next(line.split()[1] for line in lines if line.startswith("hutch_loop_stall_seconds_max ")))
        quick("the loop's longest stall", stall, 0.5)


if __name__ == "__main__":
    main()
