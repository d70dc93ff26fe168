"""machine: QEMU with two disks and two serial lines. The kernel writes to the first line, the tests to the second, so
that neither can break the other's; on the second it also asks for the next test, one line each way."""

import pathlib
import subprocess
import threading
from collections.abc import Callable

from kernel import Kernel
from verdict import Verdict

EMULATOR = "qemu-system-x86_64"
# One CPU: a second emulated one adds no speed, because they wait for each other; a second machine does.
CPUS, MEMORY_MIB = 1, 1024
# A kernel that fails stops the machine. That an emulated CPU waits for a real one is no lockup.
COMMAND_LINE = "console=ttyS0 loglevel=5 panic=1 oops=panic nosoftlockup"


class Machine:
    def __init__(self, name: str, kernel: Kernel, folder: pathlib.Path) -> None:
        self.name = name
        self._console = folder / f"{name.replace(' ', '-')}.log"
        self._console.write_bytes(b"")
        words = [EMULATOR, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"]
        words += ["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(CPUS), "-m", str(MEMORY_MIB), "-nic", "none"]
        words += ["-kernel", kernel.image, "-initrd", folder / "initramfs", "-append", COMMAND_LINE]
        for disk in ("root", "tests"):
            words += ["-drive", f"file={folder / disk}.img,format=raw,if=virtio,cache=unsafe,snapshot=on"]
        words += ["-serial", f"file:{self._console}", "-serial", "stdio"]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
        )

    @property
    def console(self) -> str:
        return self._console.read_text(encoding="utf-8", errors="replace")

    def _answer(self, line: str) -> None:
        try:
            self._process.stdin.write(f"{line}\n".encode())
        except BrokenPipeError:
            pass  # it has stopped, which its output will tell

    def watch(self, verdict: Verdict, next_test: Callable[[], str], say: Callable[[str], None], seconds: float) -> str:
        """Pass on what it says until it stops; why it did."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        for raw in self._process.stdout:
            line = raw.decode(errors="replace")
            if line.startswith("next\t"):
                self._answer(next_test())
                continue
            for out in verdict.line(line):
                say(out)
        status = self._process.wait()
        timer.cancel()
        self._process.stdin.close()
        if late.is_set():
            return f"it did not end within {seconds:.0f} s"
        return f"it stopped without a result ({EMULATOR} ended with status {status})"
