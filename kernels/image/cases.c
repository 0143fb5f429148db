/* kernels/image/cases.c: what is refused. What ImageDecoder makes of pictures is compared by the standard's
 * suite and tests/cli: its kernel is in a module, which is not beside the program that runs these lines. */
#include "kernels/common/cases.h"

const ortc_case ortc_cases_image[] = {
    {"ImageDecoder", "u8[2,3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"ImageDecoder", "f32[3]", "", .fails = ORTC_TYPE_MISMATCH},
    {0},
};
