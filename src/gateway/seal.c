#include "gateway/seal.h"

#include "base/cleanup.h"

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
    _cleanup_free_ uint8_t *box = malloc(size);
    char *sealed = malloc(sodium_base64_encoded_len(size, VARIANT));

    if (box == NULL || sealed == NULL) {
        free(sealed);
        return NULL;
    }
    randombytes_buf(box, NONCE);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(box + NONCE, NULL, text, length, (const uint8_t *)name,
                                                     strlen(name), NULL, box, seal->key);
    return sodium_bin2base64(sealed, sodium_base64_encoded_len(size, VARIANT), box, size, VARIANT);
}

char *seal_open(const struct seal *seal, const char *name, const char *sealed, size_t *ret_length)
{
    size_t room = strlen(sealed);
    size_t size = 0;
    unsigned long long length = 0;
    _cleanup_free_ uint8_t *box = malloc(room + 1);

    if (box == NULL || sodium_base642bin(box, room, sealed, room, NULL, &size, NULL, VARIANT) < 0 || size < NONCE + TAG)
        return NULL;
    char *text = malloc(size - NONCE - TAG + 1);
    if (text == NULL ||
        crypto_aead_xchacha20poly1305_ietf_decrypt((uint8_t *)text, &length, NULL, box + NONCE, size - NONCE,
                                                   (const uint8_t *)name, strlen(name), box, seal->key) < 0) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    *ret_length = (size_t)length;
    return text;
}
