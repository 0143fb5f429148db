/* bindings/python/src/convert.c: Python objects to values of the library and back.
 *
 * The quick ways are here: dense memory that an object gives by the buffer protocol or by DLPack is wrapped,
 * and tensors of NumPy's own types become arrays over the value's memory. Everything else (lists, numbers,
 * strides, byte orders, text, ml_dtypes, elements smaller than a byte) goes through ortc/_convert.py, which
 * has NumPy at hand.
 */
#include "py.h"

#include <stdlib.h>
#include <string.h>

PyObject *py_convert(const char *name)
{
    static PyObject *module, *names; /* names: dict of what was asked for */
    if (!module && (!(names = PyDict_New()) || !(module = PyImport_ImportModule("ortc._convert"))))
        return NULL;
    PyObject *found = PyDict_GetItemString(names, name);
    if (found) return found;
    found = PyObject_GetAttrString(module, name);
    if (!found) return NULL;
    int stored = PyDict_SetItemString(names, name, found);
    Py_DECREF(found);
    return stored < 0 ? NULL : found;
}

void py_hold_release(py_hold *hold)
{
    if (hold->buffer.owner) PyBuffer_Release(&hold->buffer);
    if (hold->dlpack) py_dlpack_release(hold->dlpack);
    *hold = (py_hold){.place = hold->place};
}

/* ---- Tensors over memory ------------------------------------------------------------------------------- */

/* The element type that the struct module writes so; ORTC_ABSENT for others. */
static ortc_dtype dtype_of(const char *format, Py_ssize_t bytes)
{
    if (!format) return ORTC_U8;
    if (*format == '<' || *format == '=' || *format == '@') format++; /* hosts are little-endian */
    if (format[0] == 'Z' && format[1] && !format[2])
        return format[1] == 'f' ? ORTC_C64 : format[1] == 'd' ? ORTC_C128 : ORTC_ABSENT;
    if (!format[0] || format[1]) return ORTC_ABSENT;
    const int size = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
    static const ortc_dtype whole[] = {ORTC_I8, ORTC_I16, ORTC_I32, ORTC_I64},
                            natural[] = {ORTC_U8, ORTC_U16, ORTC_U32, ORTC_U64};
    switch (format[0]) {
    case 'f': return ORTC_F32;
    case 'd': return ORTC_F64;
    case 'e': return ORTC_F16;
    case '?': return ORTC_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return whole[size];
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return natural[size];
    default: return ORTC_ABSENT;
    }
}

/* A value keeps its memory by a copy of the buffer, on the heap. */
static void release_buffer(void *buffer)
{
    if (!Py_IsInitialized()) return;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyBuffer_Release(buffer);
    PyMem_Free(buffer);
    PyGILState_Release(lock);
}

/* Takes the buffer: by `hold`, or by the value. dims NULL: the buffer's own. */
static ortc_value *wrap_buffer(py_buffer *b, ortc_dtype t, int32_t rank, const int64_t *dims, py_hold *hold)
{
    ortc_value *value = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    py_buffer *kept = hold ? NULL : PyMem_Malloc(sizeof *kept);
    if (!hold && !kept) {
        PyBuffer_Release(b);
        PyErr_NoMemory();
        return NULL;
    }
    _Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "dims are read where they are");
    if (!dims) dims = (const int64_t *)b->dims;
    if (ortc_value_wrap(b->data, t, rank, dims, kept ? release_buffer : NULL, kept, &value, &e) != ORTC_OK) {
        PyBuffer_Release(b);
        PyMem_Free(kept);
        py_raise(&e);
        return NULL;
    }
    *(kept ? kept : &hold->buffer) = *b;
    return value;
}

/* NULL without an exception: not by this way. */
static ortc_value *from_buffer(PyObject *object, py_hold *hold, int flags)
{
    py_buffer b = {0};
    if (!PyObject_CheckBuffer(object)) return NULL;
    if (PyObject_GetBuffer(object, &b, PY_BUFFER_DIMS | PY_BUFFER_FORMAT | flags) < 0) {
        PyErr_Clear();
        return NULL;
    }
    ortc_dtype t = dtype_of(b.format, b.item_bytes);
    if (t == ORTC_ABSENT) {
        PyBuffer_Release(&b);
        return NULL;
    }
    return wrap_buffer(&b, t, b.rank, NULL, hold);
}

/* ---- Tensors by way of NumPy --------------------------------------------------------------------------- */

static ortc_value *strings(PyObject *list, int32_t rank, const int64_t *dims)
{
    const Py_ssize_t n = PyList_Size(list);
    const char **texts = PyMem_Malloc((size_t)(n + 1) * sizeof *texts);
    size_t *lengths = PyMem_Malloc((size_t)(n + 1) * sizeof *lengths);
    ortc_value *value = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    bool good = texts && lengths;
    if (!good) PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < n; i++) {
        char *text;
        Py_ssize_t length;
        good = PyBytes_AsStringAndSize(PyList_GetItem(list, i), &text, &length) == 0;
        texts[i] = text;
        lengths[i] = (size_t)length;
    }
    if (good && ortc_value_create_strings(rank, dims, texts, lengths, &value, &e) != ORTC_OK) py_raise(&e);
    PyMem_Free(texts);
    PyMem_Free(lengths);
    return value;
}

/* _convert.tensor(object, wanted) gives (memory or list of bytes, element type, shape). */
static ortc_value *from_numpy(PyObject *object, ortc_dtype wanted, py_hold *hold)
{
    PyObject *convert = py_convert("tensor");
    PyObject *parts = convert ? PyObject_CallFunction(convert, "Oi", object, (int)wanted) : NULL;
    PyObject *memory, *shape;
    int64_t dims[64];
    int t;
    ortc_value *value = NULL;
    if (!parts) return NULL;
    if (!PyArg_ParseTuple(parts, "OiO!", &memory, &t, &PyTuple_Type, &shape)) goto end;
    const Py_ssize_t rank = PyTuple_Size(shape);
    if (rank > (Py_ssize_t)COUNT_OF(dims)) {
        PyErr_SetString(PyExc_ValueError, "an array of more than 64 dimensions");
        goto end;
    }
    for (Py_ssize_t i = 0; i < rank; i++) dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred()) goto end;
    if (t == ORTC_STRING) {
        value = strings(memory, (int32_t)rank, dims);
    } else {
        py_buffer b = {0};
        if (PyObject_GetBuffer(memory, &b, PY_BUFFER_DIMS) == 0)
            value = wrap_buffer(&b, t, (int32_t)rank, dims, hold);
    }
end:
    Py_DECREF(parts);
    return value;
}

static ortc_value *to_tensor(PyObject *object, const ortc_type *type, py_hold *hold)
{
    const ortc_dtype wanted = type ? type->dtype : ORTC_ABSENT;
    ortc_value *value = NULL;
    if (wanted != ORTC_STRING) {
        value = from_buffer(object, hold, 0);
        if (value || PyErr_Occurred()) return value;
        if (!PyObject_CheckBuffer(object) && PyObject_HasAttrString(object, "__dlpack__")) {
            value = py_dlpack_import(object, hold);
            if (value || !PyErr_ExceptionMatches(PyExc_BufferError)) return value;
            PyErr_Clear(); /* strides, types: NumPy may know better, or says what is wrong */
        }
    }
    return from_numpy(object, wanted, hold);
}

ortc_value *py_to_output(PyObject *object, py_hold *hold)
{
    if (PyObject_TypeCheck(object, py_value_type)) {
        if (!((py_value *)object)->readonly) return ortc_value_retain(((py_value *)object)->value);
        PyErr_SetString(PyExc_ValueError, "out: this value is shared and must not be written into");
        return NULL;
    }
    ortc_value *value = from_buffer(object, hold, PY_BUFFER_WRITABLE);
    if (!value && !PyErr_Occurred() && !PyObject_CheckBuffer(object) &&
        PyObject_HasAttrString(object, "__dlpack__"))
        value = py_dlpack_import(object, hold); /* before DLPack 1.0, which this asks for, all is writable */
    if (!value && !PyErr_Occurred())
        PyErr_Format(
            PyExc_TypeError,
            "out: expected a writable, dense array of one of NumPy's own types, what has __dlpack__, or an "
            "ortc.Value, got %R",
            (PyObject *)Py_TYPE(object));
    return value;
}

/* ---- Sequences, maps, optionals ------------------------------------------------------------------------ */

static ortc_value *to_sequence(PyObject *object, const ortc_type *type)
{
    PyObject *items = PySequence_List(object);
    const Py_ssize_t n = items ? PyList_Size(items) : 0;
    ortc_value **elements = items ? PyMem_Malloc((size_t)(n + 1) * sizeof *elements) : NULL;
    ortc_value *value = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    Py_ssize_t made = 0;
    while (elements && made < n &&
           (elements[made] = py_to_value(PyList_GetItem(items, made), type->of, NULL)))
        made++;
    if (elements && made == n &&
        ortc_value_create_sequence(type->of, (size_t)n, elements, &value, &e) != ORTC_OK)
        py_raise(&e);
    for (Py_ssize_t i = 0; i < made; i++) ortc_value_release(elements[i]);
    PyMem_Free(elements);
    Py_XDECREF(items);
    return value;
}

static ortc_value *to_map(PyObject *object, const ortc_type *type)
{
    if (!PyDict_Check(object)) {
        PyErr_Format(PyExc_TypeError, "expected a dict, got %R", (PyObject *)Py_TYPE(object));
        return NULL;
    }
    PyObject *keys = PyDict_Keys(object), *items = PyDict_Values(object);
    const ortc_type key_type = {.kind = ORTC_KIND_TENSOR, .dtype = type->dtype};
    const ortc_type item_type = {.kind = ORTC_KIND_SEQUENCE, .of = type->of};
    /* Numbers are one tensor of them; anything else is a sequence. */
    const bool flat = type->of && type->of->kind == ORTC_KIND_TENSOR;
    ortc_value *k = keys ? from_numpy(keys, key_type.dtype, NULL) : NULL;
    ortc_value *v = k && items
                        ? (flat ? from_numpy(items, type->of->dtype, NULL) : to_sequence(items, &item_type))
                        : NULL;
    ortc_value *value = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    if (v && ortc_value_create_map(k, v, &value, &e) != ORTC_OK) py_raise(&e);
    ortc_value_release(k);
    ortc_value_release(v);
    Py_XDECREF(keys);
    Py_XDECREF(items);
    return value;
}

static ortc_value *to_optional(PyObject *object, const ortc_type *type)
{
    ortc_value *element = NULL, *value = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    if (object != Py_None && !(element = py_to_value(object, type->of, NULL))) return NULL;
    if (ortc_value_create_optional(type->of, element, &value, &e) != ORTC_OK) py_raise(&e);
    ortc_value_release(element);
    return value;
}

ortc_value *py_to_value(PyObject *object, const ortc_type *type, py_hold *hold)
{
    if (PyObject_TypeCheck(object, py_value_type)) return ortc_value_retain(((py_value *)object)->value);
    switch (type ? type->kind : ORTC_KIND_NONE) {
    case ORTC_KIND_SEQUENCE: return to_sequence(object, type);
    case ORTC_KIND_MAP: return to_map(object, type);
    case ORTC_KIND_OPTIONAL: return to_optional(object, type);
    case ORTC_KIND_NONE: return to_tensor(object, NULL, hold);
    default: return to_tensor(object, type, hold);
    }
}

/* ---- Values to Python ---------------------------------------------------------------------------------- */

static PyObject *string_list(const ortc_value *value)
{
    const int64_t n = ortc_value_count(value);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        size_t bytes;
        const char *text = ortc_value_string(value, i, &bytes);
        PyObject *item = PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, "surrogateescape");
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *from_strings(const ortc_value *value)
{
    PyObject *list = string_list(value), *shape = py_dims(ortc_value_rank(value), ortc_value_dims(value));
    PyObject *convert = py_convert("strings"), *array = NULL;
    if (list && shape && convert) array = PyObject_CallFunctionObjArgs(convert, list, shape, NULL);
    Py_XDECREF(list);
    Py_XDECREF(shape);
    return array;
}

static PyObject *from_tensor(ortc_value *value, bool readonly)
{
    static PyObject *array, *dtypes[ORTC_DTYPE_COUNT]; /* numpy.ndarray, and NumPy's own types */
    const ortc_dtype t = ortc_value_dtype(value);
    PyObject *object, *shape, *result = NULL;
    if (t == ORTC_STRING) {
        result = from_strings(value);
        ortc_value_release(value);
        return result;
    }
    if (!array) {
        PyObject *table = py_convert("DTYPES");
        for (int i = 0; table && i < ORTC_DTYPE_COUNT; i++) {
            dtypes[i] = PyList_GetItem(table, i); /* borrowed: _convert keeps it */
            if (!dtypes[i]) table = NULL;
        }
        array = table ? py_convert("ndarray") : NULL;
        if (!array) {
            ortc_value_release(value);
            return NULL;
        }
    }
    if (!(object = py_value_new(value, readonly))) return NULL;
    if (ortc_value_memory(value) != 0) return object; /* on a device: the value itself */
    if (dtypes[t] == Py_None) {
        PyObject *convert = py_convert("array");
        if (convert) result = PyObject_CallFunction(convert, "Oi", object, (int)t);
    } else if ((shape = py_dims(ortc_value_rank(value), ortc_value_dims(value)))) {
        result = PyObject_CallFunctionObjArgs(array, shape, dtypes[t], object, NULL);
        Py_DECREF(shape);
    }
    Py_DECREF(object);
    return result;
}

static PyObject *from_map(const ortc_value *value)
{
    PyObject *dict = NULL, *sides[2] = {NULL, NULL};
    for (size_t i = 0; i < 2; i++) {
        PyObject *side = py_from_value(ortc_value_retain(ortc_value_element(value, i)), true);
        if (!side) goto end;
        sides[i] = PyList_Check(side) ? side : PyObject_CallMethod(side, "tolist", NULL);
        if (sides[i] != side) Py_DECREF(side);
        if (!sides[i]) goto end;
    }
    dict = PyDict_New();
    for (Py_ssize_t i = 0; dict && i < PyList_Size(sides[0]); i++)
        if (PyDict_SetItem(dict, PyList_GetItem(sides[0], i), PyList_GetItem(sides[1], i)) < 0)
            Py_CLEAR(dict);
end:
    Py_XDECREF(sides[0]);
    Py_XDECREF(sides[1]);
    return dict;
}

static PyObject *from_sequence(const ortc_value *value)
{
    const int64_t n = ortc_value_count(value);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *item = py_from_value(ortc_value_retain(ortc_value_element(value, (size_t)i)), true);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *py_from_value(ortc_value *value, bool readonly)
{
    const ortc_type *type = value ? ortc_value_type(value) : NULL;
    PyObject *result = NULL;
    switch (type ? type->kind : ORTC_KIND_NONE) {
    case ORTC_KIND_TENSOR: return from_tensor(value, readonly);
    case ORTC_KIND_SEQUENCE: result = from_sequence(value); break;
    case ORTC_KIND_MAP: result = from_map(value); break;
    case ORTC_KIND_OPTIONAL:
        if (ortc_value_count(value)) {
            result = py_from_value(ortc_value_retain(ortc_value_element(value, 0)), true);
        } else {
            Py_INCREF(Py_None);
            result = Py_None;
        }
        break;
    default: PyErr_SetString(PyExc_RuntimeError, "a value without a type"); break;
    }
    ortc_value_release(value);
    return result;
}
