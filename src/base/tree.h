/*
 * tree: removing a folder with all that is in it.
 *
 * AS ROOT, also where others can write and swap names meanwhile: nothing is reached by a path, no symlink is followed
 * and no mount entered. What can't be removed stays.
 */
#pragma once

void tree_remove(int dir, const char *name);
