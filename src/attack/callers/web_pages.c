/*
 * web-pages: a page that somebody has open in a browser on this machine: by a name that points to 127.0.0.1 (DNS
 * rebinding), by a form, by fetch (CVE-2018-1000301 and many others).
 */
#include "attack/attack.h"
#include "attack/caller.h"

static const struct {
    const char *what;
    const char *headers;
    int status;
} rows[] = {
    {"a foreign name", "Host: evil.example\r\n", 421},
    {"a name that only begins like ours", "Host: localhost.evil.example\r\n", 421},
    {"a name that only ends like ours", "Host: evil-localhost\r\n", 421},
    {"another loopback address", "Host: 127.0.0.2\r\n", 421},
    {"all addresses", "Host: 0.0.0.0\r\n", 421},
    {"an address as a number", "Host: 2130706433\r\n", 421},
    {"an address in octal", "Host: 0177.0.0.1\r\n", 421},
    {"an address in IPv6", "Host: [::ffff:127.0.0.1]\r\n", 421},
    {"the service of a cloud", "Host: 169.254.169.254\r\n", 421},
    {"what a proxy would say", "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n", 421},
    {"a foreign page", "Origin: https://evil.example\r\n", 403},
    {"a page of no origin", "Origin: null\r\n", 403},
    {"a page on another port", "Origin: http://localhost:3000\r\n", 403},
    {"a page whose name begins like ours", "Origin: http://localhost.evil.example\r\n", 403},
    {"an extension", "Origin: chrome-extension://aaaaaaaa\r\n", 403},
    {"an empty origin", "Origin: \r\n", 403},
    {"a picture", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", 403},
    {"a page of a neighbour domain", "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n", 403},
};

static void calls(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        caller_try(attempt, rows[i].what,
                   &(struct ask){.path = "/api/v1/tools", .key = caller_key(), .headers = rows[i].headers},
                   STATUSES(rows[i].status));
    /* What a form can send without being asked first. */
    caller_try(attempt, "a form",
               &(struct ask){.method = "POST",
                             .path = "/api/v1/sandboxes",
                             .key = caller_key(),
                             .headers = "Content-Type: text/plain\r\n",
                             .body = "{}"},
               STATUSES(415));
    caller_try(attempt, "a page that asks first",
               &(struct ask){.method = "OPTIONS",
                             .path = "/api/v1/sandboxes",
                             .headers = "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n"},
               STATUSES(403));
}

const struct attack attack_web_pages = {
    .name = "web-pages",
    .tries = "web pages in a browser on this machine",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
