#include "attack/table.h"

#include <string.h>

/* The name of each file. */
#define ATTACKS(ROW)                                                                                                   \
    ROW(accounting)                                                                                                    \
    ROW(af_alg)                                                                                                        \
    ROW(af_packet)                                                                                                     \
    ROW(af_vsock)                                                                                                      \
    ROW(asynchronous_io)                                                                                               \
    ROW(become_root)                                                                                                   \
    ROW(bpf)                                                                                                           \
    ROW(capabilities)                                                                                                  \
    ROW(chroot)                                                                                                        \
    ROW(clock)                                                                                                         \
    ROW(core_dumps)                                                                                                    \
    ROW(fanotify)                                                                                                      \
    ROW(file_handles)                                                                                                  \
    ROW(host_name)                                                                                                     \
    ROW(huge_pages)                                                                                                    \
    ROW(i386_calls)                                                                                                    \
    ROW(ids_outside)                                                                                                   \
    ROW(io_ports)                                                                                                      \
    ROW(io_uring)                                                                                                      \
    ROW(kernel_log)                                                                                                    \
    ROW(kernel_modules)                                                                                                \
    ROW(kexec)                                                                                                         \
    ROW(keyring)                                                                                                       \
    ROW(memory_policy)                                                                                                 \
    ROW(mount)                                                                                                         \
    ROW(mount_by_descriptor)                                                                                           \
    ROW(namespaces)                                                                                                    \
    ROW(nested_user_namespace)                                                                                         \
    ROW(netlink)                                                                                                       \
    ROW(network_changes)                                                                                               \
    ROW(nf_tables)                                                                                                     \
    ROW(overlay_in_namespace)                                                                                          \
    ROW(perf_events)                                                                                                   \
    ROW(pivot_root)                                                                                                    \
    ROW(process_memory)                                                                                                \
    ROW(ptrace)                                                                                                        \
    ROW(raised_limits)                                                                                                 \
    ROW(rare_protocols)                                                                                                \
    ROW(rare_sockets)                                                                                                  \
    ROW(raw_sockets)                                                                                                   \
    ROW(real_time)                                                                                                     \
    ROW(reboot)                                                                                                        \
    ROW(remount)                                                                                                       \
    ROW(setns)                                                                                                         \
    ROW(stolen_descriptors)                                                                                            \
    ROW(swap)                                                                                                          \
    ROW(terminal_console)                                                                                              \
    ROW(terminal_input)                                                                                                \
    ROW(unknown_calls)                                                                                                 \
    ROW(unmount)                                                                                                       \
    ROW(userfaultfd)                                                                                                   \
    ROW(x32_calls)

#define DECLARE(name) extern const struct attack attack_##name;
ATTACKS(DECLARE)
#undef DECLARE

#define POINT(name) &attack_##name,
const struct attack *const table_attacks[] = {ATTACKS(POINT)};
#undef POINT

#define ONE(name) +1
const size_t table_count = 0 ATTACKS(ONE);
#undef ONE

const struct attack *table_find(const char *name)
{
    for (size_t i = 0; i < table_count; i++) {
        if (strcmp(table_attacks[i]->name, name) == 0)
            return table_attacks[i];
    }
    return NULL;
}
