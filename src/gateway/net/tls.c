#include "gateway/net/tls.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <string.h>
#include <unistd.h>

enum {
    PEM_MOST = 1 << 20,
    INPUT_MOST = 256 << 10,
};

struct tls_context {
    SSL_CTX *ssl;
};

struct tls_session {
    SSL *ssl;
    BIO *input; /* both belong to `ssl` */
    BIO *output;
    bool has_failed;
};

/* What OpenSSL says is wrong, in front of what it says about where. */
static int fail(struct error *err, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    return error_set(err, ERROR_INVALID, 0, "%s%s%s", what, reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

/* Nobody is there to type one. */
static int no_password(char *buffer, int size, int is_writing, void *user)
{
    (void)buffer, (void)size, (void)is_writing, (void)user;
    return -1;
}

static int use_chain(SSL_CTX *ssl, BIO *pem)
{
    X509 *own = PEM_read_bio_X509_AUX(pem, NULL, no_password, NULL);
    int ok = own != NULL ? SSL_CTX_use_certificate(ssl, own) : 0;
    X509 *next;

    X509_free(own);
    while (ok == 1 && (next = PEM_read_bio_X509(pem, NULL, no_password, NULL)) != NULL) {
        ok = (int)SSL_CTX_add0_chain_cert(ssl, next);
        if (ok != 1)
            X509_free(next);
    }
    /* The end of the file is not an error. */
    if (ok == 1 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
        ERR_clear_error();
    return ok == 1 && ERR_peek_last_error() == 0 ? 0 : -EINVAL;
}

static int use_key(SSL_CTX *ssl, BIO *pem)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_password, NULL);
    /* Without a look at the certificate: whether they fit is asked after. */
    int ok = key != NULL ? SSL_CTX_use_PrivateKey(ssl, key) : 0;

    EVP_PKEY_free(key);
    return ok == 1 ? 0 : -EINVAL;
}

static int choose_protocol(SSL *ssl, const unsigned char **ret_chosen, unsigned char *ret_length,
                           const unsigned char *offered, unsigned offered_length, void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;

    (void)ssl, (void)user;
    int r = SSL_select_next_proto(&chosen, ret_length, ours, sizeof ours - 1, offered, offered_length);
    *ret_chosen = chosen;
    return r == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *make_context(void)
{
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());

    if (ssl == NULL || SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1) {
        SSL_CTX_free(ssl);
        return NULL;
    }
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* An idle connection keeps no buffers of 16 KiB. */
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    /* Tickets let a session go on with another server of the same keys; nothing is cached here. */
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    return ssl;
}

static int fill_context(SSL_CTX *ssl, BIO *chain, BIO *key, struct error *err)
{
    if (use_chain(ssl, chain) < 0)
        return fail(err, "reading the TLS certificate: it has to be PEM, the server's own first");
    /* With the certificate there this also asks whether they fit; then the key itself was read. */
    if (use_key(ssl, key) < 0 && ERR_GET_REASON(ERR_peek_last_error()) != X509_R_KEY_VALUES_MISMATCH &&
        ERR_GET_REASON(ERR_peek_last_error()) != X509_R_KEY_TYPE_MISMATCH)
        return fail(err, "reading the TLS key: it has to be PEM and without a password");
    if (SSL_CTX_check_private_key(ssl) != 1)
        return fail(err, "the TLS key does not belong to the certificate; configure the key that the certificate was "
                         "made for");
    return 0;
}

static int fill_from_memory(SSL_CTX *ssl, const void *chain, size_t chain_length, const void *key, size_t key_length,
                            struct error *err)
{
    BIO *chain_bio = chain_length <= PEM_MOST ? BIO_new_mem_buf(chain, (int)chain_length) : NULL;
    BIO *key_bio = key_length <= PEM_MOST ? BIO_new_mem_buf(key, (int)key_length) : NULL;
    int r = -ENOMEM;

    ERR_clear_error();
    if (chain_bio != NULL && key_bio != NULL)
        r = fill_context(ssl, chain_bio, key_bio, err);
    else
        ignore_result(error_set(err, ERROR_SYSTEM, ENOMEM, "reading the TLS certificate and its key"));
    BIO_free(chain_bio);
    BIO_free(key_bio);
    return r;
}

int tls_context_new(const void *chain, size_t chain_length, const void *key, size_t key_length,
                    struct tls_context **ret_context, struct error *err)
{
    struct tls_context *context = calloc(1, sizeof *context);

    if (context == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making a TLS context");
    context->ssl = make_context();
    int r = -ENOMEM;
    if (context->ssl != NULL)
        r = fill_from_memory(context->ssl, chain, chain_length, key, key_length, err);
    else
        ignore_result(error_set(err, ERROR_SYSTEM, ENOMEM, "making a TLS context"));
    if (r < 0) {
        tls_context_free(context);
        return r;
    }
    *ret_context = context;
    return 0;
}

static int read_pem(int fd, const char *what, struct buf *buf, struct error *err)
{
    uint8_t piece[4096];
    ssize_t n;

    /* Somebody may have read it before us: who checked the pair, or the gateway that we follow. */
    (void)lseek(fd, 0, SEEK_SET);
    while ((n = fd_read_all(fd, piece, sizeof piece)) > 0) {
        if (buf_append(buf, piece, (size_t)n) < 0)
            return error_set(err, ERROR_LIMIT, EFBIG, "reading the TLS %s", what);
    }
    return n < 0 ? error_set(err, ERROR_SYSTEM, (int)-n, "reading the TLS %s", what) : 0;
}

int tls_context_new_fds(int chain_fd, int key_fd, struct tls_context **ret_context, struct error *err)
{
    struct buf chain = buf_init(PEM_MOST);
    struct buf key = buf_init(PEM_MOST);
    int r = read_pem(chain_fd, "certificate", &chain, err);

    if (r == 0)
        r = read_pem(key_fd, "key", &key, err);
    if (r == 0)
        r = tls_context_new(chain.data, chain.length, key.data, key.length, ret_context, err);
    if (key.data != NULL)
        explicit_bzero(key.data, key.room);
    buf_release(&key);
    buf_release(&chain);
    return r;
}

void tls_context_free(struct tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->ssl);
    free(context);
}

struct tls_session *tls_session_new(struct tls_context *context)
{
    struct tls_session *session = calloc(1, sizeof *session);

    if (session == NULL)
        return NULL;
    session->ssl = SSL_new(context->ssl);
    session->input = BIO_new(BIO_s_mem());
    session->output = BIO_new(BIO_s_mem());
    if (session->ssl == NULL || session->input == NULL || session->output == NULL) {
        BIO_free(session->input);
        BIO_free(session->output);
        SSL_free(session->ssl);
        free(session);
        return NULL;
    }
    /* Empty is not the end. */
    BIO_set_mem_eof_return(session->input, -1);
    SSL_set_bio(session->ssl, session->input, session->output);
    SSL_set_accept_state(session->ssl);
    return session;
}

void tls_session_free(struct tls_session *session)
{
    if (session == NULL)
        return;
    SSL_free(session->ssl);
    free(session);
}

int tls_put(struct tls_session *session, const void *data, size_t length)
{
    if (length > INPUT_MOST || BIO_ctrl_pending(session->input) > INPUT_MOST - length)
        return -ENOBUFS;
    return length == 0 || BIO_write(session->input, data, (int)length) == (int)length ? 0 : -ENOMEM;
}

int tls_read(struct tls_session *session, void *data, size_t size)
{
    if (session->has_failed)
        return -EPROTO;
    ERR_clear_error();
    int n = SSL_read(session->ssl, data, size < INT_MAX ? (int)size : INT_MAX);
    if (n > 0)
        return n;
    int error = SSL_get_error(session->ssl, n);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ)
        return 0;
    if (error == SSL_ERROR_ZERO_RETURN)
        return -EPIPE;
    session->has_failed = true;
    return -EPROTO;
}

int tls_write(struct tls_session *session, const void *data, size_t length)
{
    const char *at = data;

    while (length > 0) {
        ERR_clear_error();
        int n = session->has_failed ? -1 : SSL_write(session->ssl, at, length < INT_MAX ? (int)length : INT_MAX);
        if (n <= 0) {
            ERR_clear_error();
            session->has_failed = true;
            return -EPROTO;
        }
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

void tls_end(struct tls_session *session)
{
    /* After a failure it would be a mistake to call it. */
    if (!session->has_failed && SSL_is_init_finished(session->ssl))
        ignore_result(SSL_shutdown(session->ssl));
    ERR_clear_error();
}

size_t tls_pending(struct tls_session *session, const void **ret_data)
{
    char *data = NULL;
    long length = BIO_get_mem_data(session->output, &data);

    *ret_data = data;
    return length > 0 ? (size_t)length : 0;
}

void tls_taken(struct tls_session *session, size_t length)
{
    const void *data;

    if (length >= tls_pending(session, &data)) {
        ignore_result(BIO_reset(session->output));
        return;
    }
    char nowhere[4096];
    while (length > 0) {
        int n = BIO_read(session->output, nowhere, length < sizeof nowhere ? (int)length : (int)sizeof nowhere);
        if (n <= 0)
            return;
        length -= (size_t)n;
    }
}

bool tls_is_ready(const struct tls_session *session)
{
    return SSL_is_init_finished(session->ssl);
}
