"""report: what `make bench` prints: tables, then each budget of the design as met or not met."""
import dataclasses

BARE, OURS, RIVAL, MINIMAL = "fork+exec", "hutch run", "bwrap", "bwrap-minimal"


@dataclasses.dataclass
class Verdict:
    budget: str
    figure: str
    met: bool


def quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[round(q * (len(ordered) - 1))]


def summary(samples_ns: list[int]) -> dict[str, float]:
    return {"runs": len(samples_ns), "p50_ms": quantile(samples_ns, 0.5) / 1e6,
            "p99_ms": quantile(samples_ns, 0.99) / 1e6}


def ratio(rows: dict[str, dict], of: str, to: str) -> float | None:
    return rows[of]["p50_ms"] / rows[to]["p50_ms"] if of in rows and to in rows else None


def times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def launch_table(title: str, rows: dict[str, dict]) -> None:
    print(f"\n{title}\n  {'':<14} {'runs':>5} {'p50 ms':>8} {'p99 ms':>8} {'x bare':>7} {'x bwrap':>8}")
    for name, row in sorted(rows.items(), key=lambda item: item[1]["p50_ms"]):
        print(f"  {name:<14} {row['runs']:>5} {row['p50_ms']:>8.2f} {row['p99_ms']:>8.2f}"
              f" {times(ratio(rows, name, BARE)):>7} {times(ratio(rows, name, RIVAL)):>8}")


def rate_table(rates: dict[str, list[float]]) -> dict[str, float]:
    middle = {name: quantile(values, 0.5) for name, values in rates.items()}
    print("\nsandboxes per second: create, exec of true, destroy (p50 of slices; bare: clone3 with seven namespaces, id"
          " maps,\nexec of true, wait; wait: the next one only when nothing is left of the one before)")
    print(f"  {'workers':<9} {'bare':>7} {'hutch':>7} {'/ bare':>7} {'hutch, wait':>12} {'/ bare':>7}")
    for workers in ("1", "2"):
        bare, ours, wait = (middle[f"{kind}-{workers}"] for kind in ("bare", "hutch", "hutch-wait"))
        print(f"  {workers:<9} {bare:>7.0f} {ours:>7.0f} {ours / bare:>7.2f} {wait:>12.0f} {wait / bare:>7.2f}")
    return middle


def live_tables(levels: list[dict]) -> None:
    print("\nidle sandboxes alive, and one more: p50 / p99 ms until ready, of true in it, until gone")
    print(f"  {'live':<6} {'create':>15} {'exec':>15} {'destroy':>15} {'KiB each':>9} {'fds each':>9}"
          f" {'all gone, s':>12}")
    for level in levels:
        cells = [f"{p50 / 1e3:.2f} / {p99 / 1e3:.2f}" for p50, p99 in level["phases_us"].values()]
        memory = f"{level['memory_kib']['used']:.0f}" if level["live"] else "-"
        fds = f"{level['fds']['keeper and client']:.2f}" if level["live"] else "-"
        gone = f"{level['all_destroyed_ms'] / 1e3:.1f}" if level["live"] else "-"
        print(f"  {level['live']:<6} {cells[0]:>15} {cells[1]:>15} {cells[2]:>15} {memory:>9} {fds:>9} {gone:>12}")
    kinds = ("AnonPages", "Shmem", "SReclaimable", "SUnreclaim", "KernelStack", "PageTables", "Percpu")
    for level in levels[1:]:
        print(f"  memory of one at {level['live']}, KiB: "
              + ", ".join(f"{kind} {level['memory_kib'][kind]:.0f}" for kind in kinds)
              + f"; left behind once all are gone {level['left_kib']:.0f}")
    print("\ntime per step, p50 / p99 us" + "".join(f"{'at ' + str(level['live']) + ' live':>20}" for level in levels))
    for step in levels[0]["steps_us"]:
        print(f"  {step:<25}" + "".join(f"{level['steps_us'][step][0]:>11.0f} /{level['steps_us'][step][1]:>7.0f}"
                                        for level in levels))


def verdicts(launches: dict[str, dict[str, dict]], rates: dict[str, float], levels: list[dict]) -> list[Verdict]:
    found = []
    for how, tables in launches.items():
        value = ratio(tables["true"], OURS, RIVAL)
        if value is None:
            found.append(Verdict(f"hutch run <= 0.7 x bwrap, {how}", "bwrap is not installed: not measured", False))
            continue
        ours, rival = (tables["true"][name]["p50_ms"] for name in (OURS, RIVAL))
        found.append(Verdict(f"hutch run <= 0.7 x bwrap with the same mounts, {how}",
                             f"{value:.2f} ({ours:.2f} / {rival:.2f} ms)", value <= 0.7))
    for workers in ("1", "2"):
        ours, bare = rates[f"hutch-{workers}"], rates[f"bare-{workers}"]
        found.append(Verdict(f"create + exec + destroy >= 0.5 x bare rate, {workers} worker{'s' * (workers > '1')}",
                             f"{ours / bare:.2f} ({ours:.0f} / {bare:.0f} a second)", ours / bare >= 0.5))
    nothing, most = levels[0], levels[-1]
    kib = most["memory_kib"]["used"]
    found.append(Verdict(f"an idle sandbox <= 1 MiB, at {most['live']} live", f"{kib / 1024:.2f} MiB", kib <= 1024))
    fds = max(most["fds"]["keeper and client"], most["fds"]["zygote, in all"] / most["live"])
    found.append(Verdict("at most 3 fds per sandbox in any process", f"{fds:.2f} (keeper and client in one)", fds <= 3))
    before, after = nothing["phases_us"]["create"][0] / 1e3, most["phases_us"]["create"][0] / 1e3
    found.append(Verdict(f"creation at {most['live']} live <= 2 x creation at none (design: at 5,000)",
                         f"{after / before:.2f} ({after:.2f} / {before:.2f} ms)", after <= 2 * before))
    return found


def service_table(found: dict) -> None:
    print("\nover the REST door of a daemon, p50 / p99 ms")
    print(f"  {'':<44} {'bare':>15} {'hutch':>15} {'x':>6}")
    rows = {"sh -c true in a live sandbox": found["live"], "true in a fresh sandbox of the pool": found["fresh"],
            "a new sandbox and node -v": found["node"]}
    for live, row in found["crowds"].items():
        rows[f"the first, beside {live} idle ones"] = row["live"]
        rows[f"the second, beside {live} idle ones"] = row["fresh"]
    for name, row in rows.items():
        cells = [f"{row[who]['p50_ms']:.2f} / {row[who]['p99_ms']:.2f}" for who in ("bare", "ours")]
        print(f"  {name:<44} {cells[0]:>15} {cells[1]:>15} {row['ours']['p50_ms'] / row['bare']['p50_ms']:>6.2f}")
    created = {"with none": found["fresh"], **{f"beside {live}": row["fresh"] for live, row in found["crowds"].items()}}
    print("  of the second, the creation alone, p50 ms: "
          + ", ".join(f"{row['create']['p50_ms']:.2f} {how}" for how, row in created.items()))
    for live, row in found["crowds"].items():
        print(f"  {live} live: {row['each_kib']:.0f} KiB of memory each, {row['fds_each']:.2f} descriptors each in the"
              f" process that has most, made in {row['all_created_ms'] / 1e3:.1f} s")
    print("  create, true, destroy, a second: "
          + ", ".join(f"{rate:.0f} with {clients} clients" for clients, rate in found["sustained"].items()))
    print(f"  100 at once, each a new sandbox with true: p50 {found['burst']['p50_ms']:.1f},"
          f" the last {found['burst']['p99_ms']:.1f} ms")
    output = found["output"]
    print(f"  output: {output['ours_mb_per_second']:.0f} MB/s; through a pipe {output['pipe_mb_per_second']:.0f}")


def service_verdicts(found: dict) -> list[Verdict]:
    def times_bare(name: str, row: dict[str, dict], most: float) -> Verdict:
        ours, bare = row["ours"]["p50_ms"], row["bare"]["p50_ms"]
        return Verdict(name, f"{ours / bare:.2f} ({ours:.2f} / {bare:.2f} ms)", ours <= most * bare)

    verdicts = [
        times_bare("true in a fresh pooled sandbox <= 2 x fork+exec of true", found["fresh"], 2),
        times_bare("exec in a live sandbox <= 1.6 x fork+exec of sh -c true", found["live"], 1.6),
        times_bare("create + first node -v <= 1.5 x bare node -v", found["node"], 1.5),
    ]
    output = found["output"]
    share = output["ours_mb_per_second"] / output["pipe_mb_per_second"]
    verdicts.append(Verdict("output over HTTP >= 0.5 x a pipe's throughput", f"{share:.2f}", share >= 0.5))
    live, row = list(found["crowds"].items())[-1]
    for name in ("live", "fresh"):
        ours, alone = row[name]["ours"]["p50_ms"], found[name]["ours"]["p50_ms"]
        verdicts.append(Verdict(f"{name} p50 beside {live} idle sandboxes <= 2 x alone (design: 5,000)",
                                f"{ours / alone:.2f} ({ours:.2f} / {alone:.2f} ms)", ours <= 2 * alone))
    ours, alone = row["fresh"]["create"]["p50_ms"], found["fresh"]["create"]["p50_ms"]
    verdicts.append(Verdict(f"creation over HTTP beside {live} idle sandboxes <= 2 x alone (design: 5,000)",
                            f"{ours / alone:.2f} ({ours:.2f} / {alone:.2f} ms)", ours <= 2 * alone))
    verdicts.append(Verdict(f"at most 3 descriptors per sandbox in any process, {live} live", f"{row['fds_each']:.2f}",
                            row["fds_each"] <= 3))
    return verdicts


def file_table(figures: dict[str, str]) -> None:
    print("\nfiles over the guest link, on tmpfs")
    for name, figure in figures.items():
        print(f"  {name:<30} {figure}")


def load_line(busy: dict[str, float]) -> None:
    print("\nmoments at which something else wanted a CPU: "
          + ", ".join(f"{what} {share:.0%}" for what, share in busy.items())
          + ("; do not trust those figures" if max(busy.values()) > 0.2 else ""))


def verdict_table(found: list[Verdict]) -> None:
    print("\nbudgets (design, section 12)")
    for verdict in found:
        print(f"  {'met    ' if verdict.met else 'NOT MET'}  {verdict.budget:<68} {verdict.figure}")
