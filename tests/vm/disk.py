"""disk: the machine's file systems. Its root is a small Debian made of packages that are installed here; what is tested
lies on a second disk, so that only that one is made anew when the programs change."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from kernel import Kernel, Unavailable

# Beside the essential packages, and with what they depend on. Node may have come from elsewhere.
PACKAGES = (
    "python3 procps iproute2 kmod mount e2fsprogs mawk vim-tiny less libcmocka0 libseccomp2 openssl"
    " libuv1 libc-ares2 libssl3 libjansson4 libfyaml0 libsqlite3-0 libpcre2-8-0 libsodium23"
).split()
USERS = {"hutch": 990, "hutch-airlock": 991}
WELCOME = ["nodejs"]
LEFT_OUT = re.compile(
    r"/usr/(include|games|src|share/(doc|doc-base|man|info|locale|lintian|bash-completion|perl.*|i18n|zoneinfo)"
    r"|lib/(node_modules|python3/dist-packages)|lib/python3[.\d]+/(test|idlelib|tkinter|lib2to3|ensurepip))(/|$)"
)
MERGED = "bin sbin lib lib32 lib64 libx32".split()
FOLDERS = "dev etc home mnt opt/hutch proc root run sys tmp usr var/lib var/tmp var/log".split()
ETC = {
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "hostname": "ordinary\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "fstab": "",
    "ssl/openssl.cnf": "[req]\ndistinguished_name = name\n[name]\n",
}
ROOT_SIZE, TESTS_SIZE = "1G", "128M"


def _installed() -> dict[str, tuple[bool, set[str], str]]:
    """Each installed package: whether it is essential, what it depends on (one way of several), its version."""
    form = "${db:Status-Status}\t${Package}\t${Essential}\t${Depends}, ${Pre-Depends}\t${Version}\t${Provides}\n"
    found, provided = {}, {}
    for line in subprocess.check_output(["dpkg-query", "-W", "-f", form], text=True).splitlines():
        status, name, essential, depends, version, provides = line.split("\t")
        if status in ("installed", "triggers-awaited", "triggers-pending"):
            found[name] = (essential == "yes", set(re.findall(r"(?:^|[,|] )([a-z0-9][a-z0-9.+-]*)", depends)), version)
            for other in re.findall(r"(?:^|, )([a-z0-9][a-z0-9.+-]*)", provides):
                provided[other] = name
    return {
        name: (essential, {provided.get(other, other) for other in depends}, version)
        for name, (essential, depends, version) in found.items()
    }


def _chosen() -> dict[str, str]:
    """The packages of the machine with their versions."""
    installed = _installed()
    chosen: dict[str, str] = {}
    missing = [name for name in PACKAGES if name not in installed]
    if missing:
        raise Unavailable(f"not installed: {' '.join(missing)}; tools/setup vm installs what Debian has")
    waiting = [name for name in installed if installed[name][0]] + PACKAGES + WELCOME
    while waiting:
        name = waiting.pop()
        if name in installed and name not in chosen:
            chosen[name] = installed[name][2]
            waiting += installed[name][1]
    return chosen


def _choices(paths: set[str]) -> set[str]:
    """The links by which an administrator chooses among packages, as far as they lead to one of these paths."""
    found = set()
    for place in ("/etc/alternatives", "/usr/bin", "/usr/sbin"):
        for link in (entry.path for entry in os.scandir(place) if entry.is_symlink()):
            if "/etc/alternatives/" in f"{link} {os.readlink(link)}" and os.path.realpath(link) in paths:
                found.add(link)
    return found


def _files(packages: list[str]) -> list[str]:
    """What the packages hold below /usr, by its real name, and the links that choose among them."""
    listed = subprocess.run(["dpkg-query", "-L", *packages], capture_output=True, text=True, check=False).stdout
    paths = {
        os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        for path in listed.splitlines()
        if path.startswith("/")
    }
    return sorted(
        path
        for path in paths | _choices(paths)
        if re.match(r"/(usr|etc/alternatives)/", path)
        and not LEFT_OUT.match(path)
        and (os.path.islink(path) or os.path.isfile(path))
    )


def _copy_packages(root: pathlib.Path, packages: list[str]) -> None:
    names = "\0".join(path.lstrip("/") for path in _files(packages))
    words = ["xargs", "-0", "cp", "-a", "--parents", "-t", str(root)]
    subprocess.run(words, cwd="/", input=names.encode(), check=True)


def _make_etc(root: pathlib.Path) -> None:
    for name, text in ETC.items():
        (root / "etc" / name).parent.mkdir(exist_ok=True)
        (root / "etc" / name).write_text(text, encoding="ascii")
    for name in ("passwd", "group"):
        shutil.copy(f"/usr/share/base-passwd/{name}.master", root / "etc" / name)
    for name, number in USERS.items():
        with open(root / "etc/passwd", "a", encoding="ascii") as file:
            file.write(f"{name}:x:{number}:{number}::/nonexistent:/usr/sbin/nologin\n")
        with open(root / "etc/group", "a", encoding="ascii") as file:
            file.write(f"{name}:x:{number}:\n")
    subprocess.run(["ldconfig", "-r", str(root)], check=True)


def _make_image(image: pathlib.Path, root: pathlib.Path, size: str) -> None:
    """An ext4 file system with what is below `root`. Nothing is left to be written by the machine later."""
    image.unlink(missing_ok=True)
    subprocess.run(
        ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", str(root), str(image), size],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _fill_root(root: pathlib.Path, packages: list[str], kernel: Kernel) -> None:
    root.chmod(0o755)
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    for name in MERGED:
        if os.path.islink(f"/{name}"):
            (root / name).symlink_to(f"usr/{name}")
    _copy_packages(root, packages)
    shutil.copytree(kernel.modules, root / "usr/lib/modules" / kernel.release, symlinks=True)
    _make_etc(root)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    (root / "root").chmod(0o700)


def make_root(kernel: Kernel, folder: pathlib.Path) -> None:
    """root.img, made anew when a package, the kernel or this file is another."""
    packages = _chosen()
    facts = repr([kernel.release, sorted(packages.items()), pathlib.Path(__file__).read_bytes()])
    made_of = folder / "root.made-of"
    if made_of.exists() and made_of.read_text(encoding="ascii") == hashlib.sha256(facts.encode()).hexdigest():
        return
    made_of.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder) as new:
        _fill_root(pathlib.Path(new), list(packages), kernel)
        _make_image(folder / "root.img", pathlib.Path(new), ROOT_SIZE)
    made_of.write_text(hashlib.sha256(facts.encode()).hexdigest(), encoding="ascii")


def make_tests(files: dict[str, pathlib.Path], texts: dict[str, str], folder: pathlib.Path) -> None:
    """tests.img with what is tested: these files and folders, and these texts, under these names."""
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder) as new:
        root = pathlib.Path(new)
        root.chmod(0o755)
        for name, source in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, root / name)
        for name, text in texts.items():
            (root / name).write_text(text, encoding="utf-8")
        _make_image(folder / "tests.img", root, TESTS_SIZE)


def make_initramfs(kernel: Kernel, first: pathlib.Path, folder: pathlib.Path) -> None:
    """initramfs: the first program, and the modules that it loads to find the disks."""
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder) as new:
        root = pathlib.Path(new)
        for name in ("dev", "modules", "root"):
            (root / name).mkdir()
        shutil.copy(first, root / "init")
        for number, module in enumerate(kernel.with_needed("virtio_pci", "virtio_blk", "ext4")):
            (root / f"modules/{number}").write_bytes(module)
        names = "\n".join(str(path.relative_to(root)) for path in root.rglob("*"))
        with open(folder / "initramfs", "wb") as file:
            words = ["cpio", "--quiet", "-o", "-H", "newc"]
            subprocess.run(words, cwd=root, input=names.encode(), stdout=file, check=True)
