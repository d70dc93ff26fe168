/*
 * steps: the steps in which a sandbox is made, each written down once: its name in errors and in `--stats`, and
 * what it does, in words that follow "Hutch failed while".
 */
#pragma once

#include <stdint.h>

#define STEPS(X)                                                                                                       \
    X(NONE, "none", "starting")                                                                                        \
    X(REQUEST, "request", "checking the request")                                                                      \
    X(IMAGE, "image", "making the disk image")                                                                         \
    X(POLICY, "policy", "making the layer that takes unlisted programs away")                                          \
    X(IDS, "ids", "claiming a range of user ids")                                                                      \
    X(CGROUP, "cgroup", "making the cgroups")                                                                          \
    X(LIMITS, "limits", "setting the limits of the cgroups")                                                           \
    X(TEMPLATE, "template", "opening the template")                                                                    \
    X(DIRS, "dirs", "opening the host folders")                                                                        \
    X(ZYGOTE, "zygote", "preparing the process that clones")                                                           \
    X(NETWORK, "network", "making the network namespace")                                                              \
    X(CLONE, "clone", "cloning into new namespaces")                                                                   \
    X(IDMAP, "idmap", "mapping user ids")                                                                              \
    X(DEV, "dev", "making /dev")                                                                                       \
    X(ENTER, "enter", "entering the cgroups")                                                                          \
    X(WAIT, "wait", "waiting for the id maps")                                                                         \
    X(DISK, "disk", "mounting the writable file system")                                                               \
    X(ROOT, "root", "mounting the root")                                                                               \
    X(USR, "usr", "mounting /usr")                                                                                     \
    X(WRITABLE, "writable", "mounting the writable folders")                                                           \
    X(ATTACH, "attach", "attaching the host folders")                                                                  \
    X(FURNISH, "furnish", "waiting for /dev and the limits")                                                           \
    X(TERMINAL, "terminal", "mounting /dev/pts")                                                                       \
    X(PROC, "proc", "mounting /proc")                                                                                  \
    X(MASKS, "masks", "masking paths in /proc")                                                                        \
    X(PIVOT, "pivot", "changing to the new root")                                                                      \
    X(CONFINE, "confine", "dropping privileges")                                                                       \
    X(ONLY, "only", "allowing the listed programs")                                                                    \
    X(FILTER, "filter", "loading the seccomp filter")                                                                  \
    X(INIT, "init", "starting init")                                                                                   \
    X(LANDLOCK, "landlock", "entering a Landlock domain")

#define STEP_ENUM(NAME, name, words) STEP_##NAME,
enum step { STEPS(STEP_ENUM) STEP_COUNT };

/* "unknown" for what is none. */
const char *step_name(uint32_t step);
const char *step_words(uint32_t step);
