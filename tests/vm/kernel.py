"""kernel: Debian's kernel for virtual machines, fetched by apt and unpacked in a folder of ours; never installed."""

import dataclasses
import lzma
import pathlib
import re
import shutil
import subprocess
import tempfile

PACKAGE = "linux-image-cloud-amd64"


class Unavailable(Exception):
    """This machine can't run the test, and why."""


@dataclasses.dataclass
class Kernel:
    release: str  # as uname -r says it
    folder: pathlib.Path

    @property
    def image(self) -> pathlib.Path:
        return self.folder / "boot" / f"vmlinuz-{self.release}"

    @property
    def modules(self) -> pathlib.Path:
        return self.folder / "lib/modules" / self.release

    def with_needed(self, *names: str) -> list[bytes]:
        """These modules and what they need, in the order of loading. What is built in has none."""
        needs = {}
        for line in (self.modules / "modules.dep").read_text(encoding="ascii").splitlines():
            path, below = line.split(":")
            needs[pathlib.Path(path).name.split(".")[0]] = [*reversed(below.split()), path]
        return [self._module(path) for path in dict.fromkeys(path for name in names for path in needs.get(name, []))]

    def _module(self, path: str) -> bytes:
        data = (self.modules / path).read_bytes()
        return lzma.decompress(data) if path.endswith(".xz") else data


def _output(*words: object, cwd: pathlib.Path | None = None) -> str:
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{words[0]} {words[1]} failed: {' '.join(done.stderr.split())}")
    return done.stdout


def _image_package(package: str) -> str:
    """Of a package that only follows the newest kernel the one that holds it."""
    match = re.search(r"^  Depends: (linux-image-\S+)$", _output("apt-cache", "depends", package), re.MULTILINE)
    return match[1] if match else package


def _download(package: str, folder: pathlib.Path) -> pathlib.Path:
    image = _image_package(package)
    # The folder is root's alone, so apt can't fetch as the user it has for that; it checks signatures all the same.
    _output("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", image, cwd=folder)
    return next(folder.glob("*.deb"))


def _unpack(package: str, folder: pathlib.Path) -> None:
    try:
        archive = _download(package, folder)
    except Unavailable:
        # No package lists here yet, or older than what the archive still has.
        _output("apt-get", "update", "-qq")
        archive = _download(package, folder)
    _output("dpkg-deb", "-x", archive, folder)
    archive.unlink()
    for modules in (folder / "lib/modules").iterdir():
        _output("depmod", "-b", folder, modules.name)


def get(package: str, cache: pathlib.Path) -> Kernel:
    """The kernel of this package; what was fetched once is used again until the cache is removed."""
    folder = cache / package
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        new = pathlib.Path(tempfile.mkdtemp(prefix="new-", dir=cache))
        try:
            _unpack(package, new)
            new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return Kernel(next((folder / "lib/modules").iterdir()).name, folder)
