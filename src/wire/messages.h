/*
 * messages: every message between Hutch's processes, each written down once.
 *
 * From this table follow the struct, the encoder, the decoder, the name, the rule who may send it in which state
 * (wire.h) and the fuzz harness. To add a message, add a row and a field list; nothing else.
 *
 * Row:   X(NAME, name, number, senders, states, descriptors at most)
 * Field: F(kind, name, maximum)   maximum: bytes of a str, bytes or strv, entries of a u64v, 0 for numbers
 *
 * The state is the receiver's. On the guest link the receiver is STARTING until init has said HELLO.
 * DIAL and FILE open a channel just as EXEC does: data flows in STDIN and STDOUT frames, EXIT ends it.
 */
#pragma once

#define WIRE_MESSAGES(X)                                                                                               \
    /* the one-shot configuration reader -> keeper */                                                                  \
    X(CONFIG, config, 1, WIRE_BY_READER, WIRE_IN_STARTING, 0)                                                          \
    /* gateway <-> the keeper of a daemon */                                                                           \
    X(ATTACH, attach, 2, WIRE_BY_CLIENT, WIRE_IN_STARTING, 0)                                                          \
    X(SETTINGS, settings, 3, WIRE_BY_KEEPER, WIRE_IN_STARTING | WIRE_IN_RUNNING, 21)                                   \
    X(ADOPT, adopt, 4, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 1)                                                             \
    X(ADOPTED, adopted, 5, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 0)                                                         \
    X(READY, ready, 6, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                             \
    X(UNABLE, unable, 7, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                           \
    X(RELOADED, reloaded, 8, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                       \
    X(DRAIN, drain, 9, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 0)                                                             \
    X(DRAINED, drained, 10, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                        \
    X(PING, ping, 11, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 0)                                                              \
    X(PONG, pong, 12, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                              \
    /* gateway or `hutch run` <-> keeper */                                                                            \
    X(CREATE, create, 16, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 17)                                                         \
    X(CREATED, created, 17, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 1)                                                        \
    X(REFUSED, refused, 18, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 0)                                                        \
    X(DESTROY, destroy, 19, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                        \
    X(GONE, gone, 20, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 0)                                                              \
    X(LIMITS, limits, 21, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                          \
    X(FREEZE, freeze, 22, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                          \
    X(MEASURE, measure, 23, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                        \
    X(USAGE, usage, 24, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 0)                                                            \
    X(OOM, oom, 25, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 0)                                                                \
    X(DONE, done, 26, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 0)                                                              \
    /* keeper <-> zygote */                                                                                            \
    X(SPAWN, spawn, 32, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 40)                                                           \
    X(SPAWNED, spawned, 33, WIRE_BY_ZYGOTE, WIRE_IN_RUNNING, 1)                                                        \
    X(CLEAN, clean, 34, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 5)                                                            \
    /* keeper -> the sandbox being set up */                                                                           \
    X(FURNISH, furnish, 35, WIRE_BY_KEEPER, WIRE_IN_STARTING, 3)                                                       \
    /* a helper of the keeper's -> keeper */                                                                           \
    X(PREPARED, prepared, 40, WIRE_BY_HELPER, WIRE_IN_RUNNING, 3)                                                      \
    /* the sandbox being set up, then init <-> gateway or `hutch run` */                                               \
    X(SETUP, setup, 49, WIRE_BY_GUEST, WIRE_IN_STARTING, 0)                                                            \
    X(HELLO, hello, 50, WIRE_BY_GUEST, WIRE_IN_STARTING, 0)                                                            \
    X(ARGS, args, 51, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                              \
    X(EXEC, exec, 52, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                              \
    X(DIAL, dial, 53, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                              \
    X(FILE, file, 54, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                              \
    X(STDIN, stdin_data, 55, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                       \
    X(TAKEN, taken, 56, WIRE_BY_GUEST, WIRE_IN_RUNNING, 0)                                                             \
    X(STDOUT, stdout_data, 57, WIRE_BY_GUEST, WIRE_IN_RUNNING, 0)                                                      \
    X(STDERR, stderr_data, 58, WIRE_BY_GUEST, WIRE_IN_RUNNING, 0)                                                      \
    X(ACK, ack, 59, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                                \
    X(CLOSE, close, 60, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                            \
    X(SIGNAL, signal, 61, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                          \
    X(RESIZE, resize, 62, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                          \
    X(RESUME, resume, 63, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                          \
    X(EXIT, exit, 64, WIRE_BY_GUEST, WIRE_IN_RUNNING, 0)                                                               \
    X(RELEASE, release, 65, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                        \
    X(RESUMED, resumed, 66, WIRE_BY_GUEST, WIRE_IN_RUNNING, 0)                                                         \
    /* gateway <-> airlock */                                                                                          \
    X(FETCH, fetch, 80, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                            \
    X(FETCHED, fetched, 81, WIRE_BY_AIRLOCK, WIRE_IN_RUNNING, 0)                                                       \
    /* keeper -> airlock; gateway or `hutch run` <-> airlock */                                                        \
    X(PLUG, plug, 82, WIRE_BY_KEEPER, WIRE_IN_RUNNING, 3)                                                              \
    X(RULES, rules, 83, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                            \
    X(RULED, ruled, 84, WIRE_BY_AIRLOCK, WIRE_IN_RUNNING, 0)                                                           \
    X(UNPLUG, unplug, 85, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0)                                                          \
    X(DECISION, decision, 86, WIRE_BY_AIRLOCK, WIRE_IN_RUNNING, 0)                                                     \
    /* records in the STDOUT of a FILE channel, never messages of their own: see answer.h */                           \
    X(ENTRY, entry, 96, WIRE_BY_WORKER, WIRE_IN_RUNNING, 0)                                                            \
    X(WRITTEN, written, 97, WIRE_BY_WORKER, WIRE_IN_RUNNING, 0)                                                        \
    X(EVENT, event, 98, WIRE_BY_WORKER, WIRE_IN_RUNNING, 0)                                                            \
    X(PROBLEM, problem, 99, WIRE_BY_WORKER, WIRE_IN_RUNNING, 0)

/*
 * What the configuration means to root. A listener is an address and a port in numbers, 127.0.0.1:8080 or [::1]:8080.
 * `unix_socket` is a path, `auto` or empty for none. Templates are pairs of name and folder, shares are name, folder,
 * ro or rw.
 */
#define WIRE_FIELDS_config(F)                                                                                          \
    F(u32, id_first, 0)                                                                                                \
    F(u32, id_last, 0)                                                                                                 \
    F(strv, listeners, 4096)                                                                                           \
    F(str, unix_socket, 107)                                                                                           \
    F(str, tls_certificate, 4095)                                                                                      \
    F(str, tls_key, 4095)                                                                                              \
    F(strv, templates, 16384)                                                                                          \
    F(u64, drain_ms, 0)                                                                                                \
    F(u8, log_level, 0)                                                                                                \
    F(u8, log_format, 0)                                                                                               \
    F(u64, disk_max_bytes, 0)                                                                                          \
    F(u64, gateway_memory_bytes, 0)                                                                                    \
    F(u32, gateway_processes, 0)                                                                                       \
    F(u64, gateway_answer_ms, 0)                                                                                       \
    F(strv, shares, 16384)

/*
 * The gateway's first word, before it has heard anything: its frame carries the version that it speaks. Answered with
 * SETTINGS, an ADOPT for every sandbox that lives, and ADOPTED. Until then the keeper takes nothing else from it.
 */
#define WIRE_FIELDS_attach(F) F(u32, pid, 0)

/*
 * All that the gateway is given, at its start and again whenever the configuration was read anew. Descriptors: the
 * configuration file; with WIRE_SETTINGS_PRESETS the first credentials; with WIRE_SETTINGS_TLS certificate and key;
 * then one socket per entry of `listeners`, named as in CONFIG, and with WIRE_SETTINGS_UNIX the last of them is `unix`.
 * A listener that is not in it any more is to be closed, one that was there before is the same socket. `boot` tells the
 * starts of the machine apart.
 */
#define WIRE_FIELDS_settings(F)                                                                                        \
    F(u64, generation, 0)                                                                                              \
    F(u64, boot, 0)                                                                                                    \
    F(u32, flags, 0)                                                                                                   \
    F(strv, listeners, 4096)

/* Descriptor: the guest link of a sandbox that an earlier gateway had made. Whether its init has said HELLO is not
 * known here. */
#define WIRE_FIELDS_adopt(F)                                                                                           \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, uid_first, 0)

/* There are no more; what is not among these is gone. */
#define WIRE_FIELDS_adopted(F) F(u32, count, 0)

/* The gateway answers requests now. */
#define WIRE_FIELDS_ready(F) F(u64, generation, 0)

/* It can't, and to start it again would not help: said before READY, the daemon ends with these words. */
#define WIRE_FIELDS_unable(F) F(str, detail, 512)

/* Later SETTINGS are in force; or, when there is a detail, they are not, and the ones before still are. */
#define WIRE_FIELDS_reloaded(F)                                                                                        \
    F(u64, generation, 0)                                                                                              \
    F(str, detail, 512)

/* Take nothing new, end what there is in this time, say DRAINED. Then the keeper ends the rest and the conversation. */
#define WIRE_FIELDS_drain(F) F(u64, grace_ms, 0)

#define WIRE_FIELDS_drained(F) F(u32, left, 0)

/* Does its loop still turn? Asked after READY; a gateway that does not answer in time is replaced. */
#define WIRE_FIELDS_ping(F) F(u64, number, 0)

#define WIRE_FIELDS_pong(F) F(u64, number, 0)

/*
 * Descriptors: the root folder when WIRE_CREATE_FOLDER is set, then one per guest path in `dirs`. `dir_flags` has one
 * entry per dir. `user` is the inner uid and gid that commands run as: the writable folders are its own, and in the
 * host's folders it stands for `dir_owner`, and no other does. `only` are the programs that may be executed, names or
 * paths below /usr; none means all.
 *
 * The keeper of a daemon takes no folder from its client, only names of the configuration: `template_name` for the root
 * folder, and in `shares` for each guest path the name of a share and a path below it, which may be empty. Whose they
 * are is the keeper's to say then.
 */
#define WIRE_FIELDS_create(F)                                                                                          \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, flags, 0)                                                                                                   \
    F(u64, memory_bytes, 0)                                                                                            \
    F(u64, disk_bytes, 0)                                                                                              \
    F(u64, disk_inodes, 0)                                                                                             \
    F(u32, processes, 0)                                                                                               \
    F(u32, cpu_milli, 0)                                                                                               \
    F(u32, cpu_weight, 0)                                                                                              \
    F(str, hostname, 64)                                                                                               \
    F(strv, dirs, 8192)                                                                                                \
    F(u64v, dir_flags, 16)                                                                                             \
    F(u32, user, 0)                                                                                                    \
    F(u32, dir_owner_uid, 0)                                                                                           \
    F(u32, dir_owner_gid, 0)                                                                                           \
    F(strv, only, 4096)                                                                                                \
    F(str, template_name, 63)                                                                                          \
    F(strv, shares, 8192)

/* Descriptor: the guest link. `steps_ns` has one duration per step, see steps.h. */
#define WIRE_FIELDS_created(F)                                                                                         \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, uid_first, 0)                                                                                               \
    F(u64v, steps_ns, 40)

#define WIRE_FIELDS_refused(F)                                                                                         \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, step, 0)                                                                                                    \
    F(u32, error, 0)                                                                                                   \
    F(str, detail, 512)

#define WIRE_FIELDS_destroy(F) F(u64, sandbox, 0)

/* Nothing of the sandbox is left. The counts are those of one that ended by itself. */
#define WIRE_FIELDS_gone(F)                                                                                            \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, wait_status, 0)                                                                                             \
    F(u32, processes_refused, 0)                                                                                       \
    F(u32, oom_kills, 0)

#define WIRE_FIELDS_limits(F)                                                                                          \
    F(u64, sandbox, 0)                                                                                                 \
    F(u64, memory_bytes, 0)                                                                                            \
    F(u32, processes, 0)                                                                                               \
    F(u32, cpu_milli, 0)                                                                                               \
    F(u32, cpu_weight, 0)

#define WIRE_FIELDS_freeze(F)                                                                                          \
    F(u64, sandbox, 0)                                                                                                 \
    F(u8, frozen, 0)

#define WIRE_FIELDS_measure(F) F(u64, sandbox, 0)

#define WIRE_FIELDS_usage(F)                                                                                           \
    F(u64, sandbox, 0)                                                                                                 \
    F(u64, cpu_us, 0)                                                                                                  \
    F(u64, memory_bytes, 0)                                                                                            \
    F(u64, memory_peak_bytes, 0)                                                                                       \
    F(u32, processes, 0)                                                                                               \
    F(u32, processes_peak, 0)                                                                                          \
    F(u32, processes_refused, 0)                                                                                       \
    F(u32, oom_kills, 0)

#define WIRE_FIELDS_oom(F)                                                                                             \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, kills, 0)

/* A LIMITS or FREEZE was carried out. */
#define WIRE_FIELDS_done(F)                                                                                            \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, request, 0)

/*
 * Descriptors: guest link, init, cgroup, /usr (with WIRE_SPAWN_USR), the disk (with WIRE_SPAWN_IMAGE), the policy layer
 * (with WIRE_SPAWN_ONLY), the link to the airlock (with WIRE_SPAWN_NETWORK), then `tasks` v1 task files, `layers`
 * layers and one tree per guest path in `dirs`.
 */
#define WIRE_FIELDS_spawn(F)                                                                                           \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, flags, 0)                                                                                                   \
    F(u32, uid_first, 0)                                                                                               \
    F(u32, user, 0)                                                                                                    \
    F(u8, tasks, 0)                                                                                                    \
    F(u8, layers, 0)                                                                                                   \
    F(u64, disk_bytes, 0)                                                                                              \
    F(u64, disk_inodes, 0)                                                                                             \
    F(str, hostname, 64)                                                                                               \
    F(strv, dirs, 8192)                                                                                                \
    F(strv, programs, 16384)

/* Descriptor: the pidfd, when there is a process; with an error it is to be ended. */
#define WIRE_FIELDS_spawned(F)                                                                                         \
    F(u64, sandbox, 0)                                                                                                 \
    F(u32, pid, 0)                                                                                                     \
    F(u32, error, 0)                                                                                                   \
    F(u32, step, 0)                                                                                                    \
    F(u64, clone_ns, 0)                                                                                                \
    F(u64, idmap_ns, 0)

/*
 * For a single run, as soon as there is a sandbox: when the keeper has ended, however that was, end the sandbox and
 * remove what is left. Descriptors: the keeper's pidfd, instance lock, id claim, the host's end of the guest link, and
 * the root of the disk, if there is one.
 */
#define WIRE_FIELDS_clean(F)                                                                                           \
    F(str, instance, 16)                                                                                               \
    F(str, cgroup, 47)

/* The limits are set; what was made meanwhile. Descriptors: /dev, init's view of its cgroup, /proc where it could be.
 */
#define WIRE_FIELDS_furnish(F) F(u64, sandbox, 0)

/*
 * Descriptors, unless there is an error: for a disk image the file system and its root; for a list of programs the
 * policy layer. `programs` are paths below /usr.
 */
#define WIRE_FIELDS_prepared(F)                                                                                        \
    F(u32, step, 0)                                                                                                    \
    F(u32, error, 0)                                                                                                   \
    F(str, detail, 512)                                                                                                \
    F(strv, programs, 16384)

/* The child's last word before it becomes init: the step that failed or, when they were asked for, the times. */
#define WIRE_FIELDS_setup(F)                                                                                           \
    F(u32, step, 0)                                                                                                    \
    F(u32, error, 0)                                                                                                   \
    F(str, detail, 256)                                                                                                \
    F(u64v, steps_ns, 40)

/* What init has and the kernel gave it; how long entering the Landlock domain took. */
#define WIRE_FIELDS_hello(F)                                                                                           \
    F(u32, features, 0)                                                                                                \
    F(u32, channels_max, 0)                                                                                            \
    F(u64, landlock_ns, 0)

/* More strings for an EXEC that does not fit one frame: what comes before its own. */
#define WIRE_FIELDS_args(F)                                                                                            \
    F(u64, channel, 0)                                                                                                 \
    F(bytes, strings, 61440)

/*
 * `strings`: argc arguments, then envc NAME=value pairs. Idempotent by channel. With WIRE_EXEC_TTY, all that its
 * terminal of `rows` and `columns` shows is STDOUT, and what is typed is STDIN, whose end is typed too: Ctrl-D.
 */
#define WIRE_FIELDS_exec(F)                                                                                            \
    F(u64, channel, 0)                                                                                                 \
    F(u32, flags, 0)                                                                                                   \
    F(u8, filter, 0)                                                                                                   \
    F(u32, uid, 0)                                                                                                     \
    F(u32, gid, 0)                                                                                                     \
    F(u64, stdout_cap, 0)                                                                                              \
    F(u64, stderr_cap, 0)                                                                                              \
    F(u64, file_bytes, 0)                                                                                              \
    F(u64, stack_bytes, 0)                                                                                             \
    F(u64, cpu_seconds, 0)                                                                                             \
    F(u32, open_files, 0)                                                                                              \
    F(u16, rows, 0)                                                                                                    \
    F(u16, columns, 0)                                                                                                 \
    F(str, folder, 4096)                                                                                               \
    F(u32, argc, 0)                                                                                                    \
    F(u32, envc, 0)                                                                                                    \
    F(bytes, strings, 57344)

#define WIRE_FIELDS_dial(F)                                                                                            \
    F(u64, channel, 0)                                                                                                 \
    F(u16, port, 0)

/*
 * One operation on the sandbox's files, done by a process of its own inside, as `uid` and `gid`, so that a path means
 * what it means to a command. Relative paths start in `folder`. The answer is in answer.h, what each operation does in
 * init/files.h. EXIT says 0 or an errno. Idempotent by channel.
 */
#define WIRE_FIELDS_file(F)                                                                                            \
    F(u64, channel, 0)                                                                                                 \
    F(u8, operation, 0)                                                                                                \
    F(u32, flags, 0)                                                                                                   \
    F(u32, uid, 0)                                                                                                     \
    F(u32, gid, 0)                                                                                                     \
    F(u32, mode, 0)                                                                                                    \
    F(u64, offset, 0)                                                                                                  \
    F(u64, length, 0)                                                                                                  \
    F(str, folder, 4096)                                                                                               \
    F(str, path, 4096)                                                                                                 \
    F(str, new_path, 4096)

#define WIRE_FIELDS_stdin_data(F)                                                                                      \
    F(u64, channel, 0)                                                                                                 \
    F(u64, offset, 0)                                                                                                  \
    F(u8, end, 0)                                                                                                      \
    F(bytes, data, 61440)

/* Standard input up to `offset` was handed to the command: the client may send WIRE_WINDOW bytes beyond it. */
#define WIRE_FIELDS_taken(F)                                                                                           \
    F(u64, channel, 0)                                                                                                 \
    F(u64, offset, 0)                                                                                                  \
    F(u8, closed, 0)

#define WIRE_FIELDS_stdout_data(F)                                                                                     \
    F(u64, channel, 0)                                                                                                 \
    F(u64, offset, 0)                                                                                                  \
    F(bytes, data, 61440)

#define WIRE_FIELDS_stderr_data(F)                                                                                     \
    F(u64, channel, 0)                                                                                                 \
    F(u64, offset, 0)                                                                                                  \
    F(bytes, data, 61440)

/* Output up to these offsets is recorded: init forgets it, and may send WIRE_WINDOW bytes beyond. */
#define WIRE_FIELDS_ack(F)                                                                                             \
    F(u64, channel, 0)                                                                                                 \
    F(u64, stdout_offset, 0)                                                                                           \
    F(u64, stderr_offset, 0)

/* The reader went away: the command's next write is EPIPE. STDOUT of a terminal: it hangs up. */
#define WIRE_FIELDS_close(F)                                                                                           \
    F(u64, channel, 0)                                                                                                 \
    F(u8, stream, 0)

#define WIRE_FIELDS_signal(F)                                                                                          \
    F(u64, channel, 0)                                                                                                 \
    F(u32, signal, 0)                                                                                                  \
    F(u8, scope, 0)

#define WIRE_FIELDS_resize(F)                                                                                          \
    F(u64, channel, 0)                                                                                                 \
    F(u16, rows, 0)                                                                                                    \
    F(u16, columns, 0)

/*
 * A new client reads on from here. What was under way to the one before comes first, with a beginning that that one may
 * have read already, and then once more: the client takes only what continues what it has. It may acknowledge that,
 * too. `start` tells clients apart: RESUMED says it again. Until that has come the client sends no STDIN.
 */
#define WIRE_FIELDS_resume(F)                                                                                          \
    F(u64, channel, 0)                                                                                                 \
    F(u64, stdout_offset, 0)                                                                                           \
    F(u64, stderr_offset, 0)                                                                                           \
    F(u32, start, 0)

/*
 * The answer to RESUME: all that earlier clients put on the link has been read by now, and standard input goes on at
 * `stdin_offset`. `taken` and `closed` as in TAKEN; `ended`: its end has come. What comes of the output from now on
 * starts at `stdout_offset` and `stderr_offset`: those of RESUME, or later ones when what lies between was acknowledged
 * to an earlier client and is not kept any more.
 */
#define WIRE_FIELDS_resumed(F)                                                                                         \
    F(u64, channel, 0)                                                                                                 \
    F(u32, start, 0)                                                                                                   \
    F(u64, stdin_offset, 0)                                                                                            \
    F(u64, taken, 0)                                                                                                   \
    F(u8, closed, 0)                                                                                                   \
    F(u8, ended, 0)                                                                                                    \
    F(u64, stdout_offset, 0)                                                                                           \
    F(u64, stderr_offset, 0)

/*
 * The end of a channel, with the last of its output: a short command's whole answer is this one frame. The totals
 * count every byte the command wrote, forwarded or not.
 */
#define WIRE_FIELDS_exit(F)                                                                                            \
    F(u64, channel, 0)                                                                                                 \
    F(u8, kind, 0)                                                                                                     \
    F(u32, value, 0)                                                                                                   \
    F(u8, failed, 0)                                                                                                   \
    F(u64, user_us, 0)                                                                                                 \
    F(u64, system_us, 0)                                                                                               \
    F(u64, peak_bytes, 0)                                                                                              \
    F(u64, duration_ns, 0)                                                                                             \
    F(u64, disk_free_bytes, 0)                                                                                         \
    F(u64, disk_free_inodes, 0)                                                                                        \
    F(u64, stdout_total, 0)                                                                                            \
    F(u64, stderr_total, 0)                                                                                            \
    F(u64, stdout_offset, 0)                                                                                           \
    F(u64, stderr_offset, 0)                                                                                           \
    F(bytes, stdout_tail, 30720)                                                                                       \
    F(bytes, stderr_tail, 30720)

/* The result was recorded: init forgets the channel. */
#define WIRE_FIELDS_release(F) F(u64, channel, 0)

#define WIRE_FIELDS_fetch(F)                                                                                           \
    F(u64, fetch, 0)                                                                                                   \
    F(u64, sandbox, 0)                                                                                                 \
    F(str, method, 32)                                                                                                 \
    F(str, url, 8192)                                                                                                  \
    F(strv, headers, 16384)                                                                                            \
    F(u8, end, 0)                                                                                                      \
    F(bytes, body, 32768)

#define WIRE_FIELDS_fetched(F)                                                                                         \
    F(u64, fetch, 0)                                                                                                   \
    F(u16, status, 0)                                                                                                  \
    F(strv, headers, 16384)                                                                                            \
    F(u8, end, 0)                                                                                                      \
    F(bytes, body, 45056)

/* The way out of a sandbox that is about to run. Descriptors: its TCP listener, its UDP socket, and what steers
 * connections to the former for as long as it is open. */
#define WIRE_FIELDS_plug(F) F(u64, sandbox, 0)

/*
 * What the sandbox may reach from now on, instead of what was said before. Nothing is let through before the first of
 * these. Rules as in airlock/rules.h; those of `deny` hold for all. Limits of 0 are the airlock's own.
 */
#define WIRE_FIELDS_rules(F)                                                                                           \
    F(u64, sandbox, 0)                                                                                                 \
    F(u64, generation, 0)                                                                                              \
    F(u8, mode, 0)                                                                                                     \
    F(u32, connections_max, 0)                                                                                         \
    F(u32, connects_per_second, 0)                                                                                     \
    F(u64, bytes_max, 0)                                                                                               \
    F(strv, allow, 16384)                                                                                              \
    F(strv, deny, 16384)

/* They are in force; or, when there is a detail, they are not, and those before still are. */
#define WIRE_FIELDS_ruled(F)                                                                                           \
    F(u64, sandbox, 0)                                                                                                 \
    F(u64, generation, 0)                                                                                              \
    F(str, detail, 512)

/* The sandbox is gone, or has no network any more: all its connections end. */
#define WIRE_FIELDS_unplug(F) F(u64, sandbox, 0)

/* One decision of the airlock's, or the end of a connection that it allowed. `lost`: how many could not be told before
 * this one. */
#define WIRE_FIELDS_decision(F)                                                                                        \
    F(u64, sandbox, 0)                                                                                                 \
    F(u64, time_ms, 0)                                                                                                 \
    F(u8, kind, 0)                                                                                                     \
    F(u8, verdict, 0)                                                                                                  \
    F(u16, port, 0)                                                                                                    \
    F(u64, sent_bytes, 0)                                                                                              \
    F(u64, received_bytes, 0)                                                                                          \
    F(u32, lost, 0)                                                                                                    \
    F(str, name, 255)                                                                                                  \
    F(str, rule, 320)                                                                                                  \
    F(str, why, 640)

/* What a name stands for. `target` is a symlink's. In the answer to READ and STAT the name is empty. */
#define WIRE_FIELDS_entry(F)                                                                                           \
    F(u8, kind, 0)                                                                                                     \
    F(u32, mode, 0)                                                                                                    \
    F(u32, uid, 0)                                                                                                     \
    F(u32, gid, 0)                                                                                                     \
    F(u64, size, 0)                                                                                                    \
    F(u64, modified_ns, 0)                                                                                             \
    F(str, name, 4096)                                                                                                 \
    F(str, target, 4096)

/* How much of what came is in the file now, also when not all of it is. */
#define WIRE_FIELDS_written(F) F(u64, bytes, 0)

/* Something happened to `name` in the watched folder. The two events of a rename share a cookie. */
#define WIRE_FIELDS_event(F)                                                                                           \
    F(u8, kind, 0)                                                                                                     \
    F(u8, is_folder, 0)                                                                                                \
    F(u32, cookie, 0)                                                                                                  \
    F(str, name, 4096)

/* One of many names could not be dealt with; the rest is. */
#define WIRE_FIELDS_problem(F)                                                                                         \
    F(u32, error, 0)                                                                                                   \
    F(str, path, 4096)
