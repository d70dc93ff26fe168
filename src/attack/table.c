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
    ROW(x32_calls)                                                                                                     \
    ROW(binfmt_misc)                                                                                                   \
    ROW(cgroup_files)                                                                                                  \
    ROW(core_pattern)                                                                                                  \
    ROW(device_in_template)                                                                                            \
    ROW(device_nodes)                                                                                                  \
    ROW(devices)                                                                                                       \
    ROW(dir_through_symlink)                                                                                           \
    ROW(escape_sequences)                                                                                              \
    ROW(file_capabilities)                                                                                             \
    ROW(host_files)                                                                                                    \
    ROW(host_usr)                                                                                                      \
    ROW(kernel_memory)                                                                                                 \
    ROW(kernel_settings)                                                                                               \
    ROW(leaked_descriptors)                                                                                            \
    ROW(proc_of_init)                                                                                                  \
    ROW(proc_writable)                                                                                                 \
    ROW(read_only_root)                                                                                                \
    ROW(release_agent)                                                                                                 \
    ROW(runtime_as_command)                                                                                            \
    ROW(runtime_binary)                                                                                                \
    ROW(set_uid_files)                                                                                                 \
    ROW(set_uid_in_root)                                                                                               \
    ROW(set_uid_in_template)                                                                                           \
    ROW(set_uid_outside)                                                                                               \
    ROW(swapped_dev)                                                                                                   \
    ROW(swapped_proc)                                                                                                  \
    ROW(swapped_workspace)                                                                                             \
    ROW(sys)                                                                                                           \
    ROW(sysrq_trigger)                                                                                                 \
    ROW(template_console_symlink)                                                                                      \
    ROW(template_dev_fifo)                                                                                             \
    ROW(template_dev_null_symlink)                                                                                     \
    ROW(template_dev_symlink)                                                                                          \
    ROW(template_false_proc)                                                                                           \
    ROW(template_proc_symlink)                                                                                         \
    ROW(template_tmp_symlink)                                                                                          \
    ROW(template_workspace_symlink)                                                                                    \
    ROW(up_and_out)                                                                                                    \
    ROW(working_folder)                                                                                                \
    ROW(copied_program)                                                                                                \
    ROW(linked_program)                                                                                                \
    ROW(loader_as_program)                                                                                             \
    ROW(memory_as_program)                                                                                             \
    ROW(script_as_program)                                                                                             \
    ROW(unlisted_program)                                                                                              \
    ROW(written_code)                                                                                                  \
    ROW(written_library)                                                                                               \
    ROW(abstract_socket)                                                                                               \
    ROW(file_locks)                                                                                                    \
    ROW(file_watches)                                                                                                  \
    ROW(kill_everybody)                                                                                                \
    ROW(kill_init)                                                                                                     \
    ROW(loopback)                                                                                                      \
    ROW(message_queues)                                                                                                \
    ROW(network)                                                                                                       \
    ROW(posix_queue)                                                                                                   \
    ROW(process_list)                                                                                                  \
    ROW(shared_memory)                                                                                                 \
    ROW(signals)                                                                                                       \
    ROW(temporary_files)                                                                                               \
    ROW(unix_socket)                                                                                                   \
    ROW(cpu)                                                                                                           \
    ROW(cpu_limit)                                                                                                     \
    ROW(daemon)                                                                                                        \
    ROW(disk_fallocate)                                                                                                \
    ROW(disk_image)                                                                                                    \
    ROW(disk_many_files)                                                                                               \
    ROW(disk_one_file)                                                                                                 \
    ROW(disk_sparse)                                                                                                   \
    ROW(file_watch_instances)                                                                                          \
    ROW(folders)                                                                                                       \
    ROW(fork_bomb)                                                                                                     \
    ROW(ignored_signals)                                                                                               \
    ROW(inodes)                                                                                                        \
    ROW(memory)                                                                                                        \
    ROW(memory_in_files)                                                                                               \
    ROW(memory_locks)                                                                                                  \
    ROW(memory_memfd)                                                                                                  \
    ROW(memory_names)                                                                                                  \
    ROW(memory_of_children)                                                                                            \
    ROW(memory_page_tables)                                                                                            \
    ROW(memory_pipes)                                                                                                  \
    ROW(memory_queues)                                                                                                 \
    ROW(memory_shared)                                                                                                 \
    ROW(memory_sockets)                                                                                                \
    ROW(memory_swapped)                                                                                                \
    ROW(memory_tcp)                                                                                                    \
    ROW(open_files)                                                                                                    \
    ROW(output_flood)                                                                                                  \
    ROW(output_not_utf8)                                                                                               \
    ROW(output_one_line)                                                                                               \
    ROW(pending_signals)                                                                                               \
    ROW(stopped_processes)                                                                                             \
    ROW(thread_bomb)                                                                                                   \
    ROW(zombies)                                                                                                       \
    ROW(blocked_commands)                                                                                              \
    ROW(broken_reload)                                                                                                 \
    ROW(costly_patterns)                                                                                               \
    ROW(expired_key)                                                                                                   \
    ROW(forged_headers)                                                                                                \
    ROW(forged_records)                                                                                                \
    ROW(guessed_passwords)                                                                                             \
    ROW(half_closed)                                                                                                   \
    ROW(idle_connections)                                                                                              \
    ROW(ids_of_others)                                                                                                 \
    ROW(json_shapes)                                                                                                   \
    ROW(large_bodies)                                                                                                  \
    ROW(length_oracle)                                                                                                 \
    ROW(malformed_requests)                                                                                            \
    ROW(many_bodies)                                                                                                   \
    ROW(narrow_keys)                                                                                                   \
    ROW(never_reading)                                                                                                 \
    ROW(no_credentials)                                                                                                \
    ROW(open_to_all)                                                                                                   \
    ROW(path_tricks)                                                                                                   \
    ROW(pipelined_requests)                                                                                            \
    ROW(revoked_key)                                                                                                   \
    ROW(slow_bodies)                                                                                                   \
    ROW(slow_headers)                                                                                                  \
    ROW(smuggled_requests)                                                                                             \
    ROW(state_files)                                                                                                   \
    ROW(too_many)                                                                                                      \
    ROW(web_pages)                                                                                                     \
    ROW(wrong_credentials)                                                                                             \
    ROW(held_open)                                                                                                     \
    ROW(changing_files)                                                                                                \
    ROW(download_race)                                                                                                 \
    ROW(endless_upload)                                                                                                \
    ROW(files_of_others)                                                                                               \
    ROW(links_out)                                                                                                     \
    ROW(listing_race)                                                                                                  \
    ROW(odd_ids)                                                                                                       \
    ROW(odd_paths)                                                                                                     \
    ROW(removal_race)                                                                                                  \
    ROW(special_files)                                                                                                 \
    ROW(upload_race)

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
