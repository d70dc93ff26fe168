#!/usr/bin/env python3
"""hutchd: SIGHUP, SIGTERM, SIGKILL, and what systemd is told."""

import pathlib
import re
import signal
import socket
import time

from daemons import (
    alive,
    Daemon,
    can_connect,
    daemon,
)
from harness import (
    case,
    check,
    contains,
    equal,
    eventually,
    main,
    place,
    quick,
)


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
