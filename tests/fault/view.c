/*
 * view: runs in the sandboxes of the fault tests and prints all that a process can see of how it is held: users,
 * capabilities, filters, limits, mounts, descriptors, the environment. The same in every sandbox that was asked for in
 * the same words; a fault that made one weaker shows as a difference.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;

/* Lines of /proc/self/status that say how much a process may do. */
static const char *const told[] = {
    "Umask:",  "Uid:",    "Gid:",    "Groups:", "SigBlk:", "SigIgn:", "SigCgt:", "CapInh:",
    "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNew",   "Seccomp", "THP_",    "Cpus_allowed:"};

static void print_status(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[1024];

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
            if (strncmp(line, told[i], strlen(told[i])) == 0)
                (void)fputs(line, stdout);
        }
    }
    if (file != NULL)
        (void)fclose(file);
}

static void print_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[4096];

    printf("%s: %s\n", path, file == NULL ? strerror(errno) : "");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        (void)fputs(line, stdout);
    if (file != NULL)
        (void)fclose(file);
}

/* The digits behind this word, which are others in each sandbox, are taken out. */
static void hide_number(char *line, const char *word)
{
    for (char *at = line; (at = strstr(at, word)) != NULL;) {
        at += strlen(word);
        size_t digits = strspn(at, "0123456789");
        memmove(at, at + digits, strlen(at + digits) + 1);
    }
}

/* Without the numbers of mounts, devices and users outside. */
static void print_mounts(void)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[4096];

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        int skipped = 0;
        (void)sscanf(line, "%*s %*s %*s %n", &skipped);
        hide_number(line, ",uid=");
        hide_number(line, ",gid=");
        hide_number(line, "/dev/loop");
        printf("mount %s", line + skipped);
    }
    if (file != NULL)
        (void)fclose(file);
}

static void print_maps(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned inside;
    unsigned outside;
    unsigned count;

    while (file != NULL && fscanf(file, "%u %u %u", &inside, &outside, &count) == 3)
        printf("%s %u %u\n", path, inside, count);
    if (file != NULL)
        (void)fclose(file);
}

static void print_descriptors(void)
{
    char path[64];
    char target[256];

    for (int fd = 0; fd < 64; fd++) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 0)
            continue;
        target[n] = '\0';
        target[strcspn(target, "[")] = '\0';
        printf("descriptor %d %s\n", fd, target);
    }
}

static void print_folder(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        char name[512];
        struct stat st = {0};
        (void)snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (strspn(entries[i]->d_name, "0123456789") == 0 && lstat(name, &st) == 0)
            printf("entry %s %o %u %u\n", name, st.st_mode, st.st_uid, st.st_gid);
        free(entries[i]);
    }
    free(entries);
}

static void print_network(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0)
        printf("lo %x\n", (unsigned)request.ifr_flags);
    if (fd >= 0)
        (void)close(fd);
    print_file("/proc/self/net/dev_mcast");
}

int main(void)
{
    struct utsname name = {0};
    char folder[4096] = "";

    (void)uname(&name);
    printf("host %s\nfolder %s\n", name.nodename, getcwd(folder, sizeof folder) != NULL ? folder : "?");
    printf("pid %s, leader %d, group %d, dumpable %d\n", getpid() == 1 ? "1" : "not 1", getsid(0) == getpid(),
           getpgrp() == getpid(), prctl(PR_GET_DUMPABLE));
    for (char **entry = environ; *entry != NULL; entry++)
        printf("environment %s\n", *entry);
    print_status();
    print_maps("/proc/self/uid_map");
    print_maps("/proc/self/gid_map");
    print_file("/proc/self/limits");
    print_file("/proc/self/cgroup");
    print_file("/proc/self/oom_score_adj");
    print_file("/proc/sys/user/max_user_namespaces");
    print_file("/proc/1/status");
    print_mounts();
    print_descriptors();
    print_network();
    static const char *const folders[] = {"/", "/dev", "/proc", "/workspace", "/tmp", "/run", "/mnt"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        print_folder(folders[i]);
    return fflush(stdout) == 0 ? 0 : 1;
}
