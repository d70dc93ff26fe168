#include "gateway/seal.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum {
    NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    VARIANT = sodium_base64_VARIANT_ORIGINAL,
};
_Static_assert((int)SEAL_KEY_BYTES == (int)crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "the key of this cipher");

char *seal_close(const struct seal *seal, const char *name, const void *text, size_t length)
{
    size_t size = NONCE + length + TAG;
    uint8_t *box = malloc(size);
    char *sealed = box == NULL ? NULL : malloc(sodium_base64_encoded_len(size, VARIANT));

    if (sealed != NULL) {
        randombytes_buf(box, NONCE);
        (void)crypto_aead_xchacha20poly1305_ietf_encrypt(box + NONCE, NULL, text, length, (const uint8_t *)name,
                                                         strlen(name), NULL, box, seal->key);
        (void)sodium_bin2base64(sealed, sodium_base64_encoded_len(size, VARIANT), box, size, VARIANT);
    }
    free(box);
    return sealed;
}

/* 0 with its length, or -EBADMSG. */
static int open_box(const struct seal *seal, const char *name, const uint8_t *box, size_t size, char *text,
                    size_t *ret_length)
{
    unsigned long long length = 0;

    if (crypto_aead_xchacha20poly1305_ietf_decrypt((uint8_t *)text, &length, NULL, box + NONCE, size - NONCE,
                                                   (const uint8_t *)name, strlen(name), box, seal->key) < 0)
        return -EBADMSG;
    text[length] = '\0';
    *ret_length = (size_t)length;
    return 0;
}

char *seal_open(const struct seal *seal, const char *name, const char *sealed, size_t *ret_length)
{
    size_t room = strlen(sealed);
    size_t size = 0;
    uint8_t *box = malloc(room + 1);
    char *text = NULL;

    if (box != NULL && sodium_base642bin(box, room, sealed, room, NULL, &size, NULL, VARIANT) == 0 &&
        size >= NONCE + TAG)
        text = malloc(size - NONCE - TAG + 1);
    if (text != NULL && open_box(seal, name, box, size, text, ret_length) < 0) {
        free(text);
        text = NULL;
    }
    free(box);
    return text;
}
