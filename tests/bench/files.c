/*
 * bench-files: what files cost over the guest link, on a hutch-init of its own and tmpfs: a small read and a small
 * write as a client sees them, the same with a command that does it, and the throughput of large ones.
 *
 *     bench-files HUTCH-INIT PAYLOAD
 */
#include "asking.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 1000, SMALL = 1000, LARGE = 128 << 20, LARGE_ROUNDS = 5, NAMES = 100000 };

static uint8_t bytes[LARGE];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(const char *what, double *ms, size_t count)
{
    qsort(ms, count, sizeof *ms, compare);
    printf("# %-28s p50 %.3f ms, p99 %.3f ms\n", what, ms[count / 2], ms[count * 99 / 100]);
}

static double ask_once(struct guest *guest, struct wire_file file, size_t length)
{
    static struct asked asked;
    uint64_t start_ns = clock_now_ns();

    memset(&asked, 0, sizeof asked);
    CHECK(asked_once(guest, file, file.operation == WIRE_FILE_WRITE ? bytes : NULL, length, &asked) == 0);
    double ms = (double)(clock_now_ns() - start_ns) / 1e6;
    buf_release(&asked.content);
    return ms;
}

static double run_once(struct guest *guest, const char *word)
{
    uint64_t start_ns = clock_now_ns();

    guest_exec(guest, 1, WIRE_EXEC_COLLECT, 0, WORDS(word, "0"));
    CHECK(guest_expect(guest, WIRE_EXIT));
    guest_release(guest, 1);
    return (double)(clock_now_ns() - start_ns) / 1e6;
}

static void measure_small(struct guest *guest)
{
    static double ms[ROUNDS];
    static const enum wire_file_operation operations[] = {WIRE_FILE_WRITE, WIRE_FILE_READ, WIRE_FILE_STAT};
    static const char *const names[] = {"write of 1000 bytes", "read of 1000 bytes", "stat"};

    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < ROUNDS; i++)
            ms[i] = ask_once(guest, question(operations[k], in_folder("small"), 0), SMALL);
        print_times(names[k], ms, ROUNDS);
    }
    for (size_t i = 0; i < ROUNDS; i++)
        ms[i] = ask_once(guest, question(WIRE_FILE_WRITE, in_folder("small"), WIRE_FILE_ATOMIC), SMALL);
    print_times("atomic write of 1000 bytes", ms, ROUNDS);
    for (size_t i = 0; i < ROUNDS; i++)
        ms[i] = run_once(guest, "exit");
    print_times("a command that ends at once", ms, ROUNDS);
}

static void measure_large(struct guest *guest)
{
    static const enum wire_file_operation operations[] = {WIRE_FILE_WRITE, WIRE_FILE_READ};

    for (size_t k = 0; k < 2; k++) {
        double best = 1e9;
        for (size_t i = 0; i < LARGE_ROUNDS; i++) {
            double ms = ask_once(guest, question(operations[k], in_folder("large"), 0), LARGE);
            best = ms < best ? ms : best;
        }
        printf("# %-28s %.0f MB/s\n", k == 0 ? "write of 128 MiB" : "read of 128 MiB", LARGE / best / 1e3);
    }
}

static void measure_names(struct guest *guest)
{
    struct wire_file folder = question(WIRE_FILE_MKDIR, in_folder("names"), 0);
    char name[64];

    folder.mode = 0755;
    CHECK(asked_simply(guest, folder) == 0);
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof name, "names/%d", i);
        CHECK(asking_write(name, "", 0));
    }
    double ms = ask_once(guest, question(WIRE_FILE_LIST, in_folder("names"), 0), 0);
    printf("# %-28s %.0f names/s\n", "list of 100,000 names", NAMES / ms * 1e3);
}

int main(int argc, char **argv)
{
    static const struct guest_case cases[] = {
        {"small files", measure_small}, {"large files", measure_large}, {"many names", measure_names}};

    return asking_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
