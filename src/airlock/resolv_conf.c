#include "airlock/resolv_conf.h"

#include "airlock/address.h"

#include <stdio.h>
#include <string.h>

/* The address of a `nameserver` line, or -EINVAL. */
static int parse_line(const char *line, size_t length, struct address *ret_address)
{
    static const char word[] = "nameserver";
    static const char blanks[] = " \t\r";
    char text[128] = "";
    char *rest = NULL;

    memcpy(text, line, length < sizeof text ? length : sizeof text - 1);
    const char *first = strtok_r(text, blanks, &rest);
    const char *address = strtok_r(NULL, blanks, &rest);
    if (first == NULL || address == NULL || strcmp(first, word) != 0)
        return -EINVAL;
    return address_parse(address, strlen(address), ret_address);
}

void resolv_conf_servers(const char *text, char *list, size_t size)
{
    size_t used = 0;

    list[0] = '\0';
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        struct address address;
        char plain[ADDRESS_TEXT_SIZE];
        if (parse_line(text, length, &address) == 0) {
            bool is_six = address.family == 6;
            address_format(&address, plain);
            int n = snprintf(list + used, size - used, "%s%s%s%s", used > 0 ? "," : "", is_six ? "[" : "", plain,
                             is_six ? "]" : "");
            if (n < 0 || (size_t)n >= size - used) {
                list[used] = '\0';
                return;
            }
            used += (size_t)n;
        }
        text += length + (text[length] == '\n' ? 1 : 0);
    }
}
