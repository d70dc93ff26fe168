#!/usr/bin/env python3
"""The referee of `hutch attack` is not fooled: with a hutch that makes no sandbox every attempt gets through and is told
so, and harm to host, neighbour or caller is seen whoever did it."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from harness import HUTCH, SLOWNESS, Skipped, case, check, contains, environment, equal, folder, main

# What these do outside of a sandbox is harmless: the referee itself does it there for control.
HARMLESS = """
    accounting af-packet asynchronous-io bpf chroot clock fanotify file-handles host-name io-ports io-uring
    kernel-log kernel-modules kexec keyring memory-policy mount mount-by-descriptor namespaces nested-user-namespace
    network-changes overlay-in-namespace perf-events pivot-root process-memory ptrace raw-sockets real-time reboot
    remount setns stolen-descriptors swap terminal-input unmount userfaultfd core-pattern kernel-memory
    kernel-settings proc-of-init sys copied-program linked-program loader-as-program memory-as-program
    script-as-program unlisted-program written-code written-library
""".split()

# Makes no sandbox: runs the command as root in namespaces that end with it, and talks like `hutch run --json`.
NONE = f"""#!/usr/bin/env python3
import json, os, subprocess, sys
words = sys.argv[1:]
command = words[words.index("--") + 1:]
if command[-1] == "--neighbour":
    os.execv({HUTCH!r}, [{HUTCH!r}, *words])
if command[0] != "python3":
    command[0] = words[words.index("--dir") + 1].split(":")[0] + "/hutch-attack"
env = dict(word.split("=", 1) for option, word in zip(words, words[1:]) if option == "--env")
apart = ["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--cgroup", "--mount-proc"]
done = subprocess.run([*apart, "sh", "-c", '"$0" "$@"; exit $?', *command], env={{**os.environ, **env}},
                      capture_output=True)
print(json.dumps({{"exit_code": done.returncode, "limit": None, "stdout": done.stdout.decode(errors="replace")}},
                 separators=(",", ":")))
sys.exit(done.returncode)
"""

# Does this, and then what it should.
FIRST = """#!/bin/sh
for word in "$@"; do
    case "$word" in
        HUTCH_ATTACK_FILE=*) file=${{word#*=}} ;;
        HUTCH_ATTACK_PID=*) pid=${{word#*=}} ;;
        --neighbour) exec {hutch} "$@" ;;
    esac
done
{deed}
exec {hutch} "$@"
"""


# A daemon of ours, but first this.
DAEMON = f"""#!/bin/sh
{{deed}}
exec {pathlib.Path(HUTCH).parent}/hutchd "$@"
"""


def attack(hutch: str, *names: str, daemon: str = "") -> tuple[int, dict[str, dict]]:
    program = folder("hutch") / "hutch"
    for path, text in ((program, hutch), (program.parent / "hutchd", daemon)):
        path.unlink(missing_ok=True)
        if text:
            path.write_text(text)
            path.chmod(0o755)
    words = [HUTCH, "attack", "--json", "--hutch", str(program), *names]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
    check(done.stdout, f"nothing was told: {done.stderr}")
    return done.returncode, {told["name"]: told for told in json.loads(done.stdout)["attacks"]}


def seen(deed: str, *words: str) -> None:
    """The referee notices it, and says these words."""
    status, told = attack(FIRST.format(hutch=HUTCH, deed=deed), "io-uring")
    equal("verdict", (status, told["io-uring"]["verdict"]), (1, "through"))
    contains("detail", told["io-uring"]["detail"], *words)


@case
def no_sandbox() -> None:
    "without a sandbox every attempt gets through, as far as this kernel has what it attacks"
    status, told = attack(NONE, *HARMLESS)
    equal("status", status, 1)
    equal("names", set(told), set(HARMLESS))
    for name, ruling in told.items():
        check(ruling["verdict"] in ("through", "absent"), f"{name} is {ruling['verdict']}")
    through = [name for name, ruling in told.items() if ruling["verdict"] == "through"]
    check(len(through) > len(HARMLESS) * 3 / 4, f"only these got through: {through}")


@case
def changed_file() -> None:
    "a change to a file of the host's is seen"
    seen('chmod 600 "$file"', "on the host", "secret")


@case
def new_file() -> None:
    "a file that was made on the host is seen"
    seen('echo > "$file.new"', "on the host", "canary")


@case
def signalled() -> None:
    "a signal to a process of the host's is seen"
    # One that comes before the other was taken only takes it back.
    taken = 'until grep -q "^State:.T" "/proc/$pid/status"; do sleep 0.01; done'
    seen(f'kill -STOP "$pid"; {taken}; kill -CONT "$pid"', "a process of the host's was")


@case
def left_behind() -> None:
    "a process that is left behind is seen"
    if SLOWNESS > 1:
        return
    seen("setsid sleep 25 > /dev/null 2>&1 &", "left behind")


@case
def no_answer() -> None:
    "what could not be tried is not called refused"
    for deed, verdict in (("exit 125", "untried"), ("exit 3", "untried"), ("echo; exit 0", "untried")):
        status, told = attack(FIRST.format(hutch=HUTCH, deed=deed), "io-uring")
        equal(deed, (status, told["io-uring"]["verdict"]), (1, verdict))


HONEST = FIRST.format(hutch=HUTCH, deed="")


@case
def open_daemon() -> None:
    "with a daemon that asks nobody for credentials these attacks get through, and others do not"
    names = ("no-credentials", "wrong-credentials", "web-pages")
    status, told = attack(HONEST, *names, daemon=DAEMON.format(deed="export HUTCH_SERVER_AUTH=off"))
    verdicts = {name: told[name]["verdict"] for name in names}
    expected = {"no-credentials": "through", "wrong-credentials": "through", "web-pages": "refused"}
    equal("verdicts", (status, verdicts), (1, expected))


@case
def forged_log() -> None:
    "a line in the daemon's log that it did not write is seen"
    deed = "(for i in $(seq 300); do echo forged; sleep 0.01; done) &"
    status, told = attack(HONEST, "path-tricks", daemon=DAEMON.format(deed=deed))
    equal("verdict", (status, told["path-tricks"]["verdict"]), (1, "through"))
    contains("detail", told["path-tricks"]["detail"], "a line of its log is not its own")


@case
def ended_daemon() -> None:
    "a gateway that ends is seen, and the next attack has a daemon all the same"
    if SLOWNESS > 1:
        raise Skipped("on a slow machine the attack may be over before the gateway is")
    deed = """(until p=$(cat /proc/$$/task/$$/children | tr ' ' '\\n' | while read c; do
        grep -qz -e --serve /proc/$c/cmdline && echo $c; done) && [ -n "$p" ]; do sleep 0.05; done
        sleep 1; kill -9 $p) 2> /dev/null &"""
    status, told = attack(HONEST, "slow-headers", "web-pages", daemon=DAEMON.format(deed=deed))
    equal("status", status, 1)
    equal("verdict", told["slow-headers"]["verdict"], "through")
    contains("detail", told["slow-headers"]["detail"], "the daemon")


@case
def no_daemon() -> None:
    "where there is no daemon, or none that starts, that is said by name"
    status, told = attack(HONEST, "path-tricks")
    equal("none", (status, told["path-tricks"]["verdict"]), (0, "absent"))
    contains("detail", told["path-tricks"]["detail"], "there is no hutchd beside")
    status, told = attack(HONEST, "path-tricks", "web-pages", daemon="#!/bin/sh\necho no such luck >&2; exit 3\n")
    for name in ("path-tricks", "web-pages"):
        equal(name, (status, told[name]["verdict"]), (1, "untried"))
        contains("detail", told[name]["detail"], "no such luck")


@case
def bad_words() -> None:
    "names and options that there are not are told, with the nearest that there is; nothing is attacked"
    for words, part in (
        (("io-urin",), "did you mean io-uring?"),
        (("--jso",), "did you mean --json?"),
        (("nonsense-of-all-kinds",), "--list"),
        (("--hutch",), "--hutch needs a value"),
        (("--json=1",), "takes no value"),
    ):
        done = subprocess.run([HUTCH, "attack", *words], capture_output=True, text=True, env=environment(), check=False)
        equal(f"{words}: status", (done.returncode, done.stdout), (125, ""))
        contains(f"{words}: message", done.stderr, "hutch: ", part)


@case
def listed() -> None:
    "--list names every attack that there is a file of, once"
    done = subprocess.run([HUTCH, "attack", "--list"], capture_output=True, text=True, env=environment(), check=False)
    names = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    equal("status", (done.returncode, len(names)), (0, len(set(names))))
    source = pathlib.Path(__file__).resolve().parents[2] / "src/attack"
    if source.is_dir():
        files = [path.stem.replace("_", "-") for path in source.glob("*/*.c")]
        equal("files", sorted(names), sorted(files))


if __name__ == "__main__":
    main()
