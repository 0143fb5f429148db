/* graph/normalise/rounded.h: values that a quantised network rounds to 8 bits and takes back,
 *
 *   DequantizeLinear(QuantizeLinear(x, s, z), s, z)      s and z one constant each
 *
 * element by element, so that what only moves elements may go before it or behind: how passes see forms of
 * nodes through it.
 */
#ifndef ORTC_NORMALISE_ROUNDED_H
#define ORTC_NORMALISE_ROUNDED_H

#include "match.h"

/* Both NULL: the value is not rounded. */
typedef struct ortc_rounded {
    const ortc_node *quantise, *dequantise;
} ortc_rounded;

/* What e is before it is rounded, if it is and nobody else reads what is between; else e. `ends`: e itself is
 * read by one alone, too, or it is not looked through. */
ortc_edge *ortc_match_unrounded(ortc_edge *e, bool ends, ortc_rounded *out);
/* x, rounded alike, before another node; NULL: no memory. */
ortc_edge *ortc_match_round(ortc_normalise *, ortc_node *before, const ortc_rounded *, ortc_edge *x);

#endif
