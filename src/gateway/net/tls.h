/*
 * tls: TLS 1.2 and 1.3 with OpenSSL, without I/O: bytes of the socket in and out, bytes of the application in and out.
 *
 * A context holds a certificate chain and its key, which come as bytes: the gateway opens no path. A session is one
 * connection's; stream.c moves its bytes. ALPN offers http/1.1 and nothing else so far.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct tls_context;
struct tls_session;

/*
 * From PEM: the chain, the server's own certificate first, and its private key. ERROR_INVALID says which of the two
 * could not be read, or that they do not belong together.
 */
_must_use_ int tls_context_new(const void *chain, size_t chain_length, const void *key, size_t key_length,
                               struct tls_context **ret_context, struct error *err);

/* The same from two descriptors, read from where they stand to the end, at most 1 MiB each. They stay open. */
_must_use_ int tls_context_new_fds(int chain_fd, int key_fd, struct tls_context **ret_context, struct error *err);

/* Sessions that were made from it live on. NULL is legal. */
void tls_context_free(struct tls_context *context);

/* The server's end. NULL without memory. */
struct tls_session *tls_session_new(struct tls_context *context);
void tls_session_free(struct tls_session *session);

/* What came from the socket. 0, -ENOBUFS (take out first what there is) or -ENOMEM. */
_must_use_ int tls_put(struct tls_session *session, const void *data, size_t length);

/*
 * Bytes for the application. The count; 0: nothing before more comes from the socket; -EPIPE at the orderly end;
 * -EPROTO when what came is not TLS, or not one we speak: then say the rest (tls_take()) and close.
 */
_must_use_ int tls_read(struct tls_session *session, void *data, size_t size);

/* Bytes of the application; only after the handshake. All are taken: 0 or -EPROTO, -ENOMEM. */
_must_use_ int tls_write(struct tls_session *session, const void *data, size_t length);

/* Say goodbye: close_notify is among the bytes to be taken after. */
void tls_end(struct tls_session *session);

/* What is to go to the socket: a view that lives until the next call on this session. */
size_t tls_pending(struct tls_session *session, const void **ret_data);
void tls_taken(struct tls_session *session, size_t length);

bool tls_is_ready(const struct tls_session *session); /* the handshake is over */
