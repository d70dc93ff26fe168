/*
 * Theory of operation. A child tells through a pipe, which an exec closes, the error that stopped it. Without one it
 * ended well, or what it executed did: then it worked. The dynamic loader is listed with what it loads, so that it is
 * executed and ends with 127 itself. Whatever else happens is no refusal, and not what an attempt looks like that
 * works: the script then does not say that it came to its end, which counts against it with a list and without.
 */
#include "attack/script.h"

#include <linux/landlock.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

const char script_begin[] =
    "import ctypes, os, shutil, sys, tempfile\n"
    "from errno import EACCES, ENOENT, ENOSYS, EPERM, EROFS\n"
    "LOADER_REFUSES = 127\n"
    "PYTHON = os.path.realpath(sys.executable)\n"
    "EMPTY = ['python3', '-I', '-S', '-c', '']\n"
    "READ, WRITE, EXEC, SHARED, PRIVATE, ANONYMOUS = 1, 2, 4, 1, 2, 32\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "libc.mmap.restype = libc.shmat.restype = ctypes.c_void_p\n"
    "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
    "libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]\n"
    "libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]\n"
    "odd = False\n"
    "\n"
    "def good(result):\n"
    "    if result in (None, -1, 2**64 - 1):\n"
    "        raise OSError(ctypes.get_errno(), '')\n"
    "    return result\n"
    "\n"
    "def say(*words):\n"
    "    os.write(1, ('\\t'.join(words) + '\\n').encode())\n"
    "\n"
    "def child(act, told):\n"
    "    status = 99\n"
    "    try:\n"
    "        os.dup2(os.open('/dev/null', os.O_RDWR), 1)\n"
    "        act()\n"
    "        status = 0\n"
    "    except OSError as error:\n"
    "        os.write(told, str(error.errno or LOADER_REFUSES).encode())\n"
    "    finally:\n"
    "        os._exit(status)\n"
    "\n"
    "def attempt(what, act, *refusals):\n"
    "    global odd\n"
    "    hear, told = os.pipe()\n"
    "    pid = os.fork()\n"
    "    if pid == 0:\n"
    "        child(act, told)\n"
    "    os.close(told)\n"
    "    error = int(os.read(hear, 16) or 0)\n"
    "    os.close(hear)\n"
    "    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
    "    if status == LOADER_REFUSES:\n"
    "        error = LOADER_REFUSES\n"
    "    if error in refusals:\n"
    "        say('refused', what, os.strerror(error) if error != LOADER_REFUSES else 'the loader could not')\n"
    "    elif error == 0 and status == 0:\n"
    "        say('through', what, 'it worked')\n"
    "    else:\n"
    "        odd = True\n"
    "        say('through', what, os.strerror(error) if error else f'it ended with {status}')\n"
    "\n"
    "def copy(of):\n"
    "    path = tempfile.mkdtemp(dir=folder) + '/copy'\n"
    "    shutil.copy(of, path)\n"
    "    os.chmod(path, 0o755)\n"
    "    return path\n"
    "\n"
    "def mapped(start):\n"
    "    'The file of this process whose name starts so.'\n"
    "    with open('/proc/self/maps') as maps:\n"
    "        paths = [line.split()[-1] for line in maps]\n"
    "    return next(path for path in paths if os.path.basename(path).startswith(start))\n"
    "\n"
    "with tempfile.TemporaryDirectory() as folder:\n"
    "    exec(sys.argv[1])\n"
    "if not odd:\n"
    "    say('done', '', '')\n";

const char *script_lacks(void)
{
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1)
        return "Landlock";
    return access("/usr/bin/python3", X_OK) < 0 && access("/usr/local/bin/python3", X_OK) < 0 ? "python3" : NULL;
}
