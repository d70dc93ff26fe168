#!/usr/bin/env python3
"""make bench: Hutch against its peers, on this machine, in one run.

    run.py [--quick] [--rounds N] [--block N] [--build FOLDER] [--json PATH] [--svg PATH]
    run.py --install-peers

Whole commands (bench-launch): `true` and `python3 -c pass`, by each peer that works here, alternating in shuffled
order: one run at each turn, begun when nothing is left of the one before; some runs in a row at each turn, so that each
pays itself for what it leaves behind; and with 300 ms of rest before each run. Many sandboxes (bench-many): how many a
second, what an idle one costs, where the time goes. Files (bench-files): what reading, writing and listing cost over
the guest link.

Compare ratios, and believe medians. Other load makes every figure worse, and those of commands of many processes more:
each measurement waits for a quiet moment, though not for ever, and the report says how often there was none.

Exit status: 0 when every budget of the design is met, 1 when one is not, 2 when something could not be measured.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

sys.dont_write_bytecode = True  # nothing is left in the source tree

import chart
import peers
import report
import service

HERE = pathlib.Path(__file__).resolve().parent
PAUSE_MS = 300
TURNS, IN_A_ROW, PACED = "taking turns", "in a row", f"every {PAUSE_MS} ms"
PICTURED = IN_A_ROW  # the least flattering


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Hutch against its peers.")
    parser.add_argument("--quick", action="store_true", help="few rounds, and only 200 sandboxes at once")
    parser.add_argument("--rounds", type=int, help="turns of each command (default 20, quick 4)")
    parser.add_argument("--block", type=int, default=11,
                        help="in a row: runs at each turn, the first not counted")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build",
                        help="where bench-tools was built")
    parser.add_argument("--json", type=pathlib.Path, help="write everything measured (default BUILD/bench.json)")
    parser.add_argument("--svg", type=pathlib.Path, help="write a picture")
    parser.add_argument("--install-peers", action="store_true", help="install the peers with apt-get, and end")
    options = parser.parse_args()
    options.rounds = options.rounds or (4 if options.quick else 20)
    options.build = options.build.resolve()
    options.json = options.json or options.build / "bench.json"
    if options.rounds < 1 or options.block < 1:
        parser.error("--rounds and --block must be at least 1")
    return options


def say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


def remove(folder: pathlib.Path) -> None:
    """Never through a mount that a peer left behind."""
    mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    if any(mount.startswith(f"{folder}/") for mount in mounts):
        say(f"something is still mounted below {folder}; it stays")
    else:
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)


@contextlib.contextmanager
def workshop() -> Iterator[pathlib.Path]:
    """A folder for all that is needed, and docker and podman with it; nothing of it is left."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="hutch-bench-"))
    # Of a session of its own: Ctrl-C is for us, and the end of its input is for it.
    server = subprocess.Popen([HERE / "peers.sh", "serve", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, start_new_session=True)
    try:
        for line in server.stdout or []:
            if line == "ready\n":
                break
        yield work
    finally:
        server.communicate()
        remove(work)


def tool(build: pathlib.Path, name: str, *args: object, work: pathlib.Path) -> dict | list:
    """Run one of our programs that print JSON. On Ctrl-C it ends itself and what it made; we wait for that."""
    process = subprocess.Popen([build / "tests/bench" / name, *map(str, args)], stdout=subprocess.PIPE, text=True,
                               env=peers.environment(work))
    try:
        out, _ = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, name)
    return json.loads(out)


def block_of(peer: peers.Peer, options: argparse.Namespace, how: str) -> int:
    """How often it runs at each turn."""
    if how == TURNS:
        return 1
    if how == PACED:
        return 1 if peer.slow else 3
    return min(options.block, 3) if peer.slow else options.block


def measure_launches(options: argparse.Namespace, work: pathlib.Path, usable: list[peers.Peer]) -> tuple[dict, float]:
    results: dict[str, dict[str, dict]] = {}
    busy: list[float] = []
    lines = work / "commands"
    for how in (TURNS, IN_A_ROW, PACED):
        # One run at each turn: there must be more turns, but slow ones need not have all of them.
        shares = {True: options.rounds, False: options.rounds * 5} if how == TURNS else {None: options.rounds}
        results[how] = {}
        for key in peers.COMMANDS:
            for slow, rounds in shares.items():
                some = [peer for peer in usable if slow is None or peer.slow == slow]
                say(f"{key}, {how}, {rounds} rounds of {len(some)} commands")
                lines.write_text("".join(
                    "\t".join([peer.name, str(block_of(peer, options, how)), *peer.line(work, key)]) + "\n"
                    for peer in some))
                measured = tool(options.build, "bench-launch", lines, rounds, PAUSE_MS if how == PACED else 0,
                                work=work)
                results[how].setdefault(key, {}).update(
                    {name: report.summary(values) for name, values in measured["samples"].items()})
                busy.append(measured["busy"])
    return results, sum(busy) / len(busy)


def measure_files(options: argparse.Namespace) -> dict[str, str]:
    """Its figures are the comments of its TAP: a name of 28 columns, and what was measured."""
    out = subprocess.run([options.build / "tests/bench/bench-files", options.build / "hutch-init",
                          options.build / "tests/integration/payload"], capture_output=True, text=True, check=True)
    figures = [line[2:] for line in out.stdout.splitlines() if line.startswith("# ")]
    return {line[:28].strip(): line[28:].strip() for line in figures}


def measure(options: argparse.Namespace) -> dict:
    levels = [200] if options.quick else [200, 2000]
    slices = (3, 500) if options.quick else (7, 1000)
    with workshop() as work:
        peers.prepare(options.build, work)
        usable, reasons = peers.usable(peers.all_peers(options.build, work), work)
        for name, reason in reasons.items():
            say(f"{name}: {reason}")
        launches, busy = measure_launches(options, work, usable)
        many = ("bench-many", options.build / "hutch-init", work / "state")
        say("sandboxes per second")
        rates = tool(options.build, *many, "rate", *slices, work=work)
        say(f"idle sandboxes: {levels}")
        live = tool(options.build, *many, "live", 50 if options.quick else 200, *levels, work=work)
        say("over the REST door of a daemon")
        over_http = service.measure(options.build, work, tool, options.quick)
        say("files over the guest link")
        files = measure_files(options)
        versions = {peer.program: peers.version(peer.program, work) for peer in usable if peer.program}
    busy = {"commands": busy, "sandboxes per second": rates["busy"], "idle sandboxes": live["busy"]}
    return {"launches": launches, "rates": rates["rates"], "live": live["levels"], "service": over_http,
            "files": files, "busy": busy, "versions": versions, "missing": reasons}


def machine() -> dict:
    cpus = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in cpus if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "kernel": platform.release(), "cpus": os.cpu_count(), "cpu": model,
            "memory_gib": round(memory / 2**30, 1), "load": os.getloadavg()}


def write_results(options: argparse.Namespace, results: dict) -> None:
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    say(f"wrote {options.json}")
    if options.svg:
        about = results["machine"]
        tables = results["launches"][PICTURED]
        kernel = about["kernel"].partition("-")[0]
        note = f"Some runs in a row, {about['cpus']} CPUs, Linux {kernel}, {about['date'][:10]}."
        panels = {key: {name: row["p50_ms"] for name, row in rows.items()} for key, rows in tables.items()}
        options.svg.write_text(chart.draw(panels, note))
        say(f"wrote {options.svg}")


def main() -> int:
    options = arguments()
    if options.install_peers:
        return subprocess.run([HERE / "peers.sh", "install"], check=False).returncode
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    if os.geteuid() != 0:
        say("sandboxes are made by root: sudo make bench")
        return 2
    about = machine()
    say(f"{about['cpus']} CPUs, {about['memory_gib']} GiB, Linux {about['kernel']}, load {about['load'][0]:.2f}")
    try:
        results = {"machine": about} | measure(options)
    except (subprocess.CalledProcessError, OSError) as error:
        say(f"{error}; is it built? cmake --build {options.build} --target bench-tools")
        return 2
    for how, tables in results["launches"].items():
        for key, rows in tables.items():
            report.launch_table(f"{key}, {how}", rows)
    if results["missing"]:
        print("\nnot measured: " + "; ".join(f"{name} ({reason})" for name, reason in results["missing"].items()))
    rates = report.rate_table(results["rates"])
    report.live_tables(results["live"])
    report.service_table(results["service"])
    report.file_table(results["files"])
    report.load_line(results["busy"])
    found = report.verdicts(results["launches"], rates, results["live"])
    found += report.service_verdicts(results["service"])
    report.verdict_table(found)
    write_results(options, results | {"budgets": [vars(verdict) for verdict in found]})
    missed = [verdict for verdict in found if not verdict.met]
    print(f"\nno: {len(missed)} of {len(found)} budgets are not met" if missed else "\nyes: all budgets are met")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(130)
