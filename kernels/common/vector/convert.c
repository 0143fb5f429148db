/* The table behind convert.h. */
#include "kernels/common/vector/convert.h"

ORTC_VEC_TABLE(ortc_convert)

const ortc_convert *ortc_convert_get(void) { return ortc_convert_select(); }
