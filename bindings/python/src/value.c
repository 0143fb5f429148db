/* bindings/python/src/value.c: Value: a tensor, sequence, map or optional of the library's, as an object that
 * gives its memory to others without copies: by the buffer protocol (on the host) and by DLPack. */
#include "py.h"

#include <string.h>

PyObject *py_dims(int32_t rank, const int64_t *dims)
{
    PyObject *tuple = PyTuple_New(rank);
    for (int32_t i = 0; tuple && i < rank; i++) {
        PyObject *extent = PyLong_FromLongLong(dims[i]);
        if (!extent || PyTuple_SetItem(tuple, i, extent) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *py_value_new(ortc_value *value, bool readonly)
{
    py_value *self = (py_value *)PyType_GenericAlloc(py_value_type, 0);
    if (!self) {
        ortc_value_release(value);
        return NULL;
    }
    self->value = value;
    self->readonly = readonly;
    return (PyObject *)self;
}

static void type_text(const ortc_type *t, char *out, size_t bytes)
{
    size_t n = strlen(out);
    if (!t || n + 1 >= bytes) return;
    if (t->kind == ORTC_KIND_TENSOR) {
        snprintf(out + n, bytes - n, "%s", ortc_dtype_name(t->dtype));
        return;
    }
    static const char *const kinds[] = {"?", "", "sequence(", "map(", "optional("};
    snprintf(out + n, bytes - n, "%s", t->kind < COUNT_OF(kinds) ? kinds[t->kind] : "?");
    if (t->kind == ORTC_KIND_NONE) return;
    n = strlen(out);
    if (t->kind == ORTC_KIND_MAP) snprintf(out + n, bytes - n, "%s, ", ortc_dtype_name(t->dtype));
    type_text(t->of, out, bytes);
    n = strlen(out);
    snprintf(out + n, bytes - n, ")");
}

PyObject *py_type_text(const ortc_type *t)
{
    char text[256] = "";
    type_text(t, text, sizeof text);
    return PyUnicode_FromString(text);
}

/* ---- The type ------------------------------------------------------------------------------------------ */

static PyObject *value_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"data", NULL};
    PyObject *data;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:Value", names, &data)) return NULL;
    ortc_value *value = py_to_value(data, NULL, NULL);
    return value ? py_value_new(value, false) : NULL;
}

static void value_dealloc(PyObject *object)
{
    py_value *self = (py_value *)object;
    if (self->weak) PyObject_ClearWeakRefs(object);
    ortc_value_release(self->value);
    PyMem_Free(self->dims);
    py_free_object(object);
}

static PyObject *value_dtype(py_value *self, void *unused)
{
    return PyUnicode_FromString(ortc_dtype_name(ortc_value_dtype(self->value)));
}
static PyObject *value_type(py_value *self, void *unused)
{
    return py_type_text(ortc_value_type(self->value));
}
static PyObject *value_shape(py_value *self, void *unused)
{
    return py_dims(ortc_value_rank(self->value), ortc_value_dims(self->value));
}
static PyObject *value_bytes(py_value *self, void *unused)
{
    return PyLong_FromSize_t(ortc_value_bytes(self->value));
}
static PyObject *value_memory(py_value *self, void *unused)
{
    return PyLong_FromUnsignedLong(ortc_value_memory(self->value));
}
static PyObject *value_readonly(py_value *self, void *unused) { return PyBool_FromLong(self->readonly); }

/* <ortc.Value f32[2,3]>, <ortc.Value sequence(f32)> */
static PyObject *value_repr(PyObject *object)
{
    const ortc_value *v = ((py_value *)object)->value;
    PyObject *type = py_type_text(ortc_value_type(v)), *shape = PyUnicode_FromString("");
    const bool tensor = ortc_value_type(v)->kind == ORTC_KIND_TENSOR;
    for (int32_t i = 0; shape && i < ortc_value_rank(v); i++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s%lld", shape, i ? "," : "",
                                                (long long)ortc_value_dims(v)[i]);
        Py_DECREF(shape);
        shape = longer;
    }
    PyObject *text = type && shape
                         ? PyUnicode_FromFormat(tensor ? "<ortc.Value %U[%U]%s>" : "<ortc.Value %U%U%s>",
                                                type, shape, ortc_value_memory(v) ? " on a device" : "")
                         : NULL;
    Py_XDECREF(type);
    Py_XDECREF(shape);
    return text;
}

static Py_ssize_t value_length(PyObject *self)
{
    return (Py_ssize_t)ortc_value_count(((py_value *)self)->value);
}

static PyObject *value_to_python(py_value *self, PyObject *unused)
{
    return py_from_value(ortc_value_retain(self->value), self->readonly);
}

/* Copies to memory of the host, where it is not there. */
static PyObject *value_to_host(py_value *self, PyObject *unused)
{
    ortc_value *there;
    ortc_error e = ORTC_ERROR_INIT;
    if (ortc_value_memory(self->value) == 0) {
        Py_INCREF(self);
        return (PyObject *)self;
    }
    ortc_status s = ortc_value_create(ortc_value_dtype(self->value), ortc_value_rank(self->value),
                                      ortc_value_dims(self->value), &there, &e);
    PyThreadState *thread = PyEval_SaveThread();
    if (s == ORTC_OK) s = ortc_value_copy(self->value, there, &e);
    PyEval_RestoreThread(thread);
    if (s == ORTC_OK) return py_value_new(there, false);
    ortc_value_release(there);
    return py_raise(&e);
}

/* ---- Buffers ------------------------------------------------------------------------------------------- */

/* As the struct module writes them; NULL: no such type there, bytes are given. */
static const char *format_of(ortc_dtype t)
{
    switch (t) {
    case ORTC_F32: return "f";
    case ORTC_F64: return "d";
    case ORTC_F16: return "e";
    case ORTC_U8: return "B";
    case ORTC_I8: return "b";
    case ORTC_U16: return "H";
    case ORTC_I16: return "h";
    case ORTC_U32: return "I";
    case ORTC_I32: return "i";
    case ORTC_U64: return "Q";
    case ORTC_I64: return "q";
    case ORTC_BOOL: return "?";
    case ORTC_C64: return "Zf";
    case ORTC_C128: return "Zd";
    default: return NULL;
    }
}

static int value_get_buffer(PyObject *object, py_buffer *out, int flags)
{
    py_value *self = (py_value *)object;
    const void *data = ortc_value_host(self->value);
    const size_t bytes = ortc_value_bytes(self->value);
    out->owner = NULL;
    if (!data && bytes) {
        PyErr_SetString(PyExc_BufferError, "only tensors of numbers in the host's memory have a buffer");
        return -1;
    }
    if ((flags & PY_BUFFER_WRITABLE) && self->readonly) {
        PyErr_SetString(PyExc_BufferError, "this tensor is shared and must not be written into");
        return -1;
    }
    const ortc_dtype t = ortc_value_dtype(self->value);
    const char *format = format_of(t);
    const int32_t rank = format ? ortc_value_rank(self->value) : 1;
    if ((flags & PY_BUFFER_DIMS) && !self->dims) {
        self->dims = PyMem_Malloc(2 * (size_t)(rank + 1) * sizeof *self->dims);
        if ((flags & PY_BUFFER_DIMS) && !self->dims) {
            PyErr_NoMemory();
            return -1;
        }
        Py_ssize_t stride = format ? ortc_dtype_bits(t) / 8 : 1;
        for (int32_t i = rank - 1; i >= 0; i--) {
            self->dims[i] = format ? (Py_ssize_t)ortc_value_dims(self->value)[i] : (Py_ssize_t)bytes;
            self->dims[rank + i] = stride;
            stride *= self->dims[i];
        }
    }
    static char nothing[1];
    *out = (py_buffer){.data = data ? (void *)(uintptr_t)data : nothing, .bytes = (Py_ssize_t)bytes};
    out->item_bytes = format ? ortc_dtype_bits(t) / 8 : 1;
    out->readonly = self->readonly;
    out->format = (flags & PY_BUFFER_FORMAT) ? (char *)(uintptr_t)(format ? format : "B") : NULL;
    out->rank = (flags & PY_BUFFER_DIMS) ? rank : 1;
    out->dims = (flags & PY_BUFFER_DIMS) ? self->dims : NULL;
    out->strides = (flags & PY_BUFFER_STRIDES) == PY_BUFFER_STRIDES ? self->dims + rank : NULL;
    out->owner = object;
    Py_INCREF(object);
    return 0;
}

static PyMethodDef methods[] = {
    {"numpy", (PyCFunction)value_to_python, METH_NOARGS,
     "numpy()\n--\n\nAn array over the tensor's memory, without a copy; a list, dict or None for what is no "
     "tensor."},
    {"to_host", (PyCFunction)value_to_host, METH_NOARGS,
     "to_host()\n--\n\nThis tensor, or a copy of it in the host's memory if it lies in a device's."},
    {"__dlpack__", (PyCFunction)(void (*)(void))py_dlpack_export, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nThe tensor as a DLPack "
     "capsule."},
    {"__dlpack_device__", (PyCFunction)py_dlpack_device, METH_NOARGS,
     "__dlpack_device__()\n--\n\nDLPack's (device type, index)."},
    {0},
};
static PyGetSetDef properties[] = {
    {"dtype", (getter)value_dtype, NULL, "A tensor's element type, 'f32'; 'absent' for what is no tensor."},
    {"type", (getter)value_type, NULL, "'f32', 'sequence(f32)', 'map(i64, f32)'."},
    {"shape", (getter)value_shape, NULL, "A tensor's extents."},
    {"nbytes", (getter)value_bytes, NULL, "Size of a tensor's data."},
    {"memory", (getter)value_memory, NULL, "Number of the memory that it lies in; 0: the host's."},
    {"readonly", (getter)value_readonly, NULL, "Whether others share it, so that it cannot be written into."},
    {0},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_value, weak), READONLY, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Value(data)\n--\n\nA value of the library's: a tensor, sequence, map or optional.\n\nOver the "
     "memory of `data` (an array, whatever has a buffer or __dlpack__), which is not copied if it is "
     "dense and must not change its size while the value lives; or over a copy of a list or number. "
     "Values as inputs of many runs save the conversion; results are values with "
     "Session.run(..., values=True)."},
    {Py_tp_repr, value_repr},
    {Py_tp_new, value_create},
    {Py_tp_dealloc, value_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_sq_length, value_length},
    {PY_SLOT_GET_BUFFER, value_get_buffer},
    {0},
};
PyType_Spec py_value_spec = {"ortc._ortc.Value", sizeof(py_value), 0, Py_TPFLAGS_DEFAULT, slots};
