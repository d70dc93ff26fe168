#!/usr/bin/env python3
"""What can't be done is refused with a message that names it, and leaves nothing behind."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess

from harness import (
    HUTCH,
    NOBODY,
    PAYLOAD,
    case,
    check,
    contains,
    environment,
    equal,
    folder,
    main,
    make_root,
    payload,
    payload_root,
    payload_words,
    portion,
    run,
    state,
)


def refused(what: str, *words: str, names: tuple[str, ...] = (), **more: object) -> None:
    """hutch run WORDS... is a 125, says so on stderr, in one line, with these words."""
    result = run(*words, **more)
    equal(f"{what}: status", (result.status, result.out), (125, b""))
    check(result.err.startswith("hutch: ") and result.err.count("\n") == 1, f"{what}: stderr {result.err!r}")
    contains(f"{what}: message", result.err, *names)


@case
def unknown_options() -> None:
    "an unknown option is named, with what was perhaps meant"
    refused("a slip", "--memroy", "1G", "--", "true", names=("unknown option --memroy", "did you mean --memory?"))
    refused("a slip with a value", "--timout=5s", "--", "true", names=("--timout", "did you mean --timeout?"))
    refused("nothing near", "--frobnicate", "--", "true", names=("--frobnicate", "'hutch run --help' lists them"))
    refused("a single dash", "-x", "--", "true", names=("unknown option -x",))
    refused("a very long one", "--" + "x" * 5000, "--", "true", names=("unknown option --xxx",))


@case
def missing_words() -> None:
    "no command, an empty one, an option without its value or with one it does not take"
    refused("nothing", names=("no command", "usage: hutch run [options] -- COMMAND"))
    refused("only options", "--memory", "64M", "--", names=("no command",))
    refused("an empty word", "--", "", names=("the command is an empty word",))
    refused("no value", "--memory", names=("--memory needs a value: --memory SIZE",))
    refused("a value too many", "--json=yes", "--", "true", names=("--json takes no value",))


@case
def verbs() -> None:
    "an unknown verb, and none at all"
    for words, message in (
        ([], "hutch: no verb; 'hutch help' lists them\n"),
        (["rnu"], "hutch: unknown verb 'rnu'; 'hutch help' lists them\n"),
    ):
        result = subprocess.run([HUTCH, *words], capture_output=True, env=environment(), timeout=20, check=False)
        equal(f"{words}", (result.returncode, result.stdout, result.stderr.decode()), (125, b"", message))


@case
def impossible_sizes() -> None:
    "sizes: 0, negative, huge, with a wrong letter, empty"
    for option in ("--memory", "--disk", "--file-size"):
        for value in (
            "0",
            "-1",
            "1e30",
            "12X",
            "",
            " 1G",
            "1G ",
            "0x10",
            "1.5G",
            "99999999999999999999",
            "16777216T",
            "9223372036854775808",
            "nan",
        ):
            refused(
                f"{option} {value!r}",
                option,
                value,
                "--",
                "true",
                names=(f"{option}: '{value}' is not a size such as 64M or 2G",),
            )


@case
def impossible_counts() -> None:
    "counts, CPUs, times and users that can't be"
    for option in ("--processes", "--open-files"):
        for value in ("0", "-1", "1e30", "12X", "", "1.5", "4294967296"):
            refused(f"{option} {value!r}", option, value, "--", "true", names=(f"{option}: '{value}' is not ",))
    for value in ("0", "-1", "1e30", "12X", "", "0.0000", "4294968", "inf"):
        refused(
            f"--cpus {value!r}", "--cpus", value, "--", "true", names=(f"--cpus: '{value}' is not a number of CPUs",)
        )
    for value in ("0", "-1", "1e30", "12X", "", "0ms", "0.0001s", "99999999h", "5 s"):
        refused(
            f"--timeout {value!r}", "--timeout", value, "--", "true", names=(f"--timeout: '{value}' is not a duration",)
        )
    for value in ("-1", "65536", "4294967296", "", "nobody2", "0x0", "ROOT"):
        refused(
            f"--user {value!r}", "--user", value, "--", "true", names=(f"--user: '{value}' is not root, nobody or",)
        )


@case
def impossible_together() -> None:
    "values that are possible alone but not here"
    refused("less memory than anything needs", "--memory", "1M", "--", "true", names=("memory must be at least 2 MiB",))
    refused("a disk without a page", "--disk", "1", "--", "true", names=("the disk must be at least 64 KiB",))
    refused("too small an image", "--memory", "1M", "--disk", "600K", "--", "true", names=("--disk", "at least 1M"))
    refused("too large an image", "--disk", "9T", "--", "true", names=("1 MiB to 8 TiB",))
    refused("a crumb of CPU", "--cpus", "0.001", "--", "true", names=("CPUs must be 0.01 to 4096",))
    refused("too many processes", "--processes", "4000000000", "--", "true", names=("processes must be 1 to 1048576",))
    refused("a writable host", "--rw-root", "--", "true", names=("--rw-root needs --root",))
    refused("a filter", "--filter", "none", "--", "true", names=("--filter: 'none' is not tight or standard",))
    refused("an empty name", "--env", "=x", "--", "true", names=("--env: '=x' is not NAME=value",))
    refused("no name", "--env", "", "--", "true", names=("--env: '' is not NAME=value",))
    refused("a relative folder", "--workdir", "tmp", "--", "true", names=("--workdir: 'tmp' is not an absolute path",))
    refused("too many variables", *["--env=A=1"] * 257, "--", "true", names=("--env: at most 256",))
    refused("too many folders", *["--dir=/var/tmp"] * 17, "--", "true", names=("--dir: at most 16 folders",))


@case
def templates() -> None:
    "a template that is not there, a root folder that is missing, a file, or behind a symlink"
    place = folder("roots")
    (place / "file").write_text("x")
    (place / "link").symlink_to(payload_root())
    refused(
        "template", "--template", "debian", "--", "true", names=("--template: there is no template 'debian'", "host")
    )
    refused(
        "missing", "--root", str(place / "no"), "--", "true", names=("--root: opening the folder", "/no: No such file")
    )
    refused("empty", "--root", "", "--", "true", names=("--root",))
    refused("a file", "--root", str(place / "file"), "--", "true", names=("--root", "/file: Not a directory"))
    refused(
        "a symlink",
        "--root",
        str(place / "link"),
        "--",
        "true",
        names=("--root", "/link contains a symlink", f"give {payload_root()}"),
    )


@case
def roots_without_folders() -> None:
    "a root folder that lacks one of the needed folders"
    for missing in ("dev", "proc", "run", "tmp"):
        root = make_root("lacking")
        (root / missing).rmdir()
        refused(
            missing,
            "--root",
            str(root),
            "--",
            "/payload",
            "exit",
            "0",
            names=("step template", f"the root folder has no /{missing}; make it an empty folder"),
        )
        check(not (root / missing).exists(), f"{missing} was made")
        (root / missing).write_text("x")
        refused(
            f"{missing} is a file",
            "--root",
            str(root),
            "--",
            "/payload",
            "exit",
            "0",
            names=("step template", f"/{missing} in the root folder", "Not a directory"),
        )


@case
def roots_with_symlinks() -> None:
    "a root folder with a symlink where a mount goes, to / and to elsewhere (CVE-2021-30465, CVE-2026-47766)"
    elsewhere = folder("elsewhere")
    for name in (
        "dev",
        "proc",
        "run",
        "tmp",
        "workspace",
        "home",
        "home/sandbox",
        "mnt",
        "mnt/user-data",
        "mnt/user-data/outputs",
    ):
        for target in ("/", str(elsewhere), "..", ".", "tmp", "/proc/self/root"):
            root = make_root("linked")
            shutil.rmtree(root / name, ignore_errors=True)
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(target)
            refused(
                f"{name} -> {target}",
                "--root",
                str(root),
                "--",
                "/payload",
                "exit",
                "0",
                names=("step template", f"/{name} in the root folder is or lies behind a symlink"),
            )
    equal("elsewhere is untouched", os.listdir(elsewhere), [])


@case
def hostile_root_entries() -> None:
    "a root folder with FIFOs and sockets where folders are needed does not make Hutch wait"
    root = make_root("fifo")
    for name in ("dev", "workspace"):
        if (root / name).exists():
            (root / name).rmdir()
        os.mkfifo(root / name)
        refused(
            name, "--root", str(root), "--", "/payload", "exit", "0", names=(f"/{name} in the root folder",), seconds=10
        )
        (root / name).unlink()
        (root / name).mkdir()


@case
def commands() -> None:
    "a command that is missing, a folder, not executable, without its interpreter, or junk"
    root = make_root("commands")
    (root / "folder").mkdir()
    (root / "plain").write_text("#!/payload\n")
    (root / "plain").chmod(0o644)
    for name, text in (("orphan", "#!/no/such/interpreter\n"), ("junk", "\0\1\2\3"), ("empty", "")):
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    for command, status, why in (
        ("/missing", 127, "no such file in the sandbox"),
        ("missing", 127, "not found"),
        ("/plain/below", 127, "Not a directory"),
        ("/orphan", 127, "no interpreter for it"),
        ("/folder", 126, "Permission denied"),
        ("/plain", 126, "Permission denied"),
        ("/junk", 126, "Exec format error"),
        ("/empty", 126, "Exec format error"),
    ):
        result = run("--root", str(root), "--", command)
        equal(f"{command}: status", (result.status, result.out), (status, b""))
        contains(f"{command}: message", result.err, f"hutch: {command}: ", why)


@case
def state_folders() -> None:
    "a state folder of the wrong owner or mode, a file, a symlink, or below something missing"
    place = folder("states")
    for name in ("other", "open", "real"):
        (place / name).mkdir(mode=0o700)
    os.chown(place / "other", NOBODY, NOBODY)
    (place / "open").chmod(0o755)
    (place / "file").write_text("x")
    (place / "link").symlink_to("real")
    for name, words in (
        ("other", "must be root's alone: chown root:root"),
        ("open", "chmod 0700"),
        ("file", "Not a directory"),
        ("link", "opening the state folder"),
        ("no/such", "making the state folder"),
    ):
        refused(name, "--state", str(place / name), "--", "true", names=(str(place / name), words))
    equal("nothing was written", [os.listdir(place / name) for name in ("other", "open", "real")], [[], [], []])
    refused("empty", "--state", "", "--", "true", names=("state folder",))


@case
def host_folders() -> None:
    "--dir: missing, a file, a symlink, behind one, and without a name"
    place = folder("dirs")
    (place / "real" / "below").mkdir(parents=True)
    (place / "file").write_text("x")
    (place / "link").symlink_to("real")
    for name, words in (
        ("no", "No such file"),
        ("file", "Not a directory"),
        ("link", "contains a symlink"),
        ("link/below", f"contains a symlink; if that is meant, give {place}/real/below"),
    ):
        refused(name, "--dir", str(place / name), "--", "true", names=("--dir: ", str(place / name), words))
    refused("empty", "--dir", "", "--", "true", names=("--dir: '' is not HOST[:GUEST][:ro|rw]",))
    refused("no host", "--dir", ":/workspace", "--", "true", names=("is not HOST[:GUEST][:ro|rw]",))


@case
def guest_paths() -> None:
    "--dir: a place inside that can't be one"
    place = folder("guests")
    for guest in (
        "/",
        "workspace",
        "/proc",
        "/proc/sys",
        "/dev",
        "/dev/shm",
        "/a/../b",
        "/a/./b",
        "/a//b",
        "/a/",
        "..",
        "/..",
        "/" + "x" * 256,
    ):
        refused(
            guest[:20],
            "--dir",
            f"{place}:{guest}",
            "--",
            "true",
            names=("--dir: ", guest[:100], "must be an absolute path inside the sandbox without a colon, not /, /proc or /dev"),
        )
    refused(
        "where /usr is mounted", "--dir", f"{place}:/usr/no-such-place", "--", "true", names=("/usr/no-such-place",)
    )
    refused("a symlink of the template", "--dir", f"{place}:/bin", "--", "true", names=("bin",))
    refused("below a symlink", "--dir", f"{place}:/var/run/x", "--", "true", names=("var/run",))
    refused("a file", "--dir", f"{place}:/etc/passwd", "--", "true", names=("etc/passwd",))
    equal("the folder is untouched", os.listdir(place), [])


@case
def reasons_under_load() -> None:
    "the reason of a failed creation is told every time, also when the machine is busy"
    place = folder("busy")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        runs = [pool.submit(run, "--dir", f"{place}:/usr/nowhere", "--", "true") for _ in range(portion(600))]
    answers = {(future.result().status, future.result().err) for future in runs}
    equal(
        "answers",
        answers,
        {
            (
                125,
                "hutch: failed while attaching the host folders (step attach): /usr/nowhere: "
                "No such file or directory\n",
            )
        },
    )


@case
def root_with_links_for_guests() -> None:
    "--dir at a place that is a symlink in the root folder goes nowhere"
    root = make_root("guest-links")
    (root / "data").symlink_to("/tmp")
    place = folder("guest-linked")
    for guest in ("/data", "/data/below"):
        refused(guest, "--root", str(root), "--dir", f"{place}:{guest}", "--", "/payload", "exit", "0", names=("data",))


@case
def not_idmappable() -> None:
    "--dir and --root on a file system that can't map ids fail with what to do"
    refused("proc", "--dir", "/proc/sys:/workspace", "--", "true", names=("idmapped", "use one on ext4, xfs or btrfs"))


@case
def without_init() -> None:
    "hutch without hutch-init beside it says where it looked"
    program = folder("lonely") / "hutch"
    shutil.copy(HUTCH, program)
    result = subprocess.run(
        [program, "run", "--", "true"], capture_output=True, env=environment(), timeout=20, check=False
    )
    equal("status", result.returncode, 125)
    contains("message", result.stderr.decode(), "opening hutch-init beside this program or in ")


@case
def broken_init() -> None:
    "a hutch-init that can't be executed, or ends at once, is told as such and soon"
    place = folder("broken")
    shutil.copy(HUTCH, place / "hutch")
    for what, source, mode in (("junk", "/etc/passwd", 0o755), ("another program", PAYLOAD, 0o755)):
        shutil.copy(source, place / "hutch-init")
        (place / "hutch-init").chmod(mode)
        result = subprocess.run(
            [place / "hutch", "run", *payload_words("exit", "0")],
            capture_output=True,
            timeout=20,
            env=environment(),
            check=False,
        )
        equal(f"{what}: status", (result.returncode, result.stdout), (125, b""))
        check(result.stderr.startswith(b"hutch: "), f"{what}: stderr {result.stderr!r}")
        contains(f"{what}: message", result.stderr.decode(), "init" if what == "junk" else "sandbox ended")


@case
def private_init() -> None:
    "programs built with umask 077 work, or hutch says what is wrong with them"
    place = folder("private")
    for name in ("hutch", "hutch-init"):
        shutil.copy(pathlib.Path(HUTCH).with_name(name), place / name)
        (place / name).chmod(0o700)
    command = [place / "hutch", "run", *payload_words("exit", "6")]
    result = subprocess.run(command, capture_output=True, timeout=20, env=environment(), check=False)
    if result.returncode != 6:
        equal("status", result.returncode, 125)
        contains("message", result.stderr.decode(), "starting init", "Permission denied")


@case
def state_is_clean() -> None:
    "after all of that the state folder holds one layer and nothing else, and a run works"
    equal("works", payload("exit", "0").status, 0)
    run("--", "true")
    equal("state", [os.listdir(state()), len(os.listdir(os.path.join(state(), "layers")))], [["layers"], 1])


if __name__ == "__main__":
    main()
