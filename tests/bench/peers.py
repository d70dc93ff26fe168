"""peers: every way to run a command that `make bench` compares, and what each needs to be ready.

All get the same: the command's absolute path, no terminal, and where they take mounts the ones Hutch makes: /usr
read-only, a small /etc, /proc, /dev and five writable tmpfs folders. Where a peer does less by default (runc has no
user namespace, firejail shows most of the host), it is left at less: doubt is in the peer's favour.
"""
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
COMMANDS = {"true": ["/usr/bin/true"], "python3 -c pass": ["/usr/bin/python3", "-c", "pass"]}
WRITABLE = ["/tmp", "/run", "/workspace", "/home/sandbox", "/mnt/user-data/outputs"]
LINKS = {name: f"usr/{name}" for name in ("bin", "lib", "lib64", "sbin")}
NOBODY = 65534
TRIAL_SECONDS = 20


@dataclasses.dataclass
class Peer:
    name: str
    argv: list[str]  # what comes before the command
    program: str | None = None  # what must be installed; None: part of the build
    slow: bool = False  # tens of milliseconds and more: fewer runs say as much
    bundle: bool = False  # the command is in an OCI bundle, named by {bundle}

    def line(self, work: pathlib.Path, key: str) -> list[str]:
        if self.bundle:
            line = [part.format(bundle=bundle_folder(work, key)) for part in self.argv]
        else:
            line = self.argv + COMMANDS[key]
        return [find(line[0]) or line[0], *line[1:]]  # nobody pays for a search of PATH


def environment(work: pathlib.Path) -> dict[str, str]:
    """Also keeps a shim (pyenv and the like) from being measured, and our state out of /var/lib/hutch."""
    return {"PATH": PATH, "HOME": str(work), "LANG": "C.UTF-8", "HUTCH_STATE": str(work / "state")}


def find(program: str) -> str | None:
    if "/" in program:
        return program
    # Debian's docker fits Debian's dockerd; one from elsewhere need not.
    first = f"/usr/bin/{program}"
    return first if os.access(first, os.X_OK) else shutil.which(program, path=PATH)


def bwrap_same(work: pathlib.Path) -> list[str]:
    argv = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr"]
    for name, target in LINKS.items():
        argv += ["--symlink", target, f"/{name}"]
    argv += ["--proc", "/proc", "--dev", "/dev", "--dir", "/mnt/user-data"]
    for folder in WRITABLE:
        argv += ["--tmpfs", folder]
    return argv + ["--ro-bind", str(work / "etc"), "/etc", "--chdir", "/workspace", "--uid", str(NOBODY), "--gid",
                   str(NOBODY)]


def bwrap_minimal() -> list[str]:
    return ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink",
            "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]


def all_peers(build: pathlib.Path, work: pathlib.Path) -> list[Peer]:
    docker = ["/usr/bin/docker", "--config", f"{work}/docker", "-H", f"unix://{work}/docker/socket"]
    podman = ["/usr/bin/podman", "--root", f"{work}/podman", "--runroot", f"{work}/podman-run", "--cgroup-manager",
              "cgroupfs", "--events-backend", "none", "--runtime", "runc"]
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
    group = ["--cgroup-parent", f"/{work.name}"]
    oci = ["run", "--bundle", "{bundle}", work.name]
    return [
        Peer("fork+exec", []),
        Peer("hutch run", [str(build / "hutch"), "run", "--"]),
        Peer("bwrap", bwrap_same(work), "bwrap"),
        Peer("bwrap-minimal", bwrap_minimal(), "bwrap"),
        Peer("crun", ["crun", "--root", f"{work}/crun", *oci], "crun", bundle=True),
        Peer("runc", ["runc", "--root", f"{work}/runc", *oci], "runc", slow=True, bundle=True),
        Peer("firejail", ["firejail", "--quiet", "--noprofile", "--net=none", "--private", "--private-dev",
                          "--private-tmp", "--"], "firejail", slow=True),
        Peer("runsc", ["runsc", "--root", f"{work}/runsc", "--platform=ptrace", "--network=none", "--ignore-cgroups",
                       *oci], "runsc", slow=True, bundle=True),
        Peer("podman run", [*podman, "run", "--rm", "--network", "none", *group, *limits, "hutch-bench"], "podman",
             slow=True),
        Peer("docker run", [*docker, "run", "--rm", "--network", "none", "hutch-bench"], "dockerd", slow=True),
        Peer("docker exec", [*docker, "exec", "bench"], "dockerd", slow=True),
    ]


def bundle_folder(work: pathlib.Path, key: str) -> pathlib.Path:
    return work / f"bundle-{list(COMMANDS).index(key)}"


def make_etc(build: pathlib.Path, work: pathlib.Path) -> None:
    """The very /etc that Hutch shows."""
    hutch = subprocess.run([build / "hutch", "run", "--", "tar", "-C", "/", "-cf", "-", "etc"], check=True,
                           env=environment(work), stdout=subprocess.PIPE)
    subprocess.run(["tar", "-C", work, "--no-same-owner", "-xf", "-"], check=True, input=hutch.stdout)


def make_bundle(work: pathlib.Path, key: str) -> None:
    """runc's own default specification, with our mounts and without a terminal."""
    folder = bundle_folder(work, key)
    root = folder / "rootfs"
    for name in ["usr", "etc", "proc", "dev", "sys", *(path[1:] for path in WRITABLE)]:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    subprocess.run(["runc", "spec", "--bundle", folder], check=True, env=environment(work))
    spec = json.loads((folder / "config.json").read_text())
    spec["process"] |= {"terminal": False, "args": COMMANDS[key], "cwd": "/workspace",
                        "user": {"uid": NOBODY, "gid": NOBODY}}
    spec["mounts"] += [{"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
                       {"destination": "/etc", "type": "bind", "source": str(work / "etc"), "options": ["bind", "ro"]}]
    spec["mounts"] += [{"destination": path, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]}
                       for path in WRITABLE]
    spec["linux"]["cgroupsPath"] = f"/{work.name}/oci"
    (folder / "config.json").write_text(json.dumps(spec))


def prepare(build: pathlib.Path, work: pathlib.Path) -> None:
    make_etc(build, work)
    if find("runc"):
        for key in COMMANDS:
            make_bundle(work, key)


def version(program: str, work: pathlib.Path) -> str:
    result = subprocess.run([find(program) or program, "--version"], capture_output=True, text=True, check=False,
                            env=environment(work))
    return (result.stdout or result.stderr).partition("\n")[0]


def trial(line: list[str], work: pathlib.Path) -> str | None:
    """Run it once, with a limit. None when it works, else why not."""
    process = subprocess.Popen(line, env=environment(work), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _, said = process.communicate(timeout=TRIAL_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return f"does not end within {TRIAL_SECONDS} s"
    lines = [text for text in said.splitlines() if text.strip()]
    return None if process.returncode == 0 else (lines[-1][:160] if lines else f"exit status {process.returncode}")


def usable(peers: list[Peer], work: pathlib.Path) -> tuple[list[Peer], dict[str, str]]:
    """Those that work here, and why each of the others does not."""
    working, reasons = [], {}
    for peer in peers:
        reason = "not installed" if peer.program and not find(peer.program) else None
        for key in COMMANDS:
            if peer.bundle and not bundle_folder(work, key).exists():
                reason = reason or "its bundle is made with runc, which is not installed"
            reason = reason or trial(peer.line(work, key), work)
        if reason:
            reasons[peer.name] = reason
        else:
            working.append(peer)
    return working, reasons
