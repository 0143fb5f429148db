/* runtime/session/create.h: sessions over a graph of the library's own. */
#ifndef ORTC_CREATE_H
#define ORTC_CREATE_H

#include "session.h"

/* As ortc_session_create, on a graph that it takes over, also on failure. The model gives packed forms and
 * must outlive the session; it is not retained. */
ortc_status ortc_session_from_graph(ortc_model *, ortc_graph *, const ortc_session_options *,
                                    ortc_session **out, ortc_error *);

/* Makes the values that the options name outputs of the graph, too (hooks.c). */
ortc_status ortc_session_keep(ortc_graph *, const ortc_session_options *, ortc_error *);
/* Checks and copies the caller's allocator and executor (hooks.c). */
ortc_status ortc_session_take_hooks(ortc_session *, const ortc_session_options *, ortc_error *);
/* Checks and copies the choices of kernels that the options make (hooks.c). */
ortc_status ortc_session_take_choices(ortc_session *, const ortc_session_options *, ortc_error *);
/* Checks the options' ties against the graph and keeps them (state.c). */
ortc_status ortc_unit_tie_all(ortc_unit *, const ortc_session_options *, ortc_error *);

#endif
