/*
 * tree: removing a folder with all that is in it.
 *
 * AS ROOT, below the state folder, where nobody else can prepare anything.
 */
#pragma once

void tree_remove(int dir, const char *name);
