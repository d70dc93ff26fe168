/*
 * TLS: contexts from good and bad certificates, and the server behind it with OpenSSL's own client.
 */
#include "gateway/net/tls.h"
#include "serve.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/mman.h>

#define CLOSE "Host: h\r\nConnection: close\r\n"

enum { PEM_SIZE = 8192 };

struct pair {
    char certificate[PEM_SIZE];
    char key[PEM_SIZE];
};

static char text[SERVE_TEXT];

static void take_pem(BIO *bio, char pem[PEM_SIZE])
{
    int n = BIO_read(bio, pem, PEM_SIZE - 1);

    assert_true(n > 0);
    pem[n] = '\0';
    BIO_free(bio);
}

/* A certificate that signs itself. */
static struct pair make_pair(const char *curve, const char *password)
{
    struct pair pair;
    EVP_PKEY *key = curve != NULL ? EVP_EC_gen(curve) : EVP_RSA_gen(2048);
    X509 *certificate = X509_new();
    BIO *out = BIO_new(BIO_s_mem());
    BIO *key_out = BIO_new(BIO_s_mem());

    assert_non_null(key);
    assert_non_null(certificate);
    assert_int_equal(X509_set_version(certificate, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), -60));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), 3600));
    assert_int_equal(X509_set_pubkey(certificate, key), 1);
    X509_NAME *name = X509_get_subject_name(certificate);
    assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"h", -1, -1, 0), 1);
    assert_int_equal(X509_set_issuer_name(certificate, name), 1);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(out, certificate), 1);
    assert_int_equal(PEM_write_bio_PrivateKey(key_out, key, password != NULL ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL,
                                              (void *)(uintptr_t)password),
                     1);
    take_pem(out, pair.certificate);
    take_pem(key_out, pair.key);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return pair;
}

static int make_context(const char *certificate, const char *key, struct tls_context **ret_context, struct error *err)
{
    return tls_context_new(certificate, strlen(certificate), key, strlen(key), ret_context, err);
}

TEST(good_certificates)
{
    struct pair pairs[] = {make_pair("P-256", NULL), make_pair(NULL, NULL)};
    struct error err = {0};

    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct tls_context *context = NULL;
        char chain[2 * PEM_SIZE];
        (void)stpcpy(stpcpy(chain, pairs[i].certificate), pairs[1 - i].certificate);
        assert_int_equal(make_context(chain, pairs[i].key, &context, &err), 0);
        tls_context_free(context);
    }
    tls_context_free(NULL);
}

TEST(bad_certificates)
{
    struct pair a = make_pair("P-256", NULL);
    struct pair b = make_pair("P-256", NULL);
    struct pair rsa = make_pair(NULL, NULL);
    struct pair locked = make_pair("P-256", "secret");
    char broken[PEM_SIZE];
    char broken_chain[2 * PEM_SIZE];

    (void)stpcpy(broken, a.certificate);
    broken[100] = '!';
    (void)stpcpy(stpcpy(broken_chain, a.certificate), broken);
    const struct {
        const char *name;
        const char *certificate;
        const char *key;
        const char *message;
    } rows[] = {
        {"another key", a.certificate, b.key, "does not belong to the certificate"},
        {"a key of another kind", a.certificate, rsa.key, "does not belong to the certificate"},
        {"no certificate", "", a.key, "reading the TLS certificate"},
        {"garbage for a certificate", "garbage", a.key, "reading the TLS certificate"},
        {"a broken certificate", broken, a.key, "reading the TLS certificate"},
        {"a broken second certificate", broken_chain, a.key, "reading the TLS certificate"},
        {"no key", a.certificate, "", "reading the TLS key"},
        {"garbage for a key", a.certificate, "garbage", "reading the TLS key"},
        {"the certificate for a key", a.certificate, a.certificate, "reading the TLS key"},
        {"the key for a certificate", a.key, a.key, "reading the TLS certificate"},
        {"a key with a password", locked.certificate, locked.key, "reading the TLS key"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tls_context *context = NULL;
        struct error err = {0};
        assert_row(rows[i].name, make_context(rows[i].certificate, rows[i].key, &context, &err) < 0);
        assert_row(rows[i].name, context == NULL && err.code == ERROR_INVALID);
        if (strstr(err.message, rows[i].message) == NULL)
            fail_msg("%s: %s", rows[i].name, err.message);
    }
}

static int file_with(const char *content)
{
    int fd = memfd_create("pem", MFD_CLOEXEC);

    assert_return_code(fd, errno);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

TEST(certificates_come_as_descriptors)
{
    struct pair pair = make_pair("P-256", NULL);
    struct tls_context *context = NULL;
    struct error err = {0};
    int chain = file_with(pair.certificate);
    int key = file_with(pair.key);

    assert_int_equal(tls_context_new_fds(chain, key, &context, &err), 0);
    tls_context_free(context);
    assert_true(tls_context_new_fds(chain, -1, &context, &err) < 0);
    (void)close(chain);
    (void)close(key);
}

/* --- with the server --- */

static struct serve *start(struct server_limits limits)
{
    struct pair pair = make_pair("P-256", NULL);
    struct serve *serve = calloc(1, sizeof *serve);
    struct error err = {0};

    assert_non_null(serve);
    serve->limits = limits;
    serve->stop_within_ms = 5000;
    assert_int_equal(make_context(pair.certificate, pair.key, &serve->tls, &err), 0);
    serve_start(serve);
    return serve;
}

static void end(struct serve *serve)
{
    serve_end(serve);
    tls_context_free(serve->tls);
    free(serve);
}

static SSL *dial(SSL_CTX *context, const struct serve *serve)
{
    SSL *ssl = SSL_new(context);

    assert_non_null(ssl);
    assert_int_equal(SSL_set_fd(ssl, serve_dial(serve)), 1);
    return ssl;
}

static void hang_up(SSL *ssl)
{
    (void)close(SSL_get_fd(ssl));
    SSL_free(ssl);
}

static const char *ask(SSL *ssl, const char *request)
{
    size_t length = 0;
    int n;

    assert_int_equal(SSL_write(ssl, request, (int)strlen(request)), (int)strlen(request));
    while ((n = SSL_read(ssl, text + length, (int)(SERVE_TEXT - 1 - length))) > 0)
        length += (size_t)n;
    text[length] = '\0';
    /* Cut off and ended are not the same with TLS. */
    assert_int_equal(SSL_get_error(ssl, n), SSL_ERROR_ZERO_RETURN);
    return text;
}

TEST(both_versions_and_no_older_one)
{
    struct serve *serve = start((struct server_limits){.tick_ms = 20});
    const int versions[] = {TLS1_3_VERSION, TLS1_2_VERSION, TLS1_1_VERSION};

    for (size_t i = 0; i < COUNT(versions); i++) {
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_security_level(context, 0);
        assert_int_equal(SSL_CTX_set_min_proto_version(context, versions[i]), 1);
        assert_int_equal(SSL_CTX_set_max_proto_version(context, versions[i]), 1);
        SSL *ssl = dial(context, serve);
        if (versions[i] == TLS1_1_VERSION) {
            assert_int_not_equal(SSL_connect(ssl), 1);
        } else {
            assert_int_equal(SSL_connect(ssl), 1);
            assert_ends(ask(ssl, "GET /who/x HTTP/1.1\r\n" CLOSE "\r\n"), "|tls");
        }
        hang_up(ssl);
        SSL_CTX_free(context);
    }
    serve_eventually(serve_counts(serve).connections == 0);
    assert_int_equal(serve_counts(serve).tls_failed, 1);
    end(serve);
}

TEST(protocols)
{
    struct serve *serve = start((struct server_limits){.tick_ms = 20});
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    const unsigned char *chosen = NULL;
    unsigned length = 0;

    SSL *ssl = dial(context, serve);
    assert_int_equal(SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12), 0);
    assert_int_equal(SSL_connect(ssl), 1);
    SSL_get0_alpn_selected(ssl, &chosen, &length);
    assert_int_equal(length, 8);
    assert_memory_equal(chosen, "http/1.1", 8);
    hang_up(ssl);
    ssl = dial(context, serve);
    assert_int_equal(SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2", 3), 0);
    assert_int_not_equal(SSL_connect(ssl), 1);
    hang_up(ssl);
    SSL_CTX_free(context);
    end(serve);
}

TEST(another_certificate)
{
    struct serve *serve = start((struct server_limits){.tick_ms = 20});
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct pair pair = make_pair(NULL, NULL);
    struct tls_context *fresh = NULL;
    struct error err = {0};
    SSL *before = dial(context, serve);

    assert_int_equal(SSL_connect(before), 1);
    assert_int_equal(EVP_PKEY_base_id(X509_get0_pubkey(SSL_get0_peer_certificate(before))), EVP_PKEY_EC);
    assert_int_equal(make_context(pair.certificate, pair.key, &fresh, &err), 0);
    /* A pointer is all that changes, and nobody is being accepted. */
    server_replace_tls(serve->server, serve->tls, fresh);
    tls_context_free(serve->tls);
    serve->tls = fresh;
    SSL *after = dial(context, serve);
    assert_int_equal(SSL_connect(after), 1);
    assert_int_equal(EVP_PKEY_base_id(X509_get0_pubkey(SSL_get0_peer_certificate(after))), EVP_PKEY_RSA);
    assert_ends(ask(before, "GET /who/x HTTP/1.1\r\n" CLOSE "\r\n"), "|tls");
    assert_ends(ask(after, "GET /who/x HTTP/1.1\r\n" CLOSE "\r\n"), "|tls");
    hang_up(before);
    hang_up(after);
    SSL_CTX_free(context);
    end(serve);
}

TEST(much_in_both_directions)
{
    struct serve *serve = start((struct server_limits){.unsent_low_bytes = 100000, .tick_ms = 20});
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    static char piece[1 << 20];
    SSL *ssl = dial(context, serve);
    size_t total = 0;
    int n;

    assert_int_equal(SSL_connect(ssl), 1);
    const char *put = "PUT /stream HTTP/1.1\r\n" CLOSE "Content-Length: 8388608\r\n\r\n";
    assert_int_equal(SSL_write(ssl, put, (int)strlen(put)), (int)strlen(put));
    for (int i = 0; i < 7; i++)
        assert_int_equal(SSL_write(ssl, piece, sizeof piece), (int)sizeof piece);
    /* The last of it with the answer. */
    assert_int_equal(SSL_write(ssl, piece, sizeof piece - 1), (int)sizeof piece - 1);
    assert_ends(ask(ssl, "x"), "\r\n\r\n8388608");
    hang_up(ssl);
    ssl = dial(context, serve);
    assert_int_equal(SSL_connect(ssl), 1);
    const char *get = "GET /big?n=8388608&length=1 HTTP/1.1\r\n" CLOSE "\r\n";
    assert_int_equal(SSL_write(ssl, get, (int)strlen(get)), (int)strlen(get));
    while ((n = SSL_read(ssl, piece, sizeof piece)) > 0) {
        for (int i = 0; i < n; i++)
            total += piece[i] == 'x';
    }
    assert_int_equal(total, 8388608 + 1);
    hang_up(ssl);
    SSL_CTX_free(context);
    end(serve);
}

/* What a client writes goes out byte by byte. */
static void send_drops(int fd, BIO *from)
{
    char c;

    while (BIO_read(from, &c, 1) == 1)
        serve_send_bytes(fd, &c, 1);
}

TEST(a_hello_in_drops)
{
    struct serve *serve = start((struct server_limits){.tick_ms = 20});
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *input = BIO_new(BIO_s_mem());
    BIO *output = BIO_new(BIO_s_mem());
    const char *get = "GET /hello HTTP/1.1\r\n" CLOSE "\r\n";
    int fd = serve_dial(serve);
    char piece[4096];
    ssize_t n;

    SSL_set_bio(ssl, input, output);
    BIO_set_mem_eof_return(input, -1);
    while (SSL_connect(ssl) != 1) {
        send_drops(fd, output);
        n = recv(fd, piece, sizeof piece, 0);
        assert_true(n > 0);
        assert_int_equal(BIO_write(input, piece, (int)n), (int)n);
    }
    assert_int_equal(SSL_write(ssl, get, (int)strlen(get)), (int)strlen(get));
    send_drops(fd, output);
    while ((n = recv(fd, piece, sizeof piece, 0)) > 0)
        assert_int_equal(BIO_write(input, piece, (int)n), (int)n);
    int length = SSL_read(ssl, text, SERVE_TEXT - 1);
    assert_true(length > 0);
    text[length] = '\0';
    assert_starts(text, "HTTP/1.1 200 OK\r\n");
    SSL_free(ssl);
    SSL_CTX_free(context);
    (void)close(fd);
    end(serve);
}

TEST(what_is_not_tls)
{
    struct serve *serve = start((struct server_limits){.headers_ms = 200, .tick_ms = 20});
    int silent = serve_dial(serve);
    int half = serve_dial(serve);

    serve_ask(serve, "GET /hello HTTP/1.1\r\n" CLOSE "\r\n", text);
    assert_null(strstr(text, "HTTP/1.1 200"));
    assert_int_equal(serve_counts(serve).tls_failed, 1);
    /* The first bytes of a hello, and nothing: not for ever. */
    serve_send_bytes(half, "\x16\x03\x01\x02\x00\x01\x00", 7);
    serve_read_all(half, text);
    serve_read_all(silent, text);
    assert_int_equal(serve_counts(serve).timeouts, 2);
    (void)close(silent);
    (void)close(half);
    end(serve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_certificates),
        cmocka_unit_test(bad_certificates),
        cmocka_unit_test(certificates_come_as_descriptors),
        cmocka_unit_test(both_versions_and_no_older_one),
        cmocka_unit_test(protocols),
        cmocka_unit_test(another_certificate),
        cmocka_unit_test(much_in_both_directions),
        cmocka_unit_test(a_hello_in_drops),
        cmocka_unit_test(what_is_not_tls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
