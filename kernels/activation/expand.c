/* kernels/activation/expand.c: comparing programs with expansions (expand.h). */
#include "kernels/activation/expand.h"

#include <math.h>

/* ---- Comparing ----------------------------------------------------------------------------------------- */

static int commutes(uint32_t op)
{
    return op == ORTC_PW_ADD || op == ORTC_PW_MUL || op == ORTC_PW_MIN || op == ORTC_PW_MAX;
}

/* Value v of p is value w of q, x of p standing for input 0 of q. Trees of a handful of steps. */
static int same(const ortc_pointwise *p, uint32_t v, uint32_t x, const ortc_pw_step *q, uint32_t w)
{
    const ortc_pw_step *s = &p->steps[v], *u = &q[w];
    if (u->op == ORTC_PW_LOAD) return v == x;
    if (v == x || s->op != u->op || s->type != u->type) return 0;
    if (u->op == ORTC_PW_CONST) /* exporters' numbers have been through f32, or a few digits */
        return fabs(s->k.f - u->k.f) <= 1e-6 * fabs(u->k.f);
    const uint16_t mine[3] = {s->a, s->b, s->c}, theirs[3] = {u->a, u->b, u->c};
    int equal = 1;
    for (uint32_t k = 0; k < ortc_pw_operands(u->op) && equal; k++) equal = same(p, mine[k], x, q, theirs[k]);
    return equal || (commutes(u->op) && same(p, s->a, x, q, u->b) && same(p, s->b, x, q, u->a));
}

int ortc_expands_to(const ortc_pointwise *p, uint32_t v, uint32_t x,
                    int32_t (*expand)(ortc_pw_builder *, int32_t x))
{
    ortc_pw_builder b;
    memset(&b, 0, sizeof b);
    b.size = sizeof b;
    b.n_in = 1;
    const int32_t w = expand(&b, ortc_pw_load(&b, 0, ORTC_F32));
    return !b.failed && w >= 0 && same(p, v, x, b.steps, (uint32_t)w);
}
