/* tools/ortc/interrupt.h: Ctrl-C: the first one ends the run at hand in order, so that what was measured is
 * still told; the second one ends the process. */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include "cli.h"

/* Watches from now on; the flag for runs, NULL when it cannot be had: they go on then to their end. */
ortc_cancel *interrupt_watch(void);
bool interrupt_came(void);

#endif
