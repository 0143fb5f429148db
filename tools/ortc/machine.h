/* tools/ortc/machine.h: what this machine gives, measured now: the two lines of a roofline. */
#ifndef MACHINE_H
#define MACHINE_H

#include "cli.h"

typedef struct machine {
    uint32_t threads;
    double flops;     /* f32 operations a second, fused multiply-adds on registers, all threads together */
    double bandwidth; /* bytes a second, reading memory that no cache holds, likewise */
} machine;

/* Takes about a third of a second. threads 0: as many as this process may run at once. */
void machine_measure(uint32_t threads, machine *out);

/* The least time that so much work can take: the larger of both lines; 0 when nothing is known of it. */
double machine_floor(const machine *, double flops, double bytes);

#endif
