/*
 * probes: one function per kind of check; `argument` of the check says which of its kind.
 */
#pragma once

#include "cli/doctor/check.h"

/* kernel.c: system calls and security modules */
void probe_kernel(struct probe *probe);
void probe_calls(struct probe *probe);
void probe_pidfd(struct probe *probe);
void probe_seccomp(struct probe *probe);
void probe_landlock(struct probe *probe);
void probe_landlock_scopes(struct probe *probe);
void probe_keyring(struct probe *probe);

/* rights.c: what this process may do, and what stands above it */
void probe_root(struct probe *probe);
void probe_capabilities(struct probe *probe);
void probe_own_filter(struct probe *probe);
void probe_apparmor(struct probe *probe);
void probe_unprivileged(struct probe *probe);
void probe_yama(struct probe *probe);
void probe_container(struct probe *probe);

/* namespaces.c: argument: which one */
void probe_namespace(struct probe *probe);
void probe_ids(struct probe *probe);

/* mounts.c */
void probe_mount_api(struct probe *probe);
void probe_devices(struct probe *probe);
void probe_idmap(struct probe *probe);
void probe_overlay(struct probe *probe);
void probe_tmpfs(struct probe *probe);
void probe_tmpfs_attributes(struct probe *probe);
void probe_proc(struct probe *probe);

/* cgroups.c */
void probe_cgroup_tree(struct probe *probe);
void probe_cgroup_swap(struct probe *probe);
void probe_cgroup_limits(struct probe *probe);
void probe_cgroup_clone(struct probe *probe);
void probe_cgroup_kill(struct probe *probe);
void probe_cgroup_freeze(struct probe *probe);

/* storage.c */
void probe_state_folder(struct probe *probe);
void probe_runtime_folder(struct probe *probe);
void probe_merged_usr(struct probe *probe);
void probe_loop(struct probe *probe);
void probe_ext4(struct probe *probe);
void probe_mkfs(struct probe *probe);

/* network.c */
void probe_sk_lookup(struct probe *probe);
void probe_nftables(struct probe *probe);
void probe_ipv6(struct probe *probe);
void probe_passrights(struct probe *probe);

/* limits.c: argument: the files and the least that is enough, where there are any */
void probe_least(struct probe *probe);
void probe_open_files(struct probe *probe);
void probe_core_pattern(struct probe *probe);
void probe_memory(struct probe *probe);
void probe_cpus(struct probe *probe);

/* sandbox.c: a real one, with a command in it, its files in memory or in a disk image */
void probe_sandbox(struct probe *probe);
void probe_sandbox_image(struct probe *probe);
