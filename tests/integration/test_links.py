#!/usr/bin/env python3
"""hutch, hutchd, hutch-init and hutch-attack hold what the design's table allows and nothing else: ldd, readelf, nm and the link maps."""

import pathlib
import re
import subprocess

from harness import BUILD, HUTCH, SANITIZED, Skipped, case, check, equal, main

PROGRAMS = {
    "hutch": HUTCH,
    **{name: str(pathlib.Path(HUTCH).with_name(name)) for name in ("hutchd", "hutch-init", "hutch-attack")},
}
LIBRARIES = {
    "hutch": {"base", "wire", "keeper", "cli"},
    "hutchd": {"base", "wire", "keeper"},
    "hutch-init": {"base", "wire", "init"},
    "hutch-attack": {"base", "attack"},
}
OBJECTS = {"hutch": "main.c.o", "hutchd": "hutchd.c.o", "hutch-init": "init.c.o", "hutch-attack": "main.c.o"}
LIBC = {"libc.a", "libgcc.a", "libgcc_eh.a"}
START_FILES = {"rcrt1.o", "crti.o", "crtbeginS.o", "crtendS.o", "crtn.o"}
# Who may use whom: each library, and those below it.
BELOW = {
    "base": set(),
    "wire": {"base"},
    "keeper": {"base", "wire"},
    "init": {"base", "wire"},
    "cli": {"base", "wire", "keeper"},
    "attack": {"base"},
    "gateway-config": {"base", "wire"},
    "gateway-handover": {"base", "wire", "gateway-config"},
    "gateway-http": {"base"},
    "airlock": {"base", "gateway-http"},
}


def output_of(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def released_only() -> None:
    if SANITIZED:
        raise Skipped("asan build")


def linked_files(program: str) -> tuple[set[str], set[str]]:
    """Archives of which a member was taken, and objects given by name, as the map tells."""
    text = (BUILD / f"{program}.map").read_text(encoding="utf-8")
    members = set(re.findall(r"^(\S+\.a)\(\S+\)", text, re.MULTILINE))
    loaded = re.findall(r"^LOAD (\S+)", text, re.MULTILINE)
    members |= {re.match(r"(.*\.a)\(", name)[1] for name in loaded if ".a(" in name}
    return {pathlib.Path(name).name for name in members}, {
        pathlib.Path(name).name for name in loaded if name.endswith((".o", ".so"))
    }


@case
def static() -> None:
    "all programs are static: no interpreter, no library, for ldd and readelf alike"
    released_only()
    for name, path in PROGRAMS.items():
        check(
            "statically linked" in output_of("ldd", path) or "not a dynamic executable" in output_of("ldd", path),
            f"{name}: ldd",
        )
        check("INTERP" not in output_of("readelf", "-lW", path), f"{name} has an interpreter")
        dynamic = output_of("readelf", "-dW", path)
        for tag in ("NEEDED", "RPATH", "RUNPATH", "TEXTREL"):
            check(f"({tag})" not in dynamic, f"{name} has {tag}")


@case
def archives() -> None:
    "the link maps name only our own libraries that are allowed, libc and libgcc"
    released_only()
    for name in PROGRAMS:
        members, objects = linked_files(name)
        ours = {f"lib{library}-musl.a" for library in LIBRARIES[name]}
        equal(f"{name}: foreign archives", members - ours - LIBC, set())
        equal(f"{name}: its own archives", members & ours, ours)
        check("libc.a" in members, f"{name}: the map shows no libc")
        equal(f"{name}: objects", objects, {OBJECTS[name], *START_FILES})


def symbols(library: str, *, defined: bool) -> set[str]:
    lines = output_of(
        "nm", "-g", "-P", "--defined-only" if defined else "-u", str(BUILD / f"lib{library}.a")
    ).splitlines()
    return {line.split()[0] for line in lines if len(line.split()) >= 2}


@case
def directions() -> None:
    "dependencies point one way: base <- wire <- keeper, init; cli uses keeper; attack base alone; nobody uses what is beside or above"
    defined = {library: symbols(library, defined=True) for library in BELOW}
    for library, below in BELOW.items():
        check(defined[library], f"lib{library} defines nothing")
        used = symbols(library, defined=False) - defined[library]
        for other in BELOW.keys() - below - {library}:
            equal(f"{library} uses of {other}", used & defined[other], set())
        for other in below:
            check(used & defined[other], f"{library} uses nothing of {other}: is this test blind?")


@case
def hardening() -> None:
    "PIE, full RELRO, bound at start, no executable stack, no writable code"
    for name, path in PROGRAMS.items():
        if SANITIZED and name == "hutch":
            continue
        headers = output_of("readelf", "-hlW", path)
        dynamic = output_of("readelf", "-dW", path)
        check("DYN (Position-Independent Executable file)" in headers, f"{name} is not position-independent")
        check(re.search(r"FLAGS_1.*\bNOW\b.*\bPIE\b", dynamic), f"{name}: flags {dynamic}")
        check("BIND_NOW" in dynamic, f"{name} is bound lazily")
        check("GNU_RELRO" in headers, f"{name} has no RELRO")
        segments = re.findall(r"^ {2}(\S+)(?: +0x\S+){5} ([RWE ]{3}) 0x", headers, re.MULTILINE)
        check(len([kind for kind, _ in segments if kind == "LOAD"]) >= 2, f"{name}: segments {segments}")
        equal(f"{name}: stack", [flags for kind, flags in segments if kind == "GNU_STACK"], ["RW "])
        equal(
            f"{name}: writable code",
            [flags for kind, flags in segments if kind == "LOAD" and "W" in flags and "E" in flags],
            [],
        )


@case
def sizes() -> None:
    "init is small enough to be started for every sandbox"
    size = pathlib.Path(PROGRAMS["hutch-init"]).stat().st_size
    released_only()
    check(size < 200_000, f"{size} bytes")


@case
def airlock() -> None:
    "the airlock links what the design allows it and nothing else: no database, no JSON, no YAML"
    released_only()
    dynamic = output_of("readelf", "-dW", str(pathlib.Path(HUTCH).with_name("hutch-airlock")))
    needed = set(re.findall(r"\(NEEDED\).*\[(\S+?)\.so", dynamic))
    equal("libraries", needed, {"libuv", "libcares", "libc"})
    archives, _ = linked_files("hutch-airlock")
    ours = {name.removeprefix("lib").removesuffix(".a") for name in archives if name.startswith("lib")}
    equal("archives", ours & {"keeper", "cli", "init", "gateway-net", "gateway-engine", "gateway-store"}, set())


if __name__ == "__main__":
    main()
