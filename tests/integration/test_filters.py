#!/usr/bin/env python3
"""The seccomp filters: what nobody may call, what tight and standard leave, and that everyday programs run."""

import errno
import os
import signal

from harness import case, check, contains, equal, main, payload, run

# What is refused, with ENOSYS when the command's filter does not know it and EPERM when it is refused to everybody.
NOT_THERE = (
    "clone3 clone3-user unshare-user unshare-mount setns mount remount umount pivot_root chroot fsopen open_tree "
    "mount_setattr move_mount ptrace ptrace-init process_vm_readv process_vm_writev kcmp pidfd_getfd sethostname "
    "io_uring_setup bpf userfaultfd perf_event_open keyctl add_key request_key name_to_handle_at open_by_handle_at "
    "kexec_load finit_module delete_module reboot syslog swapon acct settimeofday iopl fanotify_init"
).split()
FORBIDDEN = (
    "clone-user clone-mount clone-net clone-pid clone-ipc clone-uts clone-cgroup clone-user-high tiocsti tiocsti-high "
    "tioclinux-high tiocsetd"
).split()
SOCKETS = "packet packet-high vsock alg xdp bluetooth audit raw raw6".split()


@case
def forbidden_calls() -> None:
    "the forbidden system calls are refused to nobody and to root, with standard and with tight"
    for user in ("nobody", "root"):
        for filter_name in ("standard", "tight"):
            got = payload("attempts", options=("--user", user, "--filter", filter_name)).numbers
            tight = filter_name == "tight"
            expected = {
                **dict.fromkeys(NOT_THERE, errno.ENOSYS),
                **dict.fromkeys(FORBIDDEN, errno.EPERM),
                "tty": errno.ENXIO,
                **{f"socket-{name}": errno.ENOSYS if tight else errno.EPERM for name in SOCKETS},
                **{f"socket-{name}": errno.ENOSYS if tight else 0 for name in ("inet", "unix")},
                "mknod": errno.ENOSYS if tight else errno.EPERM,
            }
            wrong = {name: (got.get(name), value) for name, value in expected.items() if got.get(name) != value}
            equal(f"{user}, {filter_name}: wrong", wrong, {})
            equal(f"{user}, {filter_name}: not expected here", got.keys() - expected.keys(), set())


@case
def address_families() -> None:
    "of all address families only UNIX, INET, INET6 and NETLINK_ROUTE; pairs only of UNIX"
    got = payload("families").numbers
    equal(
        "allowed",
        {name for name, error in got.items() if error != errno.EPERM},
        {"socket-1", "socket-2", "socket-10", "socket-16", "netlink-0", "pair-1"},
    )
    got = payload("families", options=("--filter", "tight")).numbers
    equal("tight", {name for name, error in got.items() if error == 0}, {"pair-1"})


@case
def other_architectures() -> None:
    "i386 and x32 calls end the process, in both filters"
    for name in ("int80", "x32"):
        for filter_name in ("standard", "tight"):
            result = payload(name, options=("--filter", filter_name))
            equal(f"{name}, {filter_name}", (result.status, result.out), (128 + signal.SIGSYS, b""))


@case
def nested_user_namespaces() -> None:
    "a nested user namespace is impossible, twice over"
    for user in ("nobody", "root"):
        result = run("--user", user, "--", "unshare", "--user", "true")
        check(result.status != 0, f"{user} made one")
    equal("the kernel's own count", payload("file", "/proc/sys/user/max_user_namespaces").text, "0\n")


@case
def tight_programs() -> None:
    "with the tight filter bash, python3 with threads and node run; sockets and memfd_create are not there"
    options = ("--filter", "tight")
    equal(
        "bash",
        run(*options, "--", "bash", "-c", "for i in 1 2 3; do echo $i; done | (wc -l; cat <(echo x))").text,
        "3\nx\n",
    )
    script = (
        "import threading, subprocess\nr = []\nt = [threading.Thread(target=r.append, args=(i,)) for i in range(8)]\n"
        "[x.start() for x in t]; [x.join() for x in t]\n"
        "print(sorted(r), subprocess.run(['echo', 'x'], capture_output=True).stdout)"
    )
    equal("python3", run(*options, "--", "python3", "-c", script).text, "[0, 1, 2, 3, 4, 5, 6, 7] b'x\\n'\n")
    if os.path.exists("/usr/bin/node"):
        script = (
            "const {execSync} = require('child_process');"
            "setTimeout(() => console.log(1 + 1, String(execSync('echo hi'))), 10)"
        )
        result = run(*options, "--", "node", "-e", script)
        equal("node", (result.status, result.text), (0, "2 hi\n\n"))
    for call in ("socket.socket()", "socket.socket(socket.AF_UNIX)", "os.memfd_create('x')"):
        contains(
            call,
            run(*options, "--", "python3", "-c", f"import socket, os; {call}").err,
            "[Errno 38] Function not implemented",
        )


@case
def standard_programs() -> None:
    "with the standard filter so do sockets, memfd_create and what builds need"
    script = (
        "import os, socket, multiprocessing as m, tempfile\nos.memfd_create('x'); socket.socketpair()\n"
        "with m.Pool(2) as p: print(p.map(abs, [-1, -2]))\n"
        "print(tempfile.gettempdir(), os.getcwd(), os.path.expanduser('~'))"
    )
    equal("python3", run("--", "python3", "-c", script).text, "[1, 2]\n/tmp /workspace /home/sandbox\n")


if __name__ == "__main__":
    main()
