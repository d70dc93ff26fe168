/* Any bytes as a frame. What is accepted has exactly one encoding: the bytes it came from. */
#include "fuzz.h"
#include "wire/wire.h"

#include <string.h>

static void check_permits(enum wire_type type)
{
    for (unsigned sender = WIRE_BY_CLIENT; sender <= WIRE_BY_WORKER; sender *= 2) {
        for (unsigned state = WIRE_IN_STARTING; state <= WIRE_IN_RUNNING; state *= 2) {
            bool with_none = wire_permits(type, (enum wire_sender)sender, (enum wire_state)state, 0);
            MUST(with_none || !wire_permits(type, (enum wire_sender)sender, (enum wire_state)state, 1));
            MUST(!wire_permits(type, (enum wire_sender)sender, (enum wire_state)state, SIZE_MAX));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[WIRE_FRAME_MAX];
    struct wire_message message;
    int length = wire_frame_length(data, size);

    MUST(length == -EBADMSG || (length == 0) == (size < WIRE_HEADER_SIZE));
    if (size > WIRE_HEADER_SIZE - 3)
        check_permits((enum wire_type)data[5]);
    if (wire_decode(data, size, &message) < 0)
        return 0;
    MUST(length >= 0 && (size_t)length == size);
    MUST(strcmp(wire_name(message.type), "unknown") != 0);
    MUST(wire_encode(&message, again, sizeof again) == length);
    MUST(memcmp(again, data, size) == 0);
    MUST(wire_encode(&message, again, size - 1) == -EMSGSIZE);
    return 0;
}
