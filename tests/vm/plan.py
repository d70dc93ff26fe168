"""plan: which tests a machine runs, and what it needs for them. ctest knows the tests, so there is no second list."""

import json
import os
import pathlib
import re
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PLACE = "/opt/hutch"
# Names as regular expressions. What is asked for by name with --only runs all the same, but for the first.
NOWHERE = "integration-links"
ELSEWHERE = {
    NOWHERE: "looks at how the programs were linked, which no kernel changes",
    "unit-(gateway|airlock)-.*|fuzz-.*": "of what no kernel changes",
    "integration-net": "needs curl, git and a second machine's worth of servers",
    "integration-(airlock|api.*|contract|engine)": "takes minutes in emulation; --only runs it",
}


def why_not(name: str, is_wanted: bool) -> str:
    """Why this test does not run in the machine, or nothing."""
    for pattern, reason in ELSEWHERE.items():
        if re.fullmatch(pattern, name) and not (is_wanted and pattern != NOWHERE):
            return reason
    return ""
# Verbs that are a test by themselves, with the label of the tests that run them anyway.
VERBS = {"doctor": "", "attack": "adversarial"}
VERB_SECONDS = 300
# How much slower than a real machine: tests multiply the longest time they accept with it and repeat less often.
ENVIRONMENT = {"HUTCH_TEST_SLOWNESS": "10"}


def find_tests(build: pathlib.Path, label: str) -> list[dict]:
    """The tests with such a label, each with its command, environment and time limit."""
    listed = subprocess.check_output(["ctest", "--test-dir", build, "--show-only=json-v1"], text=True)
    tests, labels = [], set()
    for test in json.loads(listed)["tests"]:
        properties = {item["name"]: item["value"] for item in test["properties"]}
        if any(re.fullmatch(label, word) for word in properties.get("LABELS", [])):
            labels.update(properties["LABELS"])
            tests.append(
                {
                    "name": test["name"],
                    "command": test["command"],
                    "environment": dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", [])),
                    "seconds": properties.get("TIMEOUT", VERB_SECONDS),
                    "tap": True,
                    "long": properties.get("RUN_SERIAL", False),
                }
            )
    tests += [test for test in find_verbs(build) if VERBS[test["command"][1]] not in labels]
    # Those that measure or count take longest: what is given out last should be short.
    return sorted(tests, key=lambda test: not test["long"])


def find_verbs(build: pathlib.Path) -> list[dict]:
    known = subprocess.check_output([build / "hutch", "help"], text=True)
    return [
        {
            "name": f"hutch-{verb}",
            "command": [str(build / "hutch"), verb],
            "environment": {},
            "seconds": VERB_SECONDS,
            "tap": False,
            "long": True,
        }
        for verb in VERBS
        if re.search(rf"^ +{verb} ", known, re.MULTILINE)
    ]


class Luggage:
    """What goes along: the programs, the tests, and each file of the build that a test names."""

    def __init__(self, build: pathlib.Path) -> None:
        self._build = build
        self.files = {
            "tests": REPOSITORY / "tests",
            **{f"build/{path.name}": path for path in build.glob("hutch*") if os.access(path, os.X_OK)},
        }

    def _there(self, word: str) -> str:
        """A word of a command or of the environment, as it is in the machine."""
        path = pathlib.Path(word)
        if not path.is_absolute():
            return word
        if re.fullmatch(r"python3?[.\d]*", path.name):
            return "python3"
        if path.is_relative_to(self._build):
            name = str("build" / path.relative_to(self._build))
            if path.is_file():
                self.files[name] = path
            return f"{PLACE}/{name}"
        if path.is_relative_to(REPOSITORY):
            return f"{PLACE}/{path.relative_to(REPOSITORY)}"
        return word

    def pack(self, test: dict) -> dict:
        environment = {name: self._there(word) for name, word in test["environment"].items()}
        command = [self._there(word) for word in test["command"]]
        return {**test, "command": command, "environment": {**environment, **ENVIRONMENT}}
