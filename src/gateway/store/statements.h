/*
 * statements: all SQL that runs after the start, by name. Nowhere else is SQL written but in schema.c.
 */
#pragma once

#define SANDBOX_COLUMNS                                                                                                \
    "row, number, id, owner, agent, status, template, profile, settings, reason, created_ms, expires_ms, ended_ms, "   \
    "used_ms"
#define EXEC_COLUMNS                                                                                                   \
    "row, id, sandbox, owner, agent, channel, command, folder, settings, flags, state, started_ms, deadline_ms, "      \
    "ended_ms, exit_code, timed_out, truncated, duration_us, cpu_us, memory_peak_bytes, stdout_bytes, stderr_bytes"
#define AUDIT_COLUMNS                                                                                                  \
    "number, time_ms, principal, agent, sandbox, exec, action, verdict, detail, output_hash, previous, hash"
#define AUDIT_COLUMNS_OF_A                                                                                             \
    "a.number, a.time_ms, a.principal, a.agent, a.sandbox, a.exec, a.action, a.verdict, a.detail, a.output_hash, "     \
    "a.previous, a.hash"
/* By which names a record is found: kind 0 is the sandbox, 1 the agent, 2 the principal. */
#define AUDIT_NAMES                                                                                                    \
    "k.kind, CASE k.kind WHEN 0 THEN a.sandbox WHEN 1 THEN a.agent ELSE a.principal END AS called, a.number FROM "     \
    "audit a, (SELECT 0 AS kind UNION ALL SELECT 1 UNION ALL SELECT 2) k WHERE called IS NOT NULL"
#define KEY_COLUMNS "row, id, name, hash, scope, agent, created_ms, expires_ms, revoked_ms, used_ms"

/* Pages: ?1 is the cursor, ?2 the limit. A column that must be something or may be anything is (?n IS NULL OR ...). */
#define STATEMENTS(S)                                                                                                  \
    S(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    S(BEGIN_READ, "BEGIN")                                                                                             \
    S(COMMIT, "COMMIT")                                                                                                \
    S(ROLLBACK, "ROLLBACK")                                                                                            \
    S(PROBE, "REPLACE INTO scratch(row, data) VALUES(1, zeroblob(65536))")                                             \
    S(ADD_SANDBOX,                                                                                                     \
      "INSERT INTO sandboxes(number, id, owner, agent, status, template, profile, settings, reason, created_ms, "      \
      "expires_ms, ended_ms, used_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")                 \
    S(SET_SANDBOX,                                                                                                     \
      "UPDATE sandboxes SET agent = ?2, status = ?3, settings = ?4, reason = ?5, expires_ms = ?6, ended_ms = ?7, "     \
      "used_ms = ?8 WHERE id = ?1")                                                                                    \
    S(TOUCH_SANDBOX, "UPDATE sandboxes SET used_ms = ?2 WHERE id = ?1")                                                \
    S(ADD_EXEC,                                                                                                        \
      "INSERT INTO execs(id, sandbox, owner, agent, channel, command, folder, settings, flags, state, started_ms, "    \
      "deadline_ms, ended_ms, exit_code, timed_out, truncated, duration_us, cpu_us, memory_peak_bytes, stdout_bytes, " \
      "stderr_bytes) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, "    \
      "?20, ?21)")                                                                                                     \
    S(SET_EXEC,                                                                                                        \
      "UPDATE execs SET state = ?2, ended_ms = ?3, exit_code = ?4, timed_out = ?5, truncated = ?6, duration_us = ?7, " \
      "cpu_us = ?8, memory_peak_bytes = ?9, stdout_bytes = ?10, stderr_bytes = ?11 WHERE id = ?1")                     \
    S(EXEC_ROW, "SELECT row FROM execs WHERE id = ?1")                                                                 \
    S(OUTPUT_LAST, "SELECT position + length(data), hash FROM output WHERE exec = ?1 ORDER BY position DESC LIMIT 1")  \
    S(ADD_OUTPUT,                                                                                                      \
      "INSERT INTO output(exec, position, stream, offset, previous, hash, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")   \
    S(TRIM_OUTPUT, "DELETE FROM output WHERE exec = ?1 AND position < (SELECT max(position) FROM output WHERE "        \
                   "exec = ?1 AND position <= ?2)")                                                                    \
    S(ADD_AUDIT, "INSERT INTO audit(" AUDIT_COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")     \
    S(CHAIN, "SELECT number, hash FROM chain WHERE name = ?1")                                                         \
    S(SET_CHAIN, "UPDATE chain SET number = ?2, hash = ?3 WHERE name = ?1")                                            \
    S(ADD_KEY,                                                                                                         \
      "INSERT INTO keys(id, name, hash, scope, agent, created_ms, expires_ms, revoked_ms, used_ms) VALUES(?1, ?2, "    \
      "?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                                                   \
    S(REVOKE_KEY, "UPDATE keys SET revoked_ms = ?2 WHERE id = ?1")                                                     \
    S(TOUCH_KEY, "UPDATE keys SET used_ms = ?2 WHERE id = ?1")                                                         \
    S(SET_PASSWORD, "REPLACE INTO passwords(name, hash) VALUES(?1, ?2)")                                               \
    S(SET_SETTING, "REPLACE INTO settings(name, value) VALUES(?1, ?2)")                                                \
    S(DROP_SETTING, "DELETE FROM settings WHERE name = ?1")                                                            \
    S(META, "SELECT value FROM meta WHERE name = ?1")                                                                  \
    S(PASSWORD, "SELECT hash FROM passwords WHERE name = ?1")                                                          \
    S(SANDBOX_BY_ID,                                                                                                   \
      "SELECT " SANDBOX_COLUMNS " FROM sandboxes WHERE id = ?3 AND row < ?1 AND "                                      \
      "(?4 IS NULL OR owner = ?4) AND (?5 IS NULL OR agent = ?5) AND (?6 IS NULL OR status = ?6) LIMIT ?2")            \
    S(SANDBOXES_LIVE, "SELECT " SANDBOX_COLUMNS " FROM sandboxes WHERE ended_ms = 0 AND row < ?1 AND "                 \
                      "(?3 IS NULL OR id = ?3) AND (?4 IS NULL OR owner = ?4) AND (?5 IS NULL OR agent = ?5) AND "     \
                      "(?6 IS NULL OR status = ?6) ORDER BY row DESC LIMIT ?2")                                        \
    S(SANDBOXES, "SELECT " SANDBOX_COLUMNS " FROM sandboxes WHERE row < ?1 AND (?3 IS NULL OR id = ?3) AND "           \
                 "(?4 IS NULL OR owner = ?4) AND (?5 IS NULL OR agent = ?5) AND (?6 IS NULL OR status = ?6) "          \
                 "ORDER BY row DESC LIMIT ?2")                                                                         \
    S(EXEC_BY_ID, "SELECT " EXEC_COLUMNS " FROM execs WHERE id = ?3 AND row < ?1 AND (?4 IS NULL OR sandbox = ?4) "    \
                  "AND (?5 IS NULL OR owner = ?5) LIMIT ?2")                                                           \
    S(EXECS_LIVE, "SELECT " EXEC_COLUMNS " FROM execs WHERE ended_ms = 0 AND row < ?1 AND (?3 IS NULL OR id = ?3) "    \
                  "AND (?4 IS NULL OR sandbox = ?4) AND (?5 IS NULL OR owner = ?5) ORDER BY row DESC LIMIT ?2")        \
    S(EXECS_OF, "SELECT " EXEC_COLUMNS " FROM execs WHERE sandbox = ?4 AND row < ?1 AND (?3 IS NULL OR id = ?3) "      \
                "AND (?5 IS NULL OR owner = ?5) ORDER BY row DESC LIMIT ?2")                                           \
    S(EXECS, "SELECT " EXEC_COLUMNS " FROM execs WHERE row < ?1 AND (?3 IS NULL OR id = ?3) AND "                      \
             "(?4 IS NULL OR sandbox = ?4) AND (?5 IS NULL OR owner = ?5) ORDER BY row DESC LIMIT ?2")                 \
    S(AUDIT_TAIL, "SELECT " AUDIT_COLUMNS " FROM audit WHERE number < ?1 AND number > (SELECT number FROM chain "      \
                  "WHERE name = 'indexed') AND (?3 IS NULL OR sandbox = ?3) AND (?4 IS NULL OR agent = ?4) AND "       \
                  "(?5 IS NULL OR principal = ?5) ORDER BY number DESC LIMIT ?2")                                      \
    S(AUDIT_INDEXED, "SELECT " AUDIT_COLUMNS_OF_A " FROM audit_index i CROSS JOIN audit a ON a.number = i.number "     \
                     "WHERE i.kind = ?6 AND i.name = ?7 AND i.number < ?1 AND (?3 IS NULL OR a.sandbox = ?3) AND "     \
                     "(?4 IS NULL OR a.agent = ?4) AND (?5 IS NULL OR a.principal = ?5) "                              \
                     "ORDER BY i.number DESC LIMIT ?2")                                                                \
    S(AUDIT, "SELECT " AUDIT_COLUMNS " FROM audit WHERE number < ?1 AND (?3 IS NULL OR sandbox = ?3) AND "             \
             "(?4 IS NULL OR agent = ?4) AND (?5 IS NULL OR principal = ?5) ORDER BY number DESC LIMIT ?2")            \
    S(AUDIT_UPWARD, "SELECT " AUDIT_COLUMNS " FROM audit WHERE number >= ?1 ORDER BY number LIMIT ?2")                 \
    S(AUDIT_FIRST, "SELECT min(number) FROM audit")                                                                    \
    S(KEYS, "SELECT " KEY_COLUMNS " FROM keys WHERE row < ?1 ORDER BY row DESC LIMIT ?2")                              \
    S(SETTINGS, "SELECT name, value FROM settings ORDER BY name LIMIT ?2 OFFSET ?1")                                   \
    S(OUTPUT, "SELECT position, stream, offset, data FROM output WHERE exec = ?1 AND position >= "                     \
              "ifnull((SELECT position FROM output WHERE exec = ?1 AND position <= ?2 ORDER BY position DESC "         \
              "LIMIT 1), 0) ORDER BY position LIMIT ?3")                                                               \
    S(OUTPUT_CHAIN, "SELECT position, stream, offset, data, previous, hash FROM output WHERE exec = ?1 "               \
                    "ORDER BY position")                                                                               \
    S(OUTPUT_FIRST, "SELECT position FROM output WHERE exec = ?1 ORDER BY position LIMIT 1")                           \
    S(OUTPUT_END, "SELECT position + length(data), offset + length(data), stream FROM output WHERE exec = ?1 "         \
                  "ORDER BY position DESC LIMIT 1")                                                                    \
    S(PRUNE_AUDIT_LAST, "SELECT max(number) FROM (SELECT number, time_ms FROM audit ORDER BY number LIMIT ?1)")        \
    S(PRUNE_AUDIT_KEPT, "SELECT min(number) FROM (SELECT number, time_ms FROM audit ORDER BY number LIMIT ?1) "        \
                        "WHERE time_ms >= ?2")                                                                         \
    S(AUDIT_HASH, "SELECT hash FROM audit WHERE number = ?1")                                                          \
    S(INDEX_AUDIT, "INSERT OR IGNORE INTO audit_index SELECT " AUDIT_NAMES " AND a.number > ?1 AND a.number <= ?2")    \
    S(PRUNE_INDEX,                                                                                                     \
      "DELETE FROM audit_index WHERE (kind, name, number) IN (SELECT " AUDIT_NAMES " AND a.number <= ?1)")             \
    S(PRUNE_AUDIT, "DELETE FROM audit WHERE number <= ?1")                                                             \
    S(PRUNE_EXEC, "SELECT row FROM (SELECT row, ended_ms FROM execs ORDER BY row LIMIT 1000) WHERE ended_ms > 0 AND "  \
                  "ended_ms < ?1 ORDER BY row LIMIT 1")                                                                \
    S(PRUNE_OUTPUT, "DELETE FROM output WHERE exec = ?1 AND position IN (SELECT position FROM output WHERE exec = ?1 " \
                    "ORDER BY position LIMIT ?2)")                                                                     \
    S(DROP_EXEC, "DELETE FROM execs WHERE row = ?1")                                                                   \
    S(PRUNE_SANDBOXES, "DELETE FROM sandboxes WHERE row IN (SELECT s.row FROM sandboxes s WHERE s.ended_ms > 0 AND "   \
                       "s.ended_ms < ?1 AND NOT EXISTS(SELECT 1 FROM execs e WHERE e.sandbox = s.id) LIMIT ?2)")       \
    S(PAGE_COUNT, "SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM "                   \
                  "pragma_freelist_count)")

enum statement {
#define STATEMENT_NAME(name, text) STATEMENT_##name,
    STATEMENTS(STATEMENT_NAME)
#undef STATEMENT_NAME
        STATEMENTS_COUNT,
};
