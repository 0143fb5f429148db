/* tools/ortc/input_value.h: the value of one input. All but io_describe print their error and give -1 to go
 * on, else the exit code. */
#ifndef INPUT_VALUE_H
#define INPUT_VALUE_H

#include "fill.h"
#include "inputs.h"

/* "f32[batch,1,8,8]". Owner: the caller; free(). */
char *io_describe(const ortc_io *);

/* `text` as it stands behind NAME=. Pictures are only noted: input_pictures() makes one batch of them at the
 * end. */
int input_set(input *, const char *text, const session_options *, const input_options *);
int input_fill(input *, const session_options *, const input_options *, const fill *);
int input_pictures(input *, const session_options *, const input_options *);

/* Makes the value the model's type, if that is possible without loss, or allowed with. */
int input_convert(input *, const input_options *);

#endif
