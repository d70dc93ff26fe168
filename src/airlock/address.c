#include "airlock/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

struct range {
    uint8_t bytes[16];
    unsigned bits;
    const char *what;
};

/* Of the IANA special-purpose registries: what leads to this machine, its network or its provider. */
static const struct range ranges4[] = {
    {{0}, 8, "an address of this network"},
    {{10}, 8, "a private address"},
    {{100, 64}, 10, "an address of the provider's own network"},
    {{127}, 8, "a loopback address"},
    {{168, 63, 129, 16}, 32, "an address of the provider's, where clouds keep their metadata"},
    {{169, 254}, 16, "a link-local address, where clouds keep their metadata"},
    {{172, 16}, 12, "a private address"},
    {{192, 0, 0}, 24, "an address of protocols"},
    {{192, 88, 99}, 24, "a 6to4 relay"},
    {{192, 168}, 16, "a private address"},
    {{198, 18}, 15, "an address of the airlock's own"},
    {{224}, 4, "a multicast address"},
    {{240}, 4, "a reserved address"},
};
static const struct range ranges6[] = {
    {{[15] = 1}, 128, "a loopback address"},
    {{0}, 96, "an IPv4-compatible address"},
    {{[10] = 0xff, [11] = 0xff}, 96, "an IPv4-mapped address"},
    {{[8] = 0xff, [9] = 0xff}, 96, "an IPv4-translated address"},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "a private NAT64 address"},
    {{0x01}, 64, "an address that is thrown away"},
    {{0x20, 0x01, 0, 0}, 32, "a Teredo address"},
    {{0x3f, 0xff}, 20, "an address for documentation"},
    {{0x5f, 0x00}, 16, "an address of segment routing"},
    {{0xfc}, 7, "a private address"},
    {{0xfe, 0x80}, 10, "a link-local address"},
    {{0xfe, 0xc0}, 10, "a site-local address"},
    {{0xff}, 8, "a multicast address"},
};
static const struct range mapped = {{[10] = 0xff, [11] = 0xff}, 96, ""};
/* The kernel takes an address of all zeros for its own loopback address. */
static const struct range loopback4[] = {{{0}, 8, ""}, {{127}, 8, ""}};
static const struct range loopback6[] = {{{0}, 128, ""}, {{[15] = 1}, 128, ""}};
/* Addresses that are another way to write an IPv4 address: where it stands. */
static const struct {
    struct range range;
    size_t offset;
} embedding[] = {
    {{{0x00, 0x64, 0xff, 0x9b}, 96, ""}, 12},
    {{{0x20, 0x02}, 16, ""}, 2},
};

static bool is_in(const uint8_t *bytes, const struct range *range)
{
    size_t whole = range->bits / 8;
    unsigned rest = range->bits % 8;
    uint8_t mask = (uint8_t)(0xff00U >> rest);

    return memcmp(bytes, range->bytes, whole) == 0 && (rest == 0 || ((bytes[whole] ^ range->bytes[whole]) & mask) == 0);
}

static const char *find(const uint8_t *bytes, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_in(bytes, &ranges[i]))
            return ranges[i].what;
    }
    return NULL;
}

bool address_unwrap(const struct address *address, struct address *ret_inner)
{
    if (address->family == 4)
        return false;
    for (size_t i = 0; i < sizeof embedding / sizeof *embedding; i++) {
        if (!is_in(address->bytes, &embedding[i].range))
            continue;
        *ret_inner = (struct address){.family = 4};
        memcpy(ret_inner->bytes, address->bytes + embedding[i].offset, 4);
        return true;
    }
    return false;
}

const char *address_vet(const struct address *address)
{
    struct address inner;

    if (address->family == 4)
        return find(address->bytes, ranges4, sizeof ranges4 / sizeof *ranges4);
    if (address_unwrap(address, &inner))
        return address_vet(&inner);
    return find(address->bytes, ranges6, sizeof ranges6 / sizeof *ranges6);
}

bool address_is_loopback(const struct address *address)
{
    const struct range *ranges = address->family == 4 ? loopback4 : loopback6;

    return find(address->bytes, ranges, 2) != NULL;
}

int address_parse(const char *text, size_t length, struct address *ret_address)
{
    char copy[ADDRESS_TEXT_SIZE];
    struct address address = {0};

    if (length >= sizeof copy)
        return -EINVAL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (inet_pton(AF_INET, copy, address.bytes) == 1)
        address.family = 4;
    else if (inet_pton(AF_INET6, copy, address.bytes) == 1)
        address.family = 6;
    else
        return -EINVAL;
    if (address.family == 6 && is_in(address.bytes, &mapped)) {
        address.family = 4;
        memmove(address.bytes, address.bytes + 12, 4);
        memset(address.bytes + 4, 0, 12);
    }
    *ret_address = address;
    return 0;
}

void address_format(const struct address *address, char text[ADDRESS_TEXT_SIZE])
{
    if (inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, text, ADDRESS_TEXT_SIZE) == NULL)
        text[0] = '\0';
}

bool address_equal(const struct address *a, const struct address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16) == 0;
}

int address_from_socket(const struct sockaddr_storage *from, struct address *ret_address, uint16_t *ret_port)
{
    struct address address = {0};

    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)from;
        address.family = 4;
        memcpy(address.bytes, &in->sin_addr, 4);
        *ret_port = ntohs(in->sin_port);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
        bool is_mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        address.family = is_mapped ? 4 : 6;
        memcpy(address.bytes, in6->sin6_addr.s6_addr + (is_mapped ? 12 : 0), is_mapped ? 4 : 16);
        *ret_port = ntohs(in6->sin6_port);
    } else {
        return -EINVAL;
    }
    *ret_address = address;
    return 0;
}

socklen_t address_to_socket(const struct address *address, uint16_t port, struct sockaddr_storage *ret_to)
{
    memset(ret_to, 0, sizeof *ret_to);
    if (address->family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)ret_to;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret_to;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, address->bytes, 16);
    return sizeof *in6;
}
