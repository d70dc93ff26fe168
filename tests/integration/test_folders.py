#!/usr/bin/env python3
"""Folders: the host's in a sandbox (--dir), and root folders (--root, --rw-root)."""

import errno
import os
import pathlib

from harness import (
    NOBODY,
    Outcome,
    case,
    check,
    environment,
    equal,
    folder,
    main,
    make_root,
    payload,
    place,
    run,
    status_of,
)


@case
def set_id_bits() -> None:
    "set-id bits are refused where a host folder is writable, in every way to set one, and only there"
    shared = folder("set-id")
    for user in ("nobody", "root"):
        got = payload("set-id", "/workspace", options=("--user", user, "--dir", str(shared))).numbers
        equal(f"{user}: a plain file", got.pop("plain"), 0)
        equal(
            f"{user}: allowed",
            {name: error for name, error in got.items() if error not in (errno.EPERM, errno.ENOSYS)},
            {},
        )
        got = payload("set-id", "/tmp", options=("--user", user, "--dir", str(shared))).numbers
        check(got["chmod"] == errno.EPERM, "a file that could be moved there got one")
        equal("on the host", [path.name for path in shared.iterdir() if path.stat().st_mode & 0o6000], [])
    for options in ((), ("--dir", f"{shared}:/data:ro")):
        got = payload("set-id", "/tmp", options=options).numbers
        equal(
            f"with {options}",
            {name: got[name] for name in ("chmod", "fchmod", "openat", "creat")},
            {"chmod": 0, "fchmod": 0, "openat": 0, "creat": 0},
        )


@case
def host_folder_owner() -> None:
    "files made in a host folder belong to the caller, or to who called sudo"
    for user in ("nobody", "root", "1000"):
        for uid, gid, more in ((0, 0, {}), (1234, 2345, {"SUDO_UID": "1234", "SUDO_GID": "2345"})):
            shared = folder("owned")
            os.chown(shared, uid, gid)
            result = run(
                "--user",
                user,
                "--dir",
                str(shared),
                "--",
                "sh",
                "-c",
                "echo hi > file && mkdir sub && echo x > sub/y; " "stat -c %u:%g file",
                env=environment(**more),
            )
            inner = {"nobody": NOBODY, "root": 0, "1000": 1000}[user]
            equal(f"{user}, {uid}: inside", (result.status, result.text), (0, f"{inner}:{inner}\n"))
            for name in ("file", "sub", "sub/y"):
                got = (shared / name).stat()
                equal(f"{user}, {uid}: {name}", (got.st_uid, got.st_gid), (uid, gid))


@case
def host_folder_others() -> None:
    "in a host folder others' private files stay private, and nothing can be given away"
    shared = folder("others")
    (shared / "private").write_text("secret")
    (shared / "private").chmod(0o600)
    os.chown(shared / "private", 4321, 4321)
    (shared / "mine").write_text("mine")
    for user in ("nobody", "root"):
        result = run(
            "--user",
            user,
            "--dir",
            str(shared),
            "--",
            "sh",
            "-c",
            "cat private; chown 5:5 mine; chmod 777 private; cat mine",
        )
        equal(f"{user}: output", result.out, b"mine")
        equal(f"{user}: refusals", len(result.err.splitlines()), 3)
    equal(
        "on the host",
        [(path.stat().st_uid, oct(path.stat().st_mode & 0o7777)) for path in (shared / "private", shared / "mine")],
        [(4321, "0o600"), (0, "0o644")],
    )


@case
def host_folder_modes() -> None:
    "--dir: its default place, another place, rw and ro, several at once, relative names, one below another's place"
    shared = folder("modes")
    (shared / "file").write_text("hi\n")
    for value, path in (
        (str(shared), "/workspace"),
        (f"{shared}:rw", "/workspace"),
        (f"{shared}:/data", "/data"),
        (f"{shared}:/data/deep/er:rw", "/data/deep/er"),
        (f"{shared}:/tmp/x", "/tmp/x"),
    ):
        result = run("--dir", value, "--", "sh", "-c", f"cat {path}/file && touch {path}/new")
        equal(f"{value}: result", (result.status, result.text), (0, "hi\n"))
        (shared / "new").unlink()
    for value, path in ((f"{shared}:ro", "/workspace"), (f"{shared}:/data:ro", "/data")):
        result = run(
            "--user",
            "root",
            "--dir",
            value,
            "--",
            "sh",
            "-c",
            f"cat {path}/file; touch {path}/new; rm {path}/file; chmod 777 {path}",
        )
        equal(f"{value}: output", result.text, "hi\n")
        equal(f"{value}: refusals", result.err.count("Read-only file system"), 3)
    equal("on the host", [path.name for path in shared.iterdir()], ["file"])
    result = run(
        "--dir", f"{shared}:/a", "--dir", f"{shared}:/b:ro", "--", "sh", "-c", "cat /a/file /b/file; touch /b/x"
    )
    equal("two", (result.text, "Read-only" in result.err), ("hi\nhi\n", True))
    equal("relative", run("--dir", ".:/data:ro", "--", "cat", "/data/file", cwd=shared).text, "hi\n")


@case
def host_folder_bounds() -> None:
    "a symlink in a host folder leads into the sandbox, and .. stays inside"
    shared = folder("bounds")
    (shared / "link").symlink_to("/etc/passwd")
    (shared / "secret-link").symlink_to(str(place() / "state"))
    result = run(
        "--dir", str(shared), "--", "sh", "-c", "wc -l < link; ls secret-link/; cd /workspace/..; pwd; ls -d modes"
    )
    equal("output", result.text, "2\n/\n")
    equal("refusals", result.err.count("No such file or directory"), 2)


@case
def folder_template() -> None:
    "a root folder with only the payload works, shows its own files, and is read-only"
    root = make_root("plain")
    (root / "etc").mkdir()
    (root / "etc/mine").write_text("mine\n")

    def run_it(*words: str) -> Outcome:
        return run("--user", "root", "--root", str(root), "--", "/payload", *words)

    equal("its files", run_it("file", "/etc/mine").text, "mine\n")
    equal(
        "folders",
        set(run_it("folder", "/").lines),
        {"dev", "etc", "home", "mnt", "payload", "proc", "run", "tmp", "workspace"},
    )
    for path in ("/new", "/etc/new", "/payload"):
        result = run_it("make", path)
        equal(path, (result.status, result.text), (1, f"{path} 0 {errno.EROFS}\n"))
    equal(
        "the folder is unchanged",
        sorted(str(path.relative_to(root)) for path in root.rglob("*")),
        ["dev", "etc", "etc/mine", "payload", "proc", "run", "tmp"],
    )


@case
def folder_template_set_id() -> None:
    "a set-user-ID file and a device node in a root folder are neither"
    root = make_root("trap")
    (root / "payload").chmod(0o4755)
    os.mknod(root / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    result = run("--root", str(root), "--", "/payload", "file", "/proc/self/status")
    equal("uids", status_of(result.text)["Uid"].split(), [str(NOBODY)] * 4)
    equal("device", run("--root", str(root), "--", "/payload", "file", "/zero").text, f"/zero 0 {errno.EACCES}\n")


def snapshot(root: pathlib.Path) -> list[tuple[str, int, int, bytes]]:
    return sorted(
        (
            str(path.relative_to(root)),
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in root.rglob("*")
    )


def usr_root(name: str) -> pathlib.Path:
    """A root folder in which the host's programs run: its /usr, and links to it."""
    root = make_root(name)
    for link in ("bin", "lib", "lib64"):
        if os.path.islink(f"/{link}"):
            (root / link).symlink_to(os.readlink(f"/{link}"))
    (root / "etc").mkdir()
    (root / "etc/file").write_text("old\n")
    (root / "etc/folder").mkdir()
    (root / "etc/folder/below").write_text("x")
    return root


@case
def writable_root() -> None:
    "--rw-root lets the command change the root, and the folder stays as it was"
    root = usr_root("writable")
    before = snapshot(root)
    script = (
        "echo new > /etc/file && rm -r /etc/folder && mkdir /etc/folder && echo y > /etc/folder/other && "
        "mv /etc /config && "
        "chmod 600 /config/file && cat /config/file && ls /config/folder && echo top > /top && rm /payload && ls /"
    )
    result = run("--user", "root", "--root", str(root), "--rw-root", "--dir", "/usr:/usr:ro", "--", "sh", "-c", script)
    equal("status", (result.status, result.err), (0, ""))
    check(
        result.text.startswith("new\nother\n") and "config\n" in result.text and "payload" not in result.text,
        f"stdout {result.text!r}",
    )
    equal("the folder", snapshot(root), before)
    equal("the next one starts afresh", run("--root", str(root), "--", "/payload", "file", "/etc/file").text, "old\n")


if __name__ == "__main__":
    main()
