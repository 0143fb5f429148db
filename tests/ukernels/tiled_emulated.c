/* kernels/conv/tiled_amx.c with the tile instructions in plain C: for tests of convolution on tiles. */
#include "amx_emulated.h"

#define TILED_UK tiled_emulated
#include "kernels/conv/tiled_amx.c"
