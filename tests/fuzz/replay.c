/*
 * replay: a harness as an ordinary test. Runs every file of the folders it is given and prints TAP; whatever must hold
 * and does not ends the program, so the input after the last "ok" is the one to look at.
 */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>

enum { INPUT_MAX = 1 << 20 };

static int is_file(const struct dirent *entry)
{
    return entry->d_type == DT_REG;
}

/* In memory of exactly its size, so that a read beyond it is seen. */
static void replay(const char *folder, const char *name)
{
    char path[4096];
    static uint8_t room[INPUT_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    MUST(file != NULL);
    size_t size = fread(room, 1, sizeof room, file);
    MUST(size < sizeof room);
    (void)fclose(file);
    uint8_t *data = malloc(size > 0 ? size : 1);
    MUST(data != NULL);
    memcpy(data, room, size);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int main(int argc, char **argv)
{
    int count = 0;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        struct dirent **entries = NULL;
        int n = scandir(argv[i], &entries, is_file, alphasort);
        MUST(n > 0);
        for (int k = 0; k < n; k++) {
            replay(argv[i], entries[k]->d_name);
            printf("ok %d - %s\n", ++count, entries[k]->d_name);
            free(entries[k]);
        }
        free((void *)entries);
    }
    printf("1..%d\n", count);
    return count > 0 ? 0 : 1;
}
