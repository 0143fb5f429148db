/* tools/ortc/interrupt.c: SIGINT to a flag that runs look at; see interrupt.h. */
#include "interrupt.h"

#include <signal.h>

static ortc_cancel *cancel;
static volatile sig_atomic_t came;

static void on_interrupt(int number)
{
    (void)number;
    came = 1;
    ortc_cancel_set(cancel);
}

ortc_cancel *interrupt_watch(void)
{
    if (!cancel && ortc_cancel_create(&cancel, NULL) != ORTC_OK) return NULL;
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    return cancel;
}

bool interrupt_came(void) { return came; }
