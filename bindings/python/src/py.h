/* bindings/python/src/py.h: what the files of the extension module share.
 *
 * The module stands on ortc's public interface and on CPython's limited API of 3.9, so that one binary serves
 * every later Python. It has types for the library's objects and nothing that Python can say as well: names,
 * documentation, defaults and asynchronous runs are in the package's Python files. The library never calls
 * Python; so every call that may take long is made without the interpreter's lock. NumPy is met at run time
 * only, through buffers and through ortc/_convert.py.
 */
#ifndef ORTC_PY_H
#define ORTC_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <structmember.h>

#include "ortc/ortc.h"

/* ---- Buffers ------------------------------------------------------------------------------------------- */

/* The buffer protocol joined the limited API in 3.11; its functions are exported, and its struct has had this
 * form, since 3.3. Headers of older API levels leave them out, so they are declared here, under a name of our
 * own. */
typedef struct py_buffer {
    void *data;
    PyObject *owner;
    Py_ssize_t bytes, item_bytes;
    int readonly, rank;
    char *format;
    Py_ssize_t *dims, *strides, *suboffsets;
    void *internal;
} py_buffer;
enum {
    PY_BUFFER_WRITABLE = 0x1,
    PY_BUFFER_FORMAT = 0x4,
    PY_BUFFER_DIMS = 0x8, /* without strides: the owner refuses what is not dense */
    PY_BUFFER_STRIDES = 0x18,
    PY_SLOT_GET_BUFFER = 1, /* Py_bf_getbuffer */
};
int PyObject_CheckBuffer(PyObject *);
int PyObject_GetBuffer(PyObject *, py_buffer *, int flags);
void PyBuffer_Release(py_buffer *);

/* ---- Errors -------------------------------------------------------------------------------------------- */

/* Raises the exception of the error's code, of ortc/_errors.py. NULL. */
PyObject *py_raise(const ortc_error *);

/* ---- Objects ------------------------------------------------------------------------------------------- */

typedef struct py_value {
    PyObject_HEAD ortc_value *value;
    bool readonly;    /* an element of something: others may share it */
    Py_ssize_t *dims; /* for buffers: rank extents and rank strides, in bytes; NULL: none was asked for */
    PyObject *weak;
} py_value;

typedef struct py_model {
    PyObject_HEAD ortc_model *model;
    PyObject *weak;
} py_model;

typedef struct py_session {
    PyObject_HEAD ortc_session *session;
    PyObject *model;   /* the py_model */
    PyObject *inputs;  /* dict: name -> index of the model's input */
    PyObject *outputs; /* tuple of names */
    PyObject *weak;
    const ortc_io **in, **out; /* of the model */
} py_session;

typedef struct py_state {
    PyObject_HEAD ortc_state *state;
    PyObject *session;
    PyObject *weak;
} py_state;

typedef struct py_cancel {
    PyObject_HEAD ortc_cancel *cancel;
} py_cancel;

extern PyTypeObject *py_value_type, *py_model_type, *py_session_type, *py_state_type, *py_cancel_type,
    *py_profiler_type;
extern PyType_Spec py_value_spec, py_model_spec, py_session_spec, py_state_spec, py_cancel_spec,
    py_profiler_spec;

/* For a heap type's dealloc, after its own fields: frees the object and lets go of its type. */
void py_free_object(PyObject *);

/* ---- Values -------------------------------------------------------------------------------------------- */

/* Takes the reference, on failure too. */
PyObject *py_value_new(ortc_value *, bool readonly);

/* Whose devices the tensors of a run may lie on, and the native queue (a CUDA stream) in whose order they are
 * ready: the caller's; NULL: none so far. */
typedef struct py_place {
    ortc_session *session;
    void *queue;
} py_place;

/* What holds the memory that an input lies in, while a run reads it. Zero-initialised: nothing. */
typedef struct py_hold {
    py_buffer buffer;
    void *dlpack;    /* a DLManagedTensor */
    py_place *place; /* of the run; NULL: the host only */
} py_hold;
void py_hold_release(py_hold *);

/* A value of `type` (NULL: not known) over the object's memory where that is dense, else over a copy. With
 * `hold`, a tensor's memory is kept by it: the value must not outlive it. Without, the value itself keeps it.
 * NULL: an exception is set. */
ortc_value *py_to_value(PyObject *, const ortc_type *, py_hold *hold);
/* A tensor over writable memory, for a result. */
ortc_value *py_to_output(PyObject *, py_hold *hold);
/* Arrays, lists, dicts, None. Takes the reference, on failure too. */
PyObject *py_from_value(ortc_value *, bool readonly);
/* "sequence(map(i64, f32))" */
PyObject *py_type_text(const ortc_type *);
/* A function or table of ortc/_convert.py; borrowed. */
PyObject *py_convert(const char *name);
PyObject *py_dims(int32_t rank, const int64_t *dims); /* a tuple */

/* __dlpack__, __dlpack_device__ and the other way; see dlpack.c. */
PyObject *py_dlpack_export(py_value *, PyObject *args, PyObject *keywords);
PyObject *py_dlpack_device(py_value *, PyObject *unused);
ortc_value *py_dlpack_import(PyObject *, py_hold *hold);
void py_dlpack_release(void *managed);

/* ---- What ends a call early ---------------------------------------------------------------------------- */

/* timeout: seconds from now, as CLOCK_MONOTONIC's deadline; cancel: an ortc.Cancel. Either may be NULL or
 * None: 0, NULL. False: an exception is set. */
bool py_stop(PyObject *timeout, PyObject *cancel, int64_t *out_deadline_ns, ortc_cancel **out_cancel);

/* ---- Profiler ------------------------------------------------------------------------------------------ */

const ortc_profiler *py_profiler_get(PyObject *); /* NULL: an exception is set */

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
