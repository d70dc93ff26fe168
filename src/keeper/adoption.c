#include "keeper/adoption.h"

#include "wire/link.h"

enum { AT_ONCE = 64 };

void adoption_reset(struct registry *registry)
{
    for (struct sandbox *sandbox = NULL; (sandbox = registry_next(registry, sandbox)) != NULL;)
        sandbox->is_told = false;
}

static int send_one(int socket, struct sandbox *sandbox)
{
    struct wire_message message = {.type = WIRE_ADOPT,
                                   .adopt = {.sandbox = sandbox->id, .uid_first = sandbox->uid_first}};
    int r = link_send(socket, &message, &sandbox->guest_fd, 1);

    sandbox->is_told = r == 0;
    return r;
}

int adoption_continue(int socket, struct registry *registry)
{
    struct wire_message end = {.type = WIRE_ADOPTED};
    unsigned sent = 0;

    for (struct sandbox *sandbox = NULL; (sandbox = registry_next(registry, sandbox)) != NULL;) {
        if (sandbox->is_told)
            end.adopted.count++;
        if (sandbox->is_told || sandbox->state != SANDBOX_LIVE)
            continue;
        int r = sent++ < AT_ONCE ? send_one(socket, sandbox) : -EAGAIN;
        if (r < 0)
            return r == -EAGAIN ? 0 : r;
        end.adopted.count++;
    }
    int r = link_send(socket, &end, NULL, 0);
    return r < 0 ? (r == -EAGAIN ? 0 : r) : 1;
}
