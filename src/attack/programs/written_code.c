/*
 * written-code: code that was never a file: memory that is writable and executable at once or in turn, and writes
 * through /proc/PID/mem, which ask for no right to the page.
 */
#include "attack/attack.h"

static const char script[] =
    "CODE = bytes.fromhex('b82a000000c3')  # mov eax, 42; ret\n"
    "\n"
    "def call(address):\n"
    "    if ctypes.CFUNCTYPE(ctypes.c_int)(address)() != 42:\n"
    "        raise ValueError\n"
    "\n"
    "def put(memory):\n"
    "    ctypes.memmove(memory, CODE, len(CODE))\n"
    "    return memory\n"
    "\n"
    "def mmap(protection, flags=PRIVATE | ANONYMOUS, fd=-1):\n"
    "    return good(libc.mmap(None, 4096, protection, flags, fd, 0))\n"
    "\n"
    "def become_executable(memory):\n"
    "    put(memory)\n"
    "    good(libc.mprotect(memory, 4096, READ | EXEC))\n"
    "    call(memory)\n"
    "\n"
    "def with_key():\n"
    "    memory = put(mmap(READ | WRITE))\n"
    "    good(libc.syscall(329, ctypes.c_void_p(memory), ctypes.c_size_t(4096), READ | EXEC, -1))\n"
    "    call(memory)\n"
    "\n"
    "def library_page():\n"
    "    memory = mmap(READ | EXEC, PRIVATE, os.open(mapped('libc.so'), os.O_RDONLY))\n"
    "    good(libc.mprotect(memory, 4096, READ | WRITE))\n"
    "    become_executable(memory)\n"
    "\n"
    "def file_page(flags):\n"
    "    fd = os.open(tempfile.mkdtemp(dir=folder) + '/code', os.O_RDWR | os.O_CREAT)\n"
    "    os.write(fd, CODE + bytes(4096))\n"
    "    call(mmap(READ | EXEC, flags, fd))\n"
    "\n"
    "def shared_memory():\n"
    "    call(put(good(libc.shmat(good(libc.shmget(0, 4096, 0o700)), None, 0o100000))))\n"
    "\n"
    "def personality():\n"
    "    good(libc.personality(0x400000))\n"
    "    call(put(mmap(READ | WRITE)))\n"
    "\n"
    "def process_memory(path):\n"
    "    function = ctypes.cast(libc.fcvt, ctypes.c_void_p).value\n"
    "    memory = os.open(path, os.O_RDWR)\n"
    "    os.pwrite(memory, CODE, function)\n"
    "    call(function)\n"
    "\n"
    "attempt('mmap', lambda: call(put(mmap(READ | WRITE | EXEC))), EPERM)\n"
    "attempt('mprotect', lambda: become_executable(mmap(READ | WRITE)), EPERM)\n"
    "attempt('pkey_mprotect', with_key, EPERM, ENOSYS)\n"
    "attempt('a page of a library', library_page, EPERM)\n"
    "attempt('a page of a written file', lambda: file_page(PRIVATE), EPERM)\n"
    "attempt('a shared page of a written file', lambda: file_page(SHARED), EPERM)\n"
    "attempt('shmat', shared_memory, EPERM, ENOSYS)\n"
    "attempt('READ_IMPLIES_EXEC', personality, EPERM, ENOSYS)\n"
    "attempt('/proc/self/mem', lambda: process_memory('/proc/self/mem'), EROFS)\n"
    "attempt('/proc/thread-self/mem', lambda: process_memory('/proc/thread-self/mem'), EROFS)\n"
    "attempt('/proc/PID/task/TID/mem', lambda: process_memory(f'/proc/{os.getpid()}/task/{os.getpid()}/mem'), EROFS)\n";

const struct attack attack_written_code = {
    .name = "written-code",
    .tries = "code written into memory",
    .group = ATTACK_PROGRAMS,
    .control = CONTROL_WITHOUT,
    .script = script,
    .options = {"--only", "python3"},
};
