#!/usr/bin/env python3
"""`hutch attack`, a line of TAP for each attack: refused, with host and neighbour unharmed, or not there at all on this
kernel, which is said. And nothing of all the sandboxes is left."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import harness

LEAST = 170


def tap(number: int, held: bool, name: str, *comments: str) -> None:
    print(f"{'ok' if held else 'not ok'} {number} - {name}")
    for comment in comments:
        print(f"# {comment}")


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("these tests make sandboxes and need root")
    before = harness.traces()
    with tempfile.TemporaryDirectory(prefix="hutch-test-", dir="/var/tmp") as state:
        words = [harness.HUTCH, "attack", "--json", "--state", state, *sys.argv[1:]]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        print("\n".join(f"# {line}" for line in done.stderr.splitlines()))
        told = json.loads(done.stdout)
        attacks = told["attacks"]
        for number, attack in enumerate(attacks, 1):
            held = attack["verdict"] in ("refused", "absent")
            skip = f" # SKIP {attack['detail']}" if attack["verdict"] == "absent" else ""
            tap(number, held, f"{attack['name']}: {attack['tries']}{skip}", *([attack["detail"]] if not held else []))
        listed = [attack for attack in attacks if attack["group"] == "programs"]
        bad = [attack["name"] for attack in attacks if attack["verdict"] not in ("refused", "absent")]
        number = len(attacks)
        tap(number + 1, (done.returncode == 0) == (not bad) and told["all_refused"] == (not bad), "the status says so")
        tap(number + 2, len(attacks) >= LEAST or len(sys.argv) > 1, f"there are at least {LEAST} attacks")
        vain = [f"{attack['name']}: {attack['detail']}" for attack in listed if attack["detail"]]
        lacking = bool(listed) and all("not on this machine" in words for words in vain) and len(vain) == len(listed)
        tap(number + 3, not vain or lacking, "all that --only refuses works without it", *vain)
        service = [attack for attack in attacks if attack["group"] in ("callers", "transfers")]
        missing = [attack["name"] for attack in service if "no hutchd" in attack["detail"]]
        has_daemon = (pathlib.Path(harness.HUTCH).parent / "hutchd").exists()
        tap(number + 4, has_daemon != bool(missing) or not service, "the service was attacked, if it is here", *missing)
        try:
            harness.nothing_left(before)
            clean = True
            tap(number + 5, True, "no cgroup, instance or loop device is left")
        except harness.Failed as failed:
            clean = False
            tap(number + 5, False, "no cgroup, instance or loop device is left", str(failed))
    slowest = sorted(attacks, key=lambda attack: -attack["took_us"])[:5]
    print("# slowest: " + ", ".join(f"{attack['name']} {attack['took_us'] / 1e6:.1f} s" for attack in slowest))
    print(f"# {told['attempts']} attempts")
    print(f"1..{number + 5}")
    sys.exit(1 if bad or done.returncode != 0 or (vain and not lacking) or not clean or (missing and has_daemon) else 0)


main()
