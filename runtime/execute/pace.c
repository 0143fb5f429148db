/* runtime/execute/pace.c: how a short program's loops go to threads (context.h).
 *
 * What a loop costs on several threads besides its chunks is not known beforehand: it depends on whether
 * processors share a cache, on who else is at work, on whether workers are awake, and on where the loop
 * before has left its results. So programs of at most SHORT_NS are measured: some runs of each way, the
 * median of each, and the way that took least stays for a while; then again, more and more seldom while the
 * answer is the same. The first run after a change is not counted: it finds workers asleep, or its data in
 * another's cache.
 */
#include "context.h"

#define SHORT_NS 2e6 /* a run on one thread: longer ones are worth threads, and trying them alone is felt */
#define GAIN 0.95    /* threads must take less than this much of the time alone */
enum { TRIES = ORTC_PACE_TRIES, FIRST_STAY = 64, LAST_STAY = 2048 };

ortc_spread ortc_pace_spread(const ortc_pace *p)
{
    return (ortc_spread)((p->chosen + p->trial) % ORTC_SPREADS);
}

static void settle(ortc_pace *p)
{
    uint8_t best = ORTC_SPREAD_NONE;
    double least = GAIN * p->ns[best];
    for (uint8_t i = 0; i < ORTC_SPREADS; i++)
        if (i != ORTC_SPREAD_NONE && p->ns[i] < least) {
            best = i;
            least = p->ns[i];
        }
    p->stay = best != p->chosen || !p->stay ? FIRST_STAY : p->stay < LAST_STAY ? 2 * p->stay : p->stay;
    p->left = p->stay;
    p->chosen = best;
    p->trial = 0;
}

void ortc_pace_took(ortc_pace *p, double ns, uint32_t threads)
{
    if (p->left) { /* nothing is tried now */
        p->left--;
        return;
    }
    if (p->runs++ == 0) return; /* not counted */
    uint32_t at = p->runs - 2;
    for (; at && p->tries[at - 1] > ns; at--) p->tries[at] = p->tries[at - 1];
    p->tries[at] = ns;
    if (p->runs <= TRIES) return;
    p->runs = 0;
    const double median = p->ns[ortc_pace_spread(p)] = p->tries[TRIES / 2];
    if (!p->trial && p->chosen != ORTC_SPREAD_NONE && median * threads > SHORT_NS)
        p->left = LAST_STAY; /* too long to be tried on one thread */
    else if (++p->trial == ORTC_SPREADS)
        settle(p);
}
