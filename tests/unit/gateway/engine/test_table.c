#include "gateway/engine/name.h"
#include "gateway/engine/table.h"
#include "test.h"

enum { THINGS = 5000 };

struct thing {
    struct table_entry entry;
    char id[ENGINE_ID_SIZE];
};

static struct thing things[THINGS];

static struct thing *find(const struct table *table, const char *id)
{
    struct table_entry *entry = NULL;

    while ((entry = table_next(table, table_hash_text(id), entry)) != NULL) {
        struct thing *thing = TABLE_OWNER(struct thing, entry, entry);
        if (strcmp(thing->id, id) == 0)
            return thing;
    }
    return NULL;
}

TEST(test_many)
{
    struct table table;

    assert_int_equal(table_init(&table), 0);
    for (size_t i = 0; i < THINGS; i++) {
        assert_int_equal(name_make("sb", things[i].id), 0);
        assert_int_equal(strlen(things[i].id), 29);
        assert_int_equal(strspn(things[i].id + 3, "abcdefghijklmnopqrstuvwxyz234567"), 26);
        assert_null(find(&table, things[i].id));
        table_add(&table, &things[i].entry, table_hash_text(things[i].id));
    }
    assert_true(table.room >= THINGS);
    for (size_t i = 0; i < THINGS; i += 2)
        table_remove(&table, &things[i].entry);
    table_remove(&table, &things[0].entry);
    assert_int_equal(table.count, THINGS / 2);
    for (size_t i = 0; i < THINGS; i++)
        assert_ptr_equal(find(&table, things[i].id), i % 2 == 1 ? &things[i] : NULL);
    table_release(&table);
}

TEST(test_same_hash)
{
    struct table table;

    assert_int_equal(table_init(&table), 0);
    for (size_t i = 0; i < 3; i++)
        table_add(&table, &things[i].entry, 1 + (i == 1 ? 64 : 0)); /* one bucket, two hashes */
    struct table_entry *entry = table_next(&table, 1, NULL);
    assert_ptr_equal(entry, &things[2].entry);
    entry = table_next(&table, 1, entry);
    assert_ptr_equal(entry, &things[0].entry);
    assert_null(table_next(&table, 1, entry));
    table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many), cmocka_unit_test(test_same_hash)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
