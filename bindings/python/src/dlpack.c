/* bindings/python/src/dlpack.c: tensors to and from other libraries by DLPack (dmlc.github.io/dlpack), whose
 * few structs are declared here: version 1.0 and what was before it.
 *
 * On the host, and on devices. CUDA's are DLPack's "cuda" by their ordinals. Memory of other providers has no
 * name there: it leaves as an extension's, whose number is the library's of the memory, and comes back only
 * in tensors that are our own. Runs are over when they return, so what leaves is ready in every stream; what
 * comes is ready in the order of the stream that the run is queued on (py_place). */
#include "py.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, index; /* DL_HOST... */
    } device;
    int32_t rank;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *dims, *strides; /* strides in elements; NULL: dense */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *manager;
    void (*release)(struct dl_managed *);
} dl_managed;

typedef struct dl_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*release)(struct dl_versioned *);
    uint64_t flags; /* bit 0: read-only */
    dl_tensor tensor;
} dl_versioned;

enum { DL_HOST = 1, DL_CUDA = 2, DL_CUDA_PINNED = 3, DL_EXTENSION = 12 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };

static const struct {
    ortc_dtype ours;
    uint8_t code, bits;
} types[] = {
    {ORTC_F32, DL_FLOAT, 32},   {ORTC_F64, DL_FLOAT, 64},   {ORTC_F16, DL_FLOAT, 16},
    {ORTC_BF16, DL_BFLOAT, 16}, {ORTC_I8, DL_INT, 8},       {ORTC_I16, DL_INT, 16},
    {ORTC_I32, DL_INT, 32},     {ORTC_I64, DL_INT, 64},     {ORTC_U8, DL_UINT, 8},
    {ORTC_U16, DL_UINT, 16},    {ORTC_U32, DL_UINT, 32},    {ORTC_U64, DL_UINT, 64},
    {ORTC_BOOL, DL_BOOL, 8},    {ORTC_C64, DL_COMPLEX, 64}, {ORTC_C128, DL_COMPLEX, 128},
};

/* ---- Ours to others ------------------------------------------------------------------------------------ */

static void release_managed(dl_managed *m)
{
    ortc_value_release(m->manager);
    free(m);
}
static void release_versioned(dl_versioned *m)
{
    ortc_value_release(m->manager);
    free(m);
}

/* A capsule that nobody took still owns its tensor; one that was taken has another name. */
static void capsule_end(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) release_managed(PyCapsule_GetPointer(capsule, "dltensor"));
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        release_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static void device_of(const ortc_value *v, int32_t *out_type, int32_t *out_index)
{
    const char *provider;
    uint32_t ordinal;
    const uint32_t memory = ortc_value_memory(v);
    const bool cuda = ortc_memory_device(memory, &provider, &ordinal, NULL) == ORTC_OK &&
                      !strcmp(provider, "cuda");
    *out_type = !memory ? DL_HOST : cuda ? DL_CUDA : DL_EXTENSION;
    *out_index = (int32_t)(cuda ? ordinal : memory);
}

PyObject *py_dlpack_device(py_value *self, PyObject *unused)
{
    int32_t type, index;
    device_of(self->value, &type, &index);
    return Py_BuildValue("(ii)", (int)type, (int)index);
}

static bool describe(const py_value *self, dl_tensor *t, int64_t *dims)
{
    size_t i = 0;
    while (i < COUNT_OF(types) && types[i].ours != ortc_value_dtype(self->value)) i++;
    void *data = ortc_value_address(self->value);
    if (i == COUNT_OF(types) || (!data && ortc_value_bytes(self->value))) {
        PyErr_Format(PyExc_BufferError, "no DLPack tensor is made of a value of type %s",
                     ortc_dtype_name(ortc_value_dtype(self->value)));
        return false;
    }
    *t = (dl_tensor){.data = data, .dims = dims};
    device_of(self->value, &t->device.type, &t->device.index);
    t->rank = ortc_value_rank(self->value);
    t->dtype.code = types[i].code;
    t->dtype.bits = types[i].bits;
    t->dtype.lanes = 1;
    int64_t stride = 1;
    t->strides = dims + t->rank;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        dims[d] = ortc_value_dims(self->value)[d];
        t->strides[d] = stride;
        stride *= dims[d];
    }
    return true;
}

PyObject *py_dlpack_export(py_value *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *newest = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &newest, &device,
                                     &copy))
        return NULL;
    int major = 0, minor = 0;
    int32_t own_type, own_index;
    device_of(self->value, &own_type, &own_index);
    int device_type = own_type, device_index = own_index;
    if (newest != Py_None && !PyArg_ParseTuple(newest, "ii", &major, &minor)) return NULL;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &device_type, &device_index)) return NULL;
    if (device_type != own_type || device_index != own_index || copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "tensors are given where they lie, without a copy");
        return NULL;
    }
    if (self->readonly && major < 1) {
        PyErr_SetString(PyExc_BufferError, "this tensor is read-only, which DLPack says since 1.0 only");
        return NULL;
    }
    const size_t head = major ? sizeof(dl_versioned) : sizeof(dl_managed);
    const size_t dims = 2 * (size_t)ortc_value_rank(self->value) * sizeof(int64_t);
    char *block = calloc(1, head + dims);
    if (!block) return PyErr_NoMemory();
    dl_versioned *versioned = (dl_versioned *)block;
    dl_managed *managed = (dl_managed *)block;
    if (!describe(self, major ? &versioned->tensor : &managed->tensor, (int64_t *)(block + head))) {
        free(block);
        return NULL;
    }
    if (major) {
        versioned->version.major = 1;
        versioned->flags = self->readonly;
        versioned->release = release_versioned;
        versioned->manager = ortc_value_retain(self->value);
    } else {
        managed->release = release_managed;
        managed->manager = ortc_value_retain(self->value);
    }
    PyObject *capsule = PyCapsule_New(block, major ? "dltensor_versioned" : "dltensor", capsule_end);
    if (!capsule) {
        ortc_value_release(self->value);
        free(block);
    }
    return capsule;
}

/* ---- Others' to ours ----------------------------------------------------------------------------------- */

void py_dlpack_release(void *managed)
{
    dl_managed *m = managed;
    if (m && m->release) m->release(m);
}

static void release_with_lock(void *managed)
{
    if (!Py_IsInitialized()) return; /* at the end, memory is the system's to take back */
    PyGILState_STATE lock = PyGILState_Ensure();
    py_dlpack_release(managed);
    PyGILState_Release(lock);
}

/* Whether elements lie one behind the other; extents of 1 have any stride. */
static bool is_dense(const dl_tensor *t)
{
    int64_t stride = 1;
    for (int32_t i = t->rank - 1; t->strides && i >= 0; i--) {
        if (t->dims[i] == 0) return true;
        if (t->dims[i] != 1 && t->strides[i] != stride) return false;
        stride *= t->dims[i];
    }
    return true;
}

/* What __dlpack_device__ says; the host for objects that have none. False: an exception is set. */
static bool ask_device(PyObject *object, int *out_type, int *out_index)
{
    *out_type = DL_HOST;
    *out_index = 0;
    if (!PyObject_HasAttrString(object, "__dlpack_device__")) return true;
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    PyObject *pair = device ? PySequence_Tuple(device) : NULL; /* the type may be an enumeration's member */
    const bool good = pair && PyArg_ParseTuple(pair, "ii", out_type, out_index);
    Py_XDECREF(device);
    Py_XDECREF(pair);
    return good;
}

/* The capsule; of CUDA's tensors one that is ready in the run's stream, which is the default one (1 in DLPack
 * and for the driver) if the caller named none. */
static PyObject *ask_capsule(PyObject *object, int type, py_place *place)
{
    if (type != DL_CUDA || !place) return PyObject_CallMethod(object, "__dlpack__", NULL);
    if (!place->queue) place->queue = (void *)(uintptr_t)1;
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__"), *none = PyTuple_New(0);
    PyObject *stream = Py_BuildValue("{s:K}", "stream", (unsigned long long)(uintptr_t)place->queue);
    PyObject *capsule = method && none && stream ? PyObject_Call(method, none, stream) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(stream);
    return capsule;
}

/* The library's number for the memory that a tensor lies in. False: it has none. */
static bool memory_of(const dl_managed *m, const py_place *place, uint32_t *out)
{
    char name[32];
    *out = 0;
    switch (m->tensor.device.type) {
    case DL_HOST:
    case DL_CUDA_PINNED: return true;
    case DL_CUDA:
        snprintf(name, sizeof name, "cuda:%d", (int)m->tensor.device.index);
        return place && ortc_session_memory(place->session, name, out, NULL) == ORTC_OK && *out;
    case DL_EXTENSION: *out = (uint32_t)m->tensor.device.index; return m->release == release_managed;
    default: return false;
    }
}

ortc_value *py_dlpack_import(PyObject *object, py_hold *hold)
{
    int type, index;
    if (!ask_device(object, &type, &index)) return NULL;
    PyObject *capsule = ask_capsule(object, type, hold ? hold->place : NULL);
    if (!capsule) return NULL;
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (!m) {
        Py_DECREF(capsule);
        return NULL;
    }
    const dl_tensor *t = &m->tensor;
    size_t i = 0;
    while (i < COUNT_OF(types) && (types[i].code != t->dtype.code || types[i].bits != t->dtype.bits)) i++;
    uint32_t memory;
    const char *why = !memory_of(m, hold ? hold->place : NULL, &memory)
                          ? "lies in the memory of a device that the session does not run on"
                      : i == COUNT_OF(types) || t->dtype.lanes != 1
                          ? "has a type of elements that ortc has not"
                      : !is_dense(t) ? "is not dense: make it contiguous"
                                     : NULL;
    if (why || PyCapsule_SetName(capsule, "used_dltensor") < 0) {
        if (why) PyErr_Format(PyExc_BufferError, "the tensor %s", why);
        Py_DECREF(capsule); /* it still owns the tensor */
        return NULL;
    }
    Py_DECREF(capsule);
    ortc_value *value;
    ortc_error e = ORTC_ERROR_INIT;
    if (ortc_value_wrap_in(memory, (char *)t->data + t->byte_offset, types[i].ours, t->rank, t->dims,
                           hold ? NULL : release_with_lock, m, &value, &e) != ORTC_OK) {
        py_dlpack_release(m);
        py_raise(&e);
        return NULL;
    }
    if (hold) hold->dlpack = m;
    return value;
}
