#!/usr/bin/env python3
"""--only: nothing is executed but the listed programs. Every attempt is made twice, and works without the list."""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess

import deprive
import harness
from harness import case, check, contains, equal, folder, main, run, state

PYTHON = os.path.realpath("/usr/bin/python3")
LOADER = "/lib64/ld-linux-x86-64.so.2"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
LIBM = "/usr/lib/x86_64-linux-gnu/libm.so.6"
WORKED = "it worked\n"
REFUSED = "refused: "

# What attempts share: say() and the C library, with the errors of its calls as Python's.
PRELUDE = f"""
import ctypes, mmap, os, shutil, subprocess, sys
PYTHON, LOADER, LIBM = {PYTHON!r}, {LOADER!r}, {LIBM!r}
SAY = 'print("it worked")'
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.shmat.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
READ, WRITE, EXEC, SHARED, PRIVATE, FIXED, ANONYMOUS = 1, 2, 4, 1, 2, 16, 32
CODE = bytes.fromhex("b82a000000c3")  # mov eax, 42; ret

def good(result):
    if result in (None, -1, 2**64 - 1):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def call(address):
    if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 42:
        print("it worked")

def copy(of=PYTHON):
    shutil.copy(of, "/tmp/copy")
    os.chmod("/tmp/copy", 0o755)
    return "/tmp/copy"

def attempt():
BODY
try:
    attempt()
except OSError as error:
    print("refused:", error.strerror or error)
"""

# Each executes something, or runs code of its own, and prints WORKED.
ATTEMPTS = {
    "an unlisted program": "os.execv('/usr/bin/printf', ['printf', 'it worked\\\\n'])",
    "an unlisted program through the loader": "os.execv(LOADER, ['x', '/usr/bin/printf', 'it worked\\\\n'])",
    "a copy of a listed program": "os.execv(copy(), ['python3', '-c', SAY])",
    "a copy through the loader": """
        result = subprocess.run([LOADER, copy(), '-c', SAY], capture_output=True, text=True)
        if result.returncode: raise OSError(result.stderr)
        print(result.stdout, end='')""",
    "a hard link to a copy": "os.link(copy(), '/tmp/link'); os.execv('/tmp/link', ['python3', '-c', SAY])",
    "an open descriptor": """
        fd = os.open(copy(), os.O_RDONLY)
        os.set_inheritable(fd, True)
        os.execv(f'/proc/self/fd/{fd}', ['python3', '-c', SAY])""",
    "fexecve": "os.execve(os.open(copy(), os.O_RDONLY), ['python3', '-c', SAY], os.environ)",
    "memfd_create and fexecve": """
        fd = os.memfd_create('x')
        os.sendfile(fd, os.open(PYTHON, os.O_RDONLY), 0, os.stat(PYTHON).st_size)
        os.execve(fd, ['python3', '-c', SAY], os.environ)""",
    "a script of an unlisted interpreter": """
        open('/tmp/script', 'w').write('#!/bin/sh\\necho it worked\\n')
        os.chmod('/tmp/script', 0o755)
        os.execv('/tmp/script', ['script'])""",
    "a script of a listed interpreter": """
        open('/tmp/script', 'w').write(f'#!{PYTHON}\\n{SAY}\\n')
        os.chmod('/tmp/script', 0o755)
        os.execv('/tmp/script', ['script'])""",
    "an unlisted shell": "subprocess.run('echo it worked', shell=True, check=True)",
    "a written library": "ctypes.CDLL(copy(LIBM)); print('it worked')",
    "LD_PRELOAD of a written library": """
        look = 'print("it worked" if any("r-xp" in x and "/tmp/copy" in x for x in open("/proc/self/maps")) else "refused: no")'
        os.execve(PYTHON, ['python3', '-c', look], {'LD_PRELOAD': copy(LIBM)})""",
    "writable and executable memory": """
        memory = good(libc.mmap(None, 4096, READ | WRITE | EXEC, PRIVATE | ANONYMOUS, -1, 0))
        ctypes.memmove(memory, CODE, len(CODE)); call(memory)""",
    "memory that is written, then executed": """
        memory = good(libc.mmap(None, 4096, READ | WRITE, PRIVATE | ANONYMOUS, -1, 0))
        ctypes.memmove(memory, CODE, len(CODE))
        good(libc.mprotect(memory, 4096, READ | EXEC)); call(memory)""",
    "the same with a protection key": """
        memory = good(libc.mmap(None, 4096, READ | WRITE, PRIVATE | ANONYMOUS, -1, 0))
        ctypes.memmove(memory, CODE, len(CODE))
        good(libc.syscall(329, ctypes.c_void_p(memory), ctypes.c_size_t(4096), READ | EXEC, -1)); call(memory)""",
    "executable memory that becomes writable and executable again": """
        memory = good(libc.mmap(None, 4096, READ | EXEC, PRIVATE, os.open(LIBM, os.O_RDONLY), 0))
        good(libc.mprotect(memory, 4096, READ | WRITE))
        ctypes.memmove(memory, CODE, len(CODE))
        good(libc.mprotect(memory, 4096, READ | EXEC)); call(memory)""",
    "code in a file that was written": """
        open('/tmp/code', 'wb').write(CODE)
        call(good(libc.mmap(None, 4096, READ | EXEC, PRIVATE, os.open('/tmp/code', os.O_RDONLY), 0)))""",
    "code in a shared mapping of a file": """
        fd = os.open('/tmp/code', os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 4096)
        memory = good(libc.mmap(None, 4096, READ | EXEC, SHARED, fd, 0))
        os.pwrite(fd, CODE, 0); call(memory)""",
    "System V shared memory": """
        memory = good(libc.shmat(good(libc.shmget(0, 4096, 0o700)), None, 0o100000))
        ctypes.memmove(memory, CODE, len(CODE)); call(memory)""",
    "a personality in which all memory is executable": """
        good(libc.personality(0x400000))
        memory = good(libc.mmap(None, 4096, READ | WRITE, PRIVATE | ANONYMOUS, -1, 0))
        ctypes.memmove(memory, CODE, len(CODE)); call(memory)""",
    "code written through /proc/self/mem": """
        function = ctypes.cast(libc.fcvt, ctypes.c_void_p).value
        with open('/proc/self/mem', 'r+b', buffering=0) as memory:
            memory.seek(function)
            memory.write(CODE)
        call(function)""",
    "code written through a thread's /proc": """
        import threading
        function = ctypes.cast(libc.fcvt, ctypes.c_void_p).value
        with open(f'/proc/self/task/{threading.get_native_id()}/mem', 'r+b', buffering=0) as memory:
            memory.seek(function)
            memory.write(CODE)
        call(function)""",
    # Not taken away, not noexec, an execute bit and a loader: Landlock alone refuses it.
    "a library that can be executed": f"""
        result = subprocess.run([{LIBC!r}], capture_output=True, text=True)
        print('it worked' if 'GNU C Library' in result.stdout else result)""",
}


def attempt(body: str, *options: str) -> harness.Outcome:
    lines = "\n".join("    " + line.removeprefix("        ") for line in body.strip("\n").splitlines())
    return run(*options, "--", "python3", "-c", PRELUDE.replace("BODY", lines))


def is_here(name: str) -> bool:
    return shutil.which(name) is not None


def listing() -> list[str]:
    """Regular files below /usr with an execute bit, as the host has them."""
    found = []
    for path, _, names in os.walk("/usr"):
        for name in names:
            status = os.lstat(f"{path}/{name}")
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o111:
                found.append(f"{path}/{name}")
    return found


@case
def listed_programs() -> None:
    "listed programs run, also by a link, an alternative or their path; the first of the list need not be the command"
    equal("ls", run("--only", "cat,ls", "--", "ls", "/usr").status, 0)
    script = "import base64, ctypes, multiprocessing, sqlite3, ssl, threading; print(multiprocessing.cpu_count() > 0)"
    equal("python3", run("--only", "python3", "--", "python3", "-c", script).text, "True\n")
    script = (
        "import os; os.makedirs('a/b'); open('a/b/f', 'w').close(); os.rename('a/b/f', 'a/f'); os.link('a/f', 'a/b/g');"
        "os.rename('a/b/g', '/workspace/g'); print(sorted(os.listdir('.')))"
    )
    equal("renaming", run("--only", "python3", "--", "python3", "-c", script).text, "['a', 'g']\n")
    equal("by path", run("--only", PYTHON, "--", "python3", "-c", "print(1)").text, "1\n")
    equal("awk", run("--only", "awk", "--", "awk", "BEGIN { print 3 }").text, "3\n")
    equal("bash", run("--only", "bash,cat", "--", "bash", "-c", "echo a | cat; cat <<< b").text, "a\nb\n")
    equal("user root", run("--only", "cat", "--user", "root", "--", "cat", "/proc/self/comm").text, "cat\n")
    equal("tight", run("--only", "cat", "--filter", "tight", "--", "cat", "/proc/self/comm").text, "cat\n")


@case
def unlisted_command() -> None:
    "the command itself must be listed"
    for command, status in (("id", 127), ("/usr/bin/id", 127), ("/usr/lib/x86_64-linux-gnu/libc.so.6", 126)):
        result = run("--only", "ls", "--", command)
        equal(f"{command}: status", result.status, status)
        contains(f"{command}: message", result.err, f"hutch: {command}: ", "--only")


def try_twice(what: str, body: str) -> None:
    worked = attempt(body)
    equal(f"{what}, without a list", (worked.text, worked.status), (WORKED, 0))
    for user in ("nobody", "root"):
        refused = attempt(body, "--user", user, "--only", "python3")
        check(WORKED not in refused.text, f"{what}, {user}: it worked")
        # An error, not a crash: it is the attempt that failed.
        said = refused.text.startswith(REFUSED) or 0 < refused.status < 128 and "No such file" in refused.err
        check(said, f"{what}, {user}: {refused.status}, {refused.text!r}, {refused.err[-300:]!r}")


def add_attempts() -> None:
    for what, body in ATTEMPTS.items():

        def function(what: str = what, body: str = body) -> None:
            try_twice(what, body)

        function.__name__ = re.sub(r"\W+", "_", what.lower())
        function.__doc__ = f"refused with a list and works without: {what}"
        case(function)


add_attempts()


@case
def perl_calls() -> None:
    "perl, listed, makes the system calls itself: execve, memfd_create, writable and executable memory"
    calls = {
        "execve": (59, "$path, $none, $none"),
        "memfd_create": (319, "$path, 0"),
        "mmap": (9, "0, 4096, 7, 34, -1, 0"),
    }
    for name, (number, arguments) in calls.items():
        before = '$path = "/usr/bin/true"; $none = pack("Q", 0);'
        words = ["--", "perl", "-e", f"{before} exit(syscall({number}, {arguments}) == -1 ? 7 : 0)"]
        equal(f"{name}, without a list", run(*words).status, 0)
        equal(name, run("--only", "perl", *words).status, 7)


@case
def host_folders() -> None:
    "programs in a host folder, read-only or not, can't be executed, nor loaded by the loader"
    programs = folder("programs")
    shutil.copy("/usr/bin/printf", programs / "printf")
    for mode in ("ro", "rw"):
        for start in ([], [LOADER]):
            script = f"import os; os.execv({[*start, '/d/printf'][0]!r}, {[*start, '/d/printf', 'it worked']!r})"
            words = ["--dir", f"{programs}:/d:{mode}", "--", "python3", "-c", script]
            equal(f"{mode}, without a list", run(*words).text, "it worked")
            result = run("--only", "python3", *words)
            check(result.status != 0 and not result.out, f"{mode}, {start}: {result}")


@case
def taken_away() -> None:
    "of all programs in /usr only the listed are there; libraries and modules stay"
    script = "import os, sys\nfor path in sys.stdin.read().splitlines():\n  if os.path.lexists(path): print(path)"
    before = listing()
    left = run("--only", "python3", "--", "python3", "-c", script, stdin="\n".join(before).encode()).lines
    check(len(before) > 300, f"programs on this machine: {len(before)}")
    check(PYTHON in left and LIBC in left, "the listed program or the C library is not there")
    magic = {path: pathlib.Path(path).read_bytes()[:4] for path in left if path != PYTHON}
    strange = [path for path, start in magic.items() if start == b"\x7fELF" and ".so" not in os.path.basename(path)]
    equal("ELF files that are no libraries", strange, [])
    scripts = [path for path, start in magic.items() if start[:2] == b"#!" and "." not in os.path.basename(path)]
    equal("scripts that are no modules", scripts, [])
    names = run("--only", "ls", "--", "ls", "/usr/bin").lines
    check("id" not in names and "ls" in names, "the folder still lists what is not there")


@case
def noexec_mounts() -> None:
    "every mount but /usr is noexec, /usr is read-only, and so is /proc"
    for options in ((), ("--disk", "400M", "--memory", "512M"), ("--dir", f"{folder('shown')}:/srv/d")):
        mounts = [line.split() for line in run("--only", "cat", *options, "--", "cat", "/proc/self/mounts").lines]
        check(len(mounts) > 10, f"mounts: {mounts}")
        equal("without noexec", [m[1] for m in mounts if "noexec" not in m[3].split(",")], ["/usr"])
        flags = {m[1]: m[3].split(",") for m in mounts}
        check("ro" in flags["/usr"] and "ro" in flags["/proc"], f"flags: {flags['/usr']}, {flags['/proc']}")
    check("rw" in run("--", "grep", " /proc proc", "/proc/self/mounts").text.split()[3], "without a list it is writable")


@case
def out_of_memory() -> None:
    "a command is still the first to go when memory runs out"
    equal("score", run("--only", "cat", "--", "cat", "/proc/self/oom_score_adj").text, "800\n")
    result = run("--only", "python3", "--memory", "64M", "--", "python3", "-c", "x = bytearray(200 << 20)")
    equal("status", result.status, 137)
    contains("message", result.err, "the memory limit of 64 MiB")


@case
def scripts() -> None:
    "a listed script needs its interpreter listed, and runs then"
    name = next((n for n in ("ldd", "which", "zcat", "gzexe") if is_here(n) and is_script(n)), None)
    if name is None:
        raise harness.Skipped("no script of sh or bash is here")
    interpreter = pathlib.Path(shutil.which(name)).read_bytes().splitlines()[0][2:].decode().split()[0]
    result = run("--only", name, "--", name, "--help")
    equal("status", result.status, 125)
    contains("message", result.err, f"'{name}' is a script for {interpreter}: list that too")
    result = run("--only", f"{name},{os.path.basename(interpreter)}", "--", name, "--help")
    check(result.status in (0, 1, 2) and "refused" not in result.err, f"{name}: {result}")


def is_script(name: str) -> bool:
    start = pathlib.Path(shutil.which(name)).read_bytes()[:64]
    return start.startswith((b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/sh", b"#!/usr/bin/bash"))


@case
def wrong_lists() -> None:
    "a list that can't be is an error that says why, and nothing runs"
    for value, why in {
        "pyhton3": "there is no program 'pyhton3'; did you mean python3?",
        "ls,no-such-program-at-all": "there is no program 'no-such-program-at-all'",
        "/usr/bin/no-such": "there is no program /usr/bin/no-such",
        "/etc/passwd": "'/etc/passwd' is neither the name of a program nor a plain path below /usr",
        "../bin/ls": "'../bin/ls' is neither",
        "/usr/../bin/ls": "'/usr/../bin/ls' is neither",
        "..": "'..' is neither",
        LIBC: "is neither a program for this machine nor a script",
        "/usr/share": "/usr/share can't be executed",
        "/usr/lib/os-release": "can't be executed",
        "": "'' is not a list of programs",
        "ls,": "is not a list of programs",
        ",".join(["ls"] * 129): "at most 128 programs",
        ",".join(f"{'x' * 100}{i}" for i in range(100)): "the list is too long",
    }.items():
        result = run("--only", value, "--", "ls")
        equal(f"{value[:40]}: status, output", (result.status, result.out), (125, b""))
        contains(value[:40], result.err, why)
    contains("with --root", run("--only", "ls", "--root", "/", "--", "ls").err, "--only works with template host")
    contains("twice", run("--only", "ls", "--only", "cat", "--", "ls").err, "give one list")
    told = json.loads(run("--json", "--only", "pyhton3", "--", "ls").out)
    equal("json", (told["error"]["code"], told["error"]["step"]), ("invalid", "request"))


@case
def just_in_time() -> None:
    "node runs with --jitless, and without it the reason is told"
    if not is_here("node"):
        raise harness.Skipped("no node is here")
    equal("jitless", run("--only", "node", "--", "node", "--jitless", "-e", "console.log(1)").text, "1\n")
    result = run("--only", "node", "--", "node", "-e", "console.log(1)")
    check(result.status > 128, f"status {result.status}")
    contains("message", result.err, "hutch: with --only no program can make code at run time: node needs --jitless")
    check("--jitless" not in run("--only", "node", "--", "node", "--jitless", "-e", "process.exit(3)").err, "advice")


@case
def kept_layers() -> None:
    "the layer is made once per list, root's alone, and made again when /usr has changed"
    policy = pathlib.Path(state()) / "policy"
    shutil.rmtree(policy, ignore_errors=True)
    inside = """
        mount -t tmpfs tmpfs "$1" && mkdir "$1/u" "$1/w" && mount -t overlay overlay -o "lowerdir=/usr,upperdir=$1/u,workdir=$1/w" /usr
        run() { "$HUTCH" run --only python3 -- python3 -c 'import os, sys; print([os.path.lexists(p) for p in sys.argv[1:]])' "$@"; }
        set -e; run /usr/bin/id /usr/share/hutch-test; ls "$HUTCH_STATE/policy"
        run /usr/bin/id; ls "$HUTCH_STATE/policy"
        touch -d "1 minute ago" "$HUTCH_STATE/policy/usr"
        mkdir /usr/share/hutch-test; cp /usr/bin/id /usr/share/hutch-test/data; chmod 644 /usr/share/hutch-test/data
        run /usr/bin/id /usr/share/hutch-test /usr/share/hutch-test/data; ls "$HUTCH_STATE/policy"
    """
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside, "sh", str(folder("over"))],
        env={**harness.environment(), "HUTCH": harness.HUTCH},
        capture_output=True,
        text=True,
        check=False,
        timeout=200 * harness.SLOWNESS,
    )
    lines = result.stdout.splitlines()
    equal("stderr", result.stderr, "")
    equal("first", (lines[0], lines[2]), ("[False, False]", "usr"))
    equal("again: the same layer", (lines[3], lines[4:6]), ("[False]", lines[1:3]))
    equal("after a change: a program without an execute bit is gone too", lines[6], "[False, True, False]")
    check(lines[1] in lines[7:] and len(lines) == 10, f"a second layer: {lines[7:]}")
    for path in (policy, policy / lines[1]):
        status = path.stat()
        equal(f"{path.name}", (status.st_uid, stat.S_IMODE(status.st_mode)), (0, 0o700))
    whiteouts = [path for path in (policy / lines[1] / "tree").rglob("*") if path.is_char_device()]
    check(len(whiteouts) > 300, f"white-outs: {len(whiteouts)}")


@case
def damaged_layer() -> None:
    "a damaged index or layer is made again"
    policy = pathlib.Path(state()) / "policy"
    words = ("--only", "cat", "--", "cat", "/proc/self/comm")
    equal("before", run(*words).text, "cat\n")
    for damage in (b"", b"junk", (policy / "usr").read_bytes()[:1000], (policy / "usr").read_bytes()[:-1] + b"x"):
        (policy / "usr").write_bytes(damage)
        equal("index", run(*words).text, "cat\n")
    layer = max((path for path in policy.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    (layer / "list").unlink()
    equal("layer", run(*words).text, "cat\n")


@case
def no_landlock() -> None:
    "without Landlock nothing runs"
    for error, words in ((38, "Function not implemented"), (95, "ot supported")):
        result = run("--only", "ls", "--", "ls", preexec_fn=deprive.call("landlock_create_ruleset", error))
        equal("status, output", (result.status, result.out), (125, b""))
        contains("message", result.err, "this kernel has no Landlock", words)


if __name__ == "__main__":
    main()
