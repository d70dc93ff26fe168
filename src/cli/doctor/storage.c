#include "base/cleanup.h"
#include "base/sys.h"
#include "cli/doctor/folder.h"
#include "cli/doctor/probes.h"
#include "keeper/disk.h"
#include "keeper/instance.h"

#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { IMAGE_BYTES = 1 << 20, LOOP_ATTEMPTS = 8, PLAIN_PATH_MAX = 80 };

/* May it stand in a command that somebody copies into a shell, whole? */
static bool is_plain(const char *path)
{
    size_t length = strlen(path);

    return length <= PLAIN_PATH_MAX && path[0] == '/' &&
           strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == length;
}

void probe_state_folder(struct probe *probe)
{
    char path[FOLDER_PATH_SIZE];
    struct stat st;

    if (lstat(probe->state, &st) < 0) {
        _cleanup_fd_ int above = errno == ENOENT ? folder_nearest(probe->state, path) : -errno;
        if (above >= 0)
            finding_yes(probe, "%s is made by the first run", probe->state);
        else
            finding_no(probe, -above, "%s", probe->state);
    } else if (!S_ISDIR(st.st_mode)) {
        finding_no(probe, 0, "%s is not a folder", probe->state);
    } else if (st.st_uid != 0 || (st.st_mode & 077) != 0) {
        finding_no(probe, 0, "%s has owner %u and mode %04o", probe->state, st.st_uid, st.st_mode & 07777);
        if (is_plain(probe->state))
            finding_mend(probe, "chown root:root %s && chmod 0700 %s", probe->state, probe->state);
    } else {
        finding_yes(probe, "%s is root's alone", probe->state);
    }
}

void probe_runtime_folder(struct probe *probe)
{
    struct instance instance;
    struct error err = {0};

    if (instance_init(&instance, &err) < 0) {
        finding_no(probe, 0, "%s", err.message);
        return;
    }
    instance_release(&instance);
    finding_yes(probe, "/run/hutch can be written to, and is root's alone");
}

void probe_merged_usr(struct probe *probe)
{
    static const char *const links[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
    struct stat st;

    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (lstat(links[i], &st) == 0 && !S_ISLNK(st.st_mode)) {
            finding_no(probe, 0, "%s is not a link into /usr", links[i]);
            return;
        }
    }
    if (stat("/usr", &st) < 0)
        finding_no(probe, errno, "/usr");
    else
        finding_yes(probe, "/bin, /lib and their like are links into /usr");
}

/* Attach an empty image to this device; it lets go of it with our last descriptor, however we end. 0 or -errno. */
static int attach(int number, char path[32])
{
    _cleanup_fd_ int image = memfd_create("hutch-doctor", MFD_CLOEXEC);
    struct loop_config config = {.fd = (uint32_t)image, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};

    (void)snprintf(path, 32, "/dev/loop%d", number);
    if (image < 0 || ftruncate(image, IMAGE_BYTES) < 0)
        return -errno;
    _cleanup_fd_ int device = open(path, O_RDWR | O_CLOEXEC);
    return device < 0 || ioctl(device, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

void probe_loop(struct probe *probe)
{
    char path[32] = "";
    int r = -EBUSY;
    _cleanup_fd_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    if (control < 0) {
        finding_no(probe, errno, "/dev/loop-control");
        return;
    }
    /* Somebody may take the free one before we do. */
    for (int attempt = 0; r == -EBUSY && attempt < LOOP_ATTEMPTS; attempt++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0) {
            finding_no(probe, errno, "asking /dev/loop-control for a free device");
            return;
        }
        r = attach(number, path);
    }
    if (r < 0)
        finding_no(probe, -r, "attaching an image to %s", path);
    else
        finding_yes(probe, "an image was attached to %s", path);
}

void probe_ext4(struct probe *probe)
{
    _cleanup_fd_ int fs = sys_fsopen("ext4", FSOPEN_CLOEXEC);

    if (fs < 0)
        finding_no(probe, errno, "opening it");
    else
        finding_yes(probe, "the kernel has it");
}

void probe_mkfs(struct probe *probe)
{
    const char *path = disk_find_mkfs();

    if (path == NULL)
        finding_no(probe, 0, "not in /usr/sbin or /sbin");
    else
        finding_yes(probe, "%s", path);
}
