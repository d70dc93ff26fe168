#include "base/utf8.h"
#include "test.h"

static size_t encode(uint32_t point, uint8_t text[4])
{
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

    for (size_t i = length; i-- > 1; point >>= 6)
        text[i] = (uint8_t)(0x80 | (point & 0x3f));
    text[0] = (uint8_t)(leads[length] | point);
    return length;
}

/* Every code point is accepted but the surrogates, and none when it is cut. */
TEST(test_every_code_point)
{
    for (uint32_t point = 0; point <= 0x10ffff; point++) {
        uint8_t text[4];
        size_t length = encode(point, text);
        bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
        assert_int_equal(utf8_sequence(text, 4), is_surrogate ? 0 : length);
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(utf8_sequence(text, cut), 0);
    }
}

/* And nothing else: of all sequences as many are accepted as there are code points of that length. */
TEST(test_nothing_else)
{
    static const size_t expected[] = {0, 128, 0x800 - 0x80, 0x10000 - 0x800 - 0x800};
    size_t seen[5] = {0};

    for (uint32_t i = 0; i < 1U << 24; i++) {
        const uint8_t text[] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
        seen[utf8_sequence(text, 3)]++;
    }
    assert_int_equal(seen[1], expected[1] << 16);
    assert_int_equal(seen[2], expected[2] << 8);
    assert_int_equal(seen[3], expected[3]);
    assert_int_equal(seen[4], 0);
}

TEST(test_four_bytes)
{
    static const uint8_t tails[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    size_t seen = 0;

    for (uint32_t i = 0xe000; i < 1U << 16; i++) {
        for (size_t k = 0; k < COUNT(tails) * COUNT(tails); k++) {
            const uint8_t text[] = {(uint8_t)(i >> 8), (uint8_t)i, tails[k / COUNT(tails)], tails[k % COUNT(tails)]};
            seen += utf8_sequence(text, 4) == 4 ? 1 : 0;
        }
    }
    /* 16 planes of 16 second bytes, and 2 of 6 tails twice. */
    assert_int_equal(seen, 16 * 16 * 4);
}

TEST(test_cut)
{
    static const uint8_t text[] = "a\xc3\xa9z\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xed\x9f\xbf.";
    static const size_t starts[] = {0, 1, 3, 4, 7, 11, 15, 18, 19};
    size_t boundary = 0;

    for (size_t length = 0; length < sizeof text; length++) {
        if (boundary + 1 < COUNT(starts) && starts[boundary + 1] == length)
            boundary++;
        assert_int_equal(utf8_cut(text, length), starts[boundary]);
    }
}

/* What is no UTF-8 at all is not cut back for ever. */
TEST(test_cut_nonsense)
{
    static const struct {
        const char *text;
        size_t length;
        size_t cut;
    } rows[] = {
        {"\x80", 1, 1},      {"\x80\x80\x80\x80\x80", 5, 5}, {"a\xff", 2, 2}, {"a\xc0", 2, 2},
        {"a\xf5\x80", 3, 3}, {"\xc3\xa9\xa9", 3, 3},         {"\xf0", 1, 0},  {"", 0, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(utf8_cut((const uint8_t *)rows[i].text, rows[i].length), rows[i].cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point), cmocka_unit_test(test_nothing_else),
        cmocka_unit_test(test_four_bytes),       cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_nonsense),
    };
    return cmocka_run_group_tests_name("base/utf8", tests, NULL, NULL);
}
