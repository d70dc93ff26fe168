/*
 * The ring of events and its subscribers, with an engine whose keeper says nothing.
 */
#include "gateway/engine/events.h"
#include "gateway/engine/internal.h"
#include "test.h"

#include <stdlib.h>

enum { KEPT = 8 };

struct fixture {
    uv_loop_t loop;
    struct engine *engine;
    struct recorder recorder;
    int keeper;
    bool is_closed;
};

static void note_closed(void *data)
{
    ((struct fixture *)data)->is_closed = true;
}

static void set_up(struct fixture *f)
{
    struct error err = {0};
    int ends[2];

    test_sockets(ends);
    f->keeper = ends[1];
    f->is_closed = false;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    struct engine_options options = {.loop = &f->loop,
                                     .keeper_fd = ends[0],
                                     .start = 1,
                                     .recorder = &f->recorder,
                                     .sandboxes_max = 1,
                                     .execs_max = 1,
                                     .events_kept = KEPT};
    assert_int_equal(engine_new(&options, &f->engine, &err), 0);
}

static void tear_down(struct fixture *f)
{
    engine_close(f->engine, note_closed, f);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->is_closed);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    (void)close(f->keeper);
}

struct heard {
    size_t count;
    uint64_t last;
    bool leaves;
};

static void hear(void *data, struct event_subscriber *subscriber)
{
    struct heard *heard = data;
    struct event event;

    while (events_next(subscriber, &event) > 0) {
        heard->count++;
        heard->last = event.seq;
    }
    if (heard->leaves)
        events_unsubscribe(subscriber);
}

static void deaf(void *data, struct event_subscriber *subscriber)
{
    (void)data;
    (void)subscriber;
}

static void publish(struct fixture *f, int count)
{
    for (int i = 0; i < count; i++)
        event_publish(f->engine, EVENT_POOL_FILLED, NULL, NULL, i);
}

TEST(test_subscribers)
{
    struct fixture f;
    struct event_subscriber *subscribers[3];
    struct heard heard[3] = {{.leaves = true}, {0}, {0}};
    struct error err;

    set_up(&f);
    publish(&f, 2);
    assert_int_equal(events_subscribe(f.engine, 0, NULL, hear, &heard[0], &subscribers[0], &err), 0);
    assert_int_equal(events_subscribe(f.engine, UINT64_MAX, NULL, hear, &heard[1], &subscribers[1], &err), 0);
    assert_int_equal(events_subscribe(f.engine, 0, "somebody", hear, &heard[2], &subscribers[2], &err), 0);
    publish(&f, 3);
    assert_int_equal(heard[0].count, 3); /* two old ones, a new one, and it leaves */
    assert_int_equal(heard[1].count, 3);
    assert_int_equal(heard[1].last, 5);
    assert_int_equal(heard[2].count, 0);
    events_unsubscribe(subscribers[1]);
    events_unsubscribe(subscribers[2]);
    tear_down(&f);
}

TEST(test_slow_one_misses_the_oldest)
{
    struct fixture f;
    struct event_subscriber *subscriber;
    struct event event;
    struct error err;

    set_up(&f);
    assert_int_equal(events_subscribe(f.engine, 0, NULL, deaf, NULL, &subscriber, &err), 0);
    publish(&f, 3 * KEPT);
    for (uint64_t seq = 2 * KEPT + 1; seq <= 3 * KEPT; seq++) {
        assert_int_equal(events_next(subscriber, &event), 1);
        assert_int_equal(event.seq, seq);
        assert_int_equal(event.value, seq - 1);
    }
    assert_int_equal(events_next(subscriber, &event), 0);
    events_unsubscribe(subscriber);
    tear_down(&f);
}

TEST(test_names)
{
    for (int kind = 0; kind < EVENT_KINDS; kind++) {
        assert_non_null(strchr(event_kind_name((enum event_kind)kind), '.'));
        for (int other = 0; other < kind; other++)
            assert_string_not_equal(event_kind_name((enum event_kind)kind), event_kind_name((enum event_kind)other));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_subscribers),
        cmocka_unit_test(test_slow_one_misses_the_oldest),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
