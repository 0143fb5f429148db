/* kernels/families.h: the families that are linked in: the table that the build makes of
 * kernels/meson.build's list. */
#ifndef ORTC_FAMILIES_H
#define ORTC_FAMILIES_H

#include "ortc/op.h"

extern const ortc_family *const ortc_families[]; /* NULL behind the last */

#endif
