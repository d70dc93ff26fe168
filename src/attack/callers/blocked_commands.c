/*
 * blocked-commands: what the default blocklist promises to refuse, in many spellings. It is advice: what gets past
 * it must reach nothing but the sandbox itself.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <string.h>

static const char *const promised[] = {
    "rm -rf /",
    "rm -fr --no-preserve-root /*",
    "/usr/bin/../bin/rm -rf /",
    "\\rm -rf /",
    "'r'm -rf \"/\"",
    "rm${IFS}-rf${IFS}/",
    "rm \\\n -rf \\\n /",
    "sh -c 'rm -rf /'",
    "env A=b xargs rm -rf /",
    ":(){ :|:& };:",
    "echo $(reboot)",
    "echo `halt`",
    "busybox reboot",
    "eval reboot",
    "cat <<x | sh\nreboot\nx",
    "mkfs.ext4 /dev/sda",
    "dd if=/dev/zero of=/dev/sda",
    "echo x > /dev/sda",
};

/* In words that no list of words can know. */
static const char *const evasions[] = {
    "x=r; ${x}m -rf --no-preserve-${x}oot /usr/bin /etc",
    "$(printf 'r%s' m) -rf /usr/bin /etc",
    "echo cm0gLXJmIC91c3IvYmluIC9ldGM= | base64 -d | sh",
    "alias x='rm -rf'; eval \"x /usr/bin /etc\"",
    "a=reb; b=oot; $a$b; /sbin/$a$b -f; systemctl $a$b",
    "python3 -c 'import subprocess; subprocess.call(\"re\" \"boot -f\", shell=True)'",
    "\xef\xbd\x92\xef\xbd\x8d -rf /",
    "for d in sda vda nvme0n1 mem port; do echo x > /d''ev/./$d; mkn''od /tmp/$d b 8 0 && echo x > /tmp/$d; done",
    "echo b > /proc/sysrq-trigger",
    "kill -9 -1 1",
};

/* Is it a sandbox in which everything is there? */
static bool is_whole(const struct tenant *tenant)
{
    struct reply reply;
    int status = tenant_shell(tenant, "test -x /usr/bin/env -a -e /etc/passwd && echo who''le", &reply);
    bool is = status == 200 && reply_says(&reply, "\"whole\\n\"");

    reply_release(&reply);
    return is;
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;

    if (!tenant_move_in(&tenant, attempt, caller_key(), "{\"resource_limits\":{\"memory_mb\":64,\"disk_mb\":8}}"))
        return;
    for (size_t i = 0; i < sizeof promised / sizeof *promised; i++) {
        int status = tenant_shell(&tenant, promised[i], NULL);
        attempt_say(attempt, promised[i], status == 403, "the answer is %d", status);
    }
    for (size_t i = 0; i < sizeof evasions / sizeof *evasions; i++) {
        int status = tenant_shell(&tenant, evasions[i], NULL);
        attempt_say(attempt, evasions[i], (status == 200 || status == 403) && is_whole(&tenant),
                    "the answer is %d, and the sandbox not what it was", status);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_blocked_commands = {
    .name = "blocked-commands",
    .tries = "commands that the blocklist names, and ways around it",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
