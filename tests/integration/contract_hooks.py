"""What schemathesis can't know: ids of things that are really there, for requests whose ids have the right shape.

Loaded by schemathesis (SCHEMATHESIS_HOOKS), which test_contract.py starts with HUTCH_URL and HUTCH_API_KEY. What a
request may spoil (it is destroyed, killed) is made for that request alone.
"""

import functools
import json
import os
import urllib.error
import urllib.request

import schemathesis
from schemathesis.core.parameters import ParameterLocation

URL = os.environ["HUTCH_URL"]
KEY = os.environ["HUTCH_API_KEY"]
V = "/api/v1"


def ask(method: str, path: str, body: dict | None = None) -> dict:
    request = urllib.request.Request(
        URL + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.loads(response.read() or b"{}")


def new_sandbox() -> str:
    return ask("POST", f"{V}/sandboxes", {})["id"]


@functools.cache
def common_sandbox() -> str:
    return new_sandbox()


@functools.cache
def sandbox_to_pause() -> str:
    return new_sandbox()


@functools.cache
def ended_exec() -> str:
    path = f"{V}/sandboxes/{common_sandbox()}/execs"
    return ask("POST", path, {"command": "echo out; echo err >&2; printf '\\377'", "wait": True})["id"]


def running_exec() -> str:
    path = f"{V}/sandboxes/{common_sandbox()}/execs"
    return ask("POST", path, {"command": "cat", "tty": True, "stdin_open": True, "timeout_seconds": 10})["id"]


def new_key() -> str:
    return ask("POST", f"{V}/keys", {"name": "contract", "scope": "run"})["id"]


SOURCES = {
    "id": {
        "destroySandbox": new_sandbox,
        "pauseSandbox": sandbox_to_pause,
        "resumeSandbox": sandbox_to_pause,
        "": common_sandbox,
    },
    "eid": {"getExec": ended_exec, "execOutput": ended_exec, "": running_exec},
    "kid": {"revokeKey": new_key, "": lambda: "key_none"},
}


def is_bent(case: schemathesis.Case, where: ParameterLocation) -> bool:
    return case.meta is not None and case.meta.is_negative_at(where)


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict) -> None:
    operation = case.operation.definition.raw.get("operationId", "")
    if operation == "events" and not is_bent(case, ParameterLocation.QUERY):
        case.query = {"after": 0}
    if is_bent(case, ParameterLocation.PATH):
        return
    for name, sources in SOURCES.items():
        if name in case.path_parameters:
            case.path_parameters[name] = sources.get(operation, sources[""])()


@schemathesis.hook
def after_call(context: schemathesis.HookContext, case: schemathesis.Case, response: schemathesis.Response) -> None:
    """What a request made goes away again, or there would soon be too many."""
    if response.status_code != 201:
        return
    operation = case.operation.definition.raw.get("operationId", "")
    if operation == "createSandbox":
        ask("DELETE", f"{V}/sandboxes/{response.json()['id']}")
    elif operation == "createKey":
        ask("DELETE", f"{V}/keys/{response.json()['id']}")
    elif operation == "startExec":
        ask("DELETE", f"{V}/execs/{response.json()['id']}")
