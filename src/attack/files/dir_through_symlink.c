/*
 * dir-through-symlink: a folder to be shown that was replaced by a symlink, by whoever could write beside it, would be
 * another one.
 */
#include "attack/attack.h"

const struct attack attack_dir_through_symlink = {
    .name = "dir-through-symlink",
    .tries = "--dir on a symlink",
    .group = ATTACK_FILES,
    .variants = AS_NOBODY,
    .options = {"--dir", "@/link:/shared:rw"},
    .command = "/attack/hutch-attack",
    .status = 125,
    .says = "symlink",
};
