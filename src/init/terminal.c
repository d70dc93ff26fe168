#include "init/terminal.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#define PTMX "/dev/ptmx"

enum { DEFAULT_END = 4 /* Ctrl-D */ };

bool terminal_is_there(void)
{
    return access(PTMX, R_OK | W_OK) == 0;
}

/* What a new one lacks: its input is UTF-8, so that erasing takes whole characters. */
static int prepare(int slave)
{
    struct termios modes;

    if (tcgetattr(slave, &modes) < 0)
        return -errno;
    modes.c_iflag |= IUTF8;
    return tcsetattr(slave, TCSANOW, &modes) < 0 ? -errno : 0;
}

int terminal_open(uint32_t uid, uint16_t rows, uint16_t columns, int *ret_master, int *ret_slave)
{
    _cleanup_fd_ int master = open(PTMX, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    _cleanup_fd_ int slave = -1;
    int locked = 0;

    if (master < 0 || ioctl(master, TIOCSPTLCK, &locked) < 0)
        return -errno;
    /* By its master, never by a name that might lead elsewhere. */
    slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    /* Its group is that of the file system: tty. */
    if (slave < 0 || fchown(slave, uid, (gid_t)-1) < 0)
        return -errno;
    int r = prepare(slave);
    if (r < 0)
        return r;
    terminal_resize(master, rows, columns);
    *ret_master = TAKE_FD(master);
    *ret_slave = TAKE_FD(slave);
    return 0;
}

void terminal_resize(int master, uint16_t rows, uint16_t columns)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};

    (void)ioctl(master, TIOCSWINSZ, &size);
}

pid_t terminal_foreground(int master)
{
    pid_t group = 0;

    /* A group can be in the foreground of its own session's terminal only, so it is never another command's. */
    return ioctl(master, TIOCGPGRP, &group) == 0 && group > 1 ? group : 0;
}

bool terminal_type_end(int master, bool in_line)
{
    struct termios modes;
    char end = DEFAULT_END;

    if (tcgetattr(master, &modes) == 0 && modes.c_cc[VEOF] != '\0')
        end = (char)modes.c_cc[VEOF];
    const char typed[] = {end, end};
    return write(master, typed, in_line ? 2 : 1) > 0 || (errno != EAGAIN && errno != EINTR);
}
