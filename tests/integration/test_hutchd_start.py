#!/usr/bin/env python3
"""hutchd: its configuration, options, addresses, folders and certificates, good and bad."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from daemons import (
    BUILT,
    can_connect,
    daemon,
    hutchd,
    with_stand_in,
)
from harness import (
    Outcome,
    Skipped,
    case,
    check,
    contains,
    equal,
    finish,
    folder,
    main,
    place,
    quick,
)


def check_config(text: str, **env: str) -> Outcome:
    path = place() / "checked.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return hutchd("--check-config", "--config", str(path), **env)


@case
def second_daemon() -> None:
    "a second daemon on the same state folder is refused, and the first is not disturbed"
    with daemon() as one:
        one.ready()
        other = hutchd("--state", str(one.state), "--listen", "127.0.0.1:0", "--config", str(one.config))
        equal("status", other.status, 1)
        contains("message", other.err, "another hutchd uses the state folder", "--state")
        check(can_connect(one.ports[0]), "the first was disturbed")
        equal("restarts", one.events("gateway-ended"), [])


@case
def side_by_side() -> None:
    "two daemons with folders of their own live side by side"
    with daemon() as one, daemon(state="daemon2") as two:
        one.ready()
        two.ready()
        check(can_connect(one.ports[0]) and can_connect(two.ports[0]), "one of them does not listen")


@case
def port_in_use() -> None:
    "a port in use is a clear message and no damage"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with daemon("", "--listen", address) as one:
            equal("status", one.wait(), 1)
            contains("message", one.log, f"listening on {address}: another program does", "in use")
            check(not (one.state / "api.sock").exists(), "a socket file was left")


@case
def state_folder() -> None:
    "a state folder that is not root's alone is refused"
    path = folder("open-state")
    path.chmod(0o755)
    outcome = hutchd("--state", str(path), "--listen", "127.0.0.1:0")
    equal("status", outcome.status, 1)
    contains("message", outcome.err, "must be root's alone", "chmod 0700")
    path.chmod(0o700)
    (path / "gateway").mkdir()
    outcome = hutchd("--state", str(path), "--listen", "127.0.0.1:0")
    contains("message", outcome.err, "must be the service user's alone")


BAD = [
    ("sandbox:\n  max_concurent: 5\n", "checked.yaml:2:3: sandbox.max_concurent: ", "did you mean max_concurrent?"),
    ("sandbox:\n  max_concurrent: lots\n", "checked.yaml:2:3: ", "expected a whole number from 1 to 16384, not 'lots'"),
    ("server:\n  listen: [example.org:80]\n", "server.listen: ", "not 'example.org:80'"),
    ("server: {listen: [0.0.0.0:80], auth: off}\n", "server.auth: ", "loopback"),
    ("server: {tls_key: /x}\n", "server.tls_certificate: ", "go together"),
    ("a: &x [*x]\n", "checked.yaml:1:", ""),
    ("[" * 5000, "checked.yaml:1:", ""),
    ("a: \x07\n", "checked.yaml:1:4: ", "control characters"),
    ("sandbox: {default_template: nope}\n", "sandbox.default_template: ", "no template 'nope'"),
    ("templates: {x: /does/not/exist}\n", "templates.x: ", "No such file or directory"),
    ("shares: {x: {folder: /proc/self/exe, access: ro}}\n", "shares.x: ", "/proc/self/exe"),
    ("server: {tls_certificate: /does/not, tls_key: /exist}\n", "server.tls_certificate: ", "No such file"),
    ("server: {tls_certificate: /etc/hostname, tls_key: /etc/hostname}\n", "tls_certificate: ", "no PEM certificate"),
    ("#" * 200000, "larger than 128 KiB", ""),
]


@case
def bad_configuration() -> None:
    "a bad configuration: file, line, column, key, what was expected, did you mean; and nothing starts"
    for text, *parts in BAD:
        outcome = check_config(text)
        equal(f"status of {text[:40]!r}", outcome.status, 1)
        contains(f"message of {text[:40]!r}", outcome.err, *parts)
    outcome = check_config("", HUTCH_SERVER_LISTENS="x")
    equal("status", outcome.status, 1)
    contains("environment", outcome.err, "HUTCH_SERVER_LISTENS: ", "did you mean HUTCH_SERVER_LISTEN?")
    with daemon("sandbox: {max_concurrent: 0}\n") as one:
        equal("status", one.wait(), 1)
        contains("log", one.log, "sandbox.max_concurrent", "not in order")
        equal("listening", one.events("listening"), [])
    outcome = hutchd("--check-config", "--config", "/does/not/exist")
    equal("status", outcome.status, 1)
    contains("message", outcome.err, "opening the configuration /does/not/exist: No such file")
    outcome = hutchd("--check-config", "--config", "/etc")
    contains("message", outcome.err, "Is a directory")


@case
def example() -> None:
    "the example is in order, and so is a file with nothing in it"
    words = [BUILT / "hutch-gateway", "--print-example"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    check(text.count("\n") > 100, "the example is short")
    for config in (text, ""):
        outcome = check_config(config)
        equal("status", outcome.status, 0)
        contains("answer", outcome.text, "yes:", "is in order")


@case
def options() -> None:
    "options: unknown ones, values, help and version"
    outcome = hutchd("--sate", "/x")
    equal("status", outcome.status, 2)
    contains("message", outcome.err, "unknown option '--sate'; did you mean --state?")
    equal("status", hutchd("--state").status, 2)
    equal("status", hutchd("--version=1").status, 2)
    contains("help", hutchd("--help").text, "--check-config", "HUTCH_ADMIN_PASSWORD")
    contains("version", hutchd("--version").text, "hutchd ")
    many = ",".join(f"[0000:0000:0000:0000:0000:0000:0000:0001]:{port}" for port in range(10000, 10016))
    equal("many addresses", hutchd("--check-config", "--listen", many).status, 0)
    outcome = hutchd("--check-config", "--listen", many + "," * 2000)
    equal("status", outcome.status, 1)
    contains("message", outcome.err, "--listen takes at most 20", "server.listen")


@case
def beyond_loopback() -> None:
    "an address beyond loopback without a credential is refused; with one it is served"
    with daemon("server: {listen: ['0.0.0.0:0']}\n") as one:
        equal("status", one.wait(), 1)
        contains("log", one.log, "beyond loopback", "HUTCH_ADMIN_PASSWORD")
    with daemon("server: {listen: ['0.0.0.0:0']}\n", HUTCH_API_KEY="a-key-of-16-and-more") as one:
        one.ready()


def make_certificate(name: str) -> tuple[pathlib.Path, pathlib.Path]:
    if shutil.which("openssl") is None:
        raise Skipped("no openssl here")
    key, certificate = place() / f"{name}.key", place() / f"{name}.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    return certificate, key


@case
def certificates() -> None:
    "a certificate that does not match its key is refused, at start and on SIGHUP; one that does is taken"
    certificate, key = make_certificate("one")
    _, other = make_certificate("other")
    good = f"server: {{listen: ['127.0.0.1:0'], tls_certificate: {certificate}, tls_key: {key}}}\n"
    bad = f"server: {{listen: ['127.0.0.1:0'], tls_certificate: {certificate}, tls_key: {other}}}\n"
    contains("check", check_config(bad).err, "this key does not belong to the certificate")
    equal("status", check_config(good).status, 0)
    with daemon(bad) as one:
        equal("status", one.wait(), 1)
        contains("log", one.log, "this key does not belong to the certificate")
    with daemon(good) as one:
        one.ready()
        one.config.write_text(bad)
        one.signal(signal.SIGHUP)
        contains("reason", one.wait_event("not-reloaded")[0]["reason"], "this key does not belong")


@case
def certificate_checker() -> None:
    "a checker of certificates that is never done is ended"
    certificate, key = make_certificate("slow")
    config = place() / "slow.yaml"
    config.write_text(f"server: {{tls_certificate: {certificate}, tls_key: {key}}}\n")
    program = with_stand_in() / "hutchd"
    began = time.monotonic()
    process = subprocess.Popen(
        [program, "--check-config", "--config", config],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HUTCH_TEST_MODE": "drip"},
    )
    outcome = finish(process, seconds=30)
    equal("status", outcome.status, 1)
    contains("message", outcome.err, "checking the certificate: ", "timed out")
    quick("the refusal", time.monotonic() - began, 14)


@case
def unix_socket() -> None:
    "the unix socket is root's and the group's, and one that a killed daemon left is replaced"
    with daemon() as one:
        one.ready()
        path = one.state / "api.sock"
        equal("mode", path.stat().st_mode & 0o7777, 0o660)
        equal("owner", path.stat().st_uid, 0)
        one.process.kill()
        one.process.wait()
        check(path.exists(), "a killed daemon can't have removed it")
    with daemon(clean=False) as one:
        one.ready()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(one.state / "api.sock"))
        equal("end", one.end(), 0)
        check(not (one.state / "api.sock").exists(), "it was left behind")


if __name__ == "__main__":
    main()
