#include "gateway/certificate.h"

#include "base/fd.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdlib.h>

enum { PEM_BYTES_MAX = 131072 };

/* A key with a passphrase would ask for it on a terminal. */
static int no_passphrase(char *text, int size, int is_writing, void *context)
{
    (void)text;
    (void)size;
    (void)is_writing;
    (void)context;
    return -1;
}

static BIO *open_text(int fd, uint8_t *text, size_t size)
{
    ssize_t n = fd_read_all(fd, text, size);

    return n > 0 ? BIO_new_mem_buf(text, (int)n) : NULL;
}

static X509 *read_certificate(int fd, uint8_t *text)
{
    BIO *input = open_text(fd, text, PEM_BYTES_MAX);
    X509 *certificate = input != NULL ? PEM_read_bio_X509(input, NULL, no_passphrase, NULL) : NULL;

    (void)BIO_free(input);
    return certificate;
}

static EVP_PKEY *read_key(int fd, uint8_t *text)
{
    BIO *input = open_text(fd, text, PEM_BYTES_MAX);
    EVP_PKEY *key = input != NULL ? PEM_read_bio_PrivateKey(input, NULL, no_passphrase, NULL) : NULL;

    (void)BIO_free(input);
    return key;
}

int certificate_check(int certificate_fd, int key_fd, struct error *err)
{
    uint8_t *text = malloc(PEM_BYTES_MAX);
    X509 *certificate = text != NULL ? read_certificate(certificate_fd, text) : NULL;
    EVP_PKEY *key = text != NULL ? read_key(key_fd, text) : NULL;
    int r = 0;

    if (text == NULL)
        r = error_set(err, ERROR_SYSTEM, ENOMEM, "checking the certificate");
    else if (certificate == NULL)
        r = error_set(err, ERROR_INVALID, 0, "server.tls_certificate: there is no PEM certificate in this file");
    else if (key == NULL)
        r = error_set(err, ERROR_INVALID, 0,
                      "server.tls_key: there is no PEM private key in this file, or it has a passphrase");
    else if (X509_check_private_key(certificate, key) != 1)
        r = error_set(err, ERROR_INVALID, 0,
                      "server.tls_key: this key does not belong to the certificate in server.tls_certificate");
    else if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        r = error_set(err, ERROR_INVALID, 0, "server.tls_certificate: this certificate has expired");
    if (text != NULL)
        OPENSSL_cleanse(text, PEM_BYTES_MAX);
    X509_free(certificate);
    EVP_PKEY_free(key);
    free(text);
    return r;
}
