/* bindings/python/src/dlpack.c: tensors to and from other libraries by DLPack (dmlc.github.io/dlpack), whose
 * few structs are declared here: version 1.0 and what was before it. Host memory only. */
#include "py.h"

#include <stdlib.h>
#include <string.h>

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, index; /* 1: host; 3: host, pinned */
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

static bool describe(const py_value *self, dl_tensor *t, int64_t *dims)
{
    size_t i = 0;
    while (i < COUNT_OF(types) && types[i].ours != ortc_value_dtype(self->value)) i++;
    const void *data = ortc_value_host(self->value);
    if (i == COUNT_OF(types) || (!data && ortc_value_bytes(self->value))) {
        PyErr_Format(PyExc_BufferError, "no DLPack tensor is made of a value of type %s %s",
                     ortc_dtype_name(ortc_value_dtype(self->value)),
                     ortc_value_memory(self->value) ? "in a device's memory: to_host() comes first" : "");
        return false;
    }
    *t = (dl_tensor){.data = (void *)(uintptr_t)data, .device = {1, 0}, .dims = dims};
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
    int major = 0, minor = 0, device_type = 1, device_index = 0;
    if (newest != Py_None && !PyArg_ParseTuple(newest, "ii", &major, &minor)) return NULL;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &device_type, &device_index)) return NULL;
    if (device_type != 1 || copy == Py_True) {
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

ortc_value *py_dlpack_import(PyObject *object, py_hold *hold)
{
    PyObject *capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
    if (!capsule) return NULL;
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (!m) {
        Py_DECREF(capsule);
        return NULL;
    }
    const dl_tensor *t = &m->tensor;
    size_t i = 0;
    while (i < COUNT_OF(types) && (types[i].code != t->dtype.code || types[i].bits != t->dtype.bits)) i++;
    const char *why = t->device.type != 1 && t->device.type != 3 ? "lies in the memory of a device"
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
    if (ortc_value_wrap((char *)t->data + t->byte_offset, types[i].ours, t->rank, t->dims,
                        hold ? NULL : release_with_lock, m, &value, &e) != ORTC_OK) {
        py_dlpack_release(m);
        py_raise(&e);
        return NULL;
    }
    if (hold) hold->dlpack = m;
    return value;
}
