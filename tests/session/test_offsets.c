/* tests/session/test_offsets.c: blocks that live at the same time never share bytes; blocks that do not,
 * do. */
#include <criterion/criterion.h>

#include "runtime/plan/plan.h"

Test(layout, disjoint_in_time_or_in_space)
{
    unsigned seed = 3;
    for (int round = 0; round < 200; round++) {
        enum { N = 60 };
        ortc_block b[N];
        size_t sum = 0;
        uint32_t from = 0;
        for (int i = 0; i < N; i++) {
            from += (uint32_t)rand_r(&seed) % 2;
            b[i] = (ortc_block){(size_t)(rand_r(&seed) % 8) * 256, from, from + (uint32_t)rand_r(&seed) % 9,
                                -1, 0};
            sum += b[i].bytes;
            for (int k = 0; k < i; k++)
                if (b[k].to == from && b[k].bytes == b[i].bytes && rand_r(&seed) % 2) b[i].reuse = k;
        }
        size_t bytes = ortc_lay_out(b, N);
        cr_assert_leq(bytes, sum);
        for (int i = 0; i < N; i++) {
            cr_expect_leq(b[i].offset + b[i].bytes, bytes);
            cr_expect_eq(b[i].offset % 256, 0);
            for (int k = 0; k < i; k++) {
                bool time = b[k].from <= b[i].to && b[i].from <= b[k].to;
                bool space = b[k].offset < b[i].offset + b[i].bytes && b[i].offset < b[k].offset + b[k].bytes;
                bool in_place = b[i].reuse == k && b[i].offset == b[k].offset && b[k].to == b[i].from;
                cr_expect(!(time && space && b[i].bytes && b[k].bytes) || in_place,
                          "round %d: blocks %d [%u,%u] @%zu+%zu and %d [%u,%u] @%zu+%zu reuse %d", round, k,
                          b[k].from, b[k].to, b[k].offset, b[k].bytes, i, b[i].from, b[i].to, b[i].offset,
                          b[i].bytes, b[i].reuse);
            }
        }
    }
}

Test(layout, a_chain_needs_two_blocks)
{
    ortc_block b[10];
    for (uint32_t i = 0; i < 10; i++) b[i] = (ortc_block){1024, i, i + 1, -1, 0};
    cr_expect_eq(ortc_lay_out(b, 10), 2048);
    for (uint32_t i = 1; i < 10; i++) b[i].reuse = (int32_t)i - 1;
    cr_expect_eq(ortc_lay_out(b, 10), 1024);
}

/* A small block that outlives a large one: in the order of time it lies in the way. */
Test(layout, what_the_order_of_time_wastes_is_won_back)
{
    ortc_block b[3] = {{1024, 0, 1, -1, 0}, {512, 1, 4, -1, 0}, {1280, 2, 3, -1, 0}};
    cr_expect_eq(ortc_lay_out(b, 3), 1792);
    cr_expect_eq(b[0].offset, 0);
    cr_expect_eq(b[2].offset, 0);
    cr_expect_eq(b[1].offset, 1280);
    ortc_block chain[4] = {{1024, 0, 1, -1, 0}, {512, 1, 2, -1, 0}, {512, 2, 5, 1, 0}, {1280, 3, 4, -1, 0}};
    cr_expect_eq(ortc_lay_out(chain, 4), 1792);
    cr_expect_eq(chain[1].offset, chain[2].offset);
    cr_expect_eq(chain[2].reuse, 1);
}

/* Residuals that live on beside one workspace each, and meet in between: at both ends they leave room. */
Test(layout, long_lives_go_to_both_ends)
{
    ortc_block b[7] = {{1024, 0, 4, -1, 0},  {1280, 2, 2, -1, 0},   {1024, 4, 8, -1, 0},  {1280, 6, 6, -1, 0},
                       {1024, 8, 12, -1, 0}, {1280, 10, 10, -1, 0}, {1024, 12, 13, -1, 0}};
    cr_expect_eq(ortc_lay_out(b, 7), 2304);
}
