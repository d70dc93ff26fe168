#!/usr/bin/env python3
"""api/openapi.yaml against a real daemon, by schemathesis: requests that it allows, and others."""

import os
import subprocess

from harness import REPOSITORY, SANITIZED, Failed, Skipped, case, check, equal, main
from service import KEY, Service, service

TOOL = REPOSITORY / "build/contract/bin/schemathesis"
HERE = REPOSITORY / "tests/integration"
EXAMPLES = 10 if SANITIZED else 20  # of each operation, by chance; the planned ones come on top


def conforms(one: Service, *more: str) -> None:
    words = [TOOL, "--no-color", "--config-file", HERE / "contract.toml", "run", REPOSITORY / "api/openapi.yaml"]
    words += ["--url", f"http://127.0.0.1:{one.port}", "--header", f"Authorization: Bearer {KEY}", *more]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(HERE),
        "SCHEMATHESIS_HOOKS": "contract_hooks",
        "HUTCH_URL": f"http://127.0.0.1:{one.port}",
        "HUTCH_API_KEY": KEY,
    }
    done = subprocess.run(
        words, cwd=one.state, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    if done.returncode != 0:
        raise Failed(done.stdout[-20000:] + done.stderr[-2000:])


@case
def contract() -> None:
    """Every operation answers as api/openapi.yaml says, and refuses what that does not allow."""
    if not TOOL.exists():
        raise Skipped("schemathesis is not there; tools/setup contract installs it")
    with service("contract") as one:
        before = one.gateway()
        conforms(one, "--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES))
        equal("the gateway is the same", one.gateway(), before)
        check("ERROR" not in one.log and "Sanitizer" not in one.log, f"its log: {one.log[-2000:]}")


if __name__ == "__main__":
    main()
