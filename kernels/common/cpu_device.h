/* kernels/common/cpu_device.h: what an ortc_device of provider cpu is: how it was asked to compute.
 *
 * "cpu:precision=bf16": products of f32 may round their operands to bf16; the library may keep what lies
 * between them so. NULL: nothing was asked.
 */
#ifndef ORTC_KERNELS_CPU_DEVICE_H
#define ORTC_KERNELS_CPU_DEVICE_H

#include "ortc/op.h"

typedef struct ortc_cpu_device {
    int32_t bf16;
} ortc_cpu_device;

static inline int ortc_rounds_to_bf16(const ortc_device *d)
{
    return d && ((const ortc_cpu_device *)(const void *)d)->bf16;
}

#endif
