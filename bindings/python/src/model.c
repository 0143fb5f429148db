/* bindings/python/src/model.c: Model: a loaded file. What it says of itself leaves as plain dicts and tuples;
 * ortc/__init__.py gives them names. */
#include "py.h"

/* ---- From memory --------------------------------------------------------------------------------------- */

static uint64_t memory_bytes(void *arg) { return (uint64_t)((py_buffer *)arg)->bytes; }
static const void *memory_map(void *arg) { return ((py_buffer *)arg)->data; }
static void memory_close(void *arg)
{
    if (!Py_IsInitialized()) return;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyBuffer_Release(arg);
    PyMem_Free(arg);
    PyGILState_Release(lock);
}

/* The buffer belongs to the model from here on, also on failure: `close` is called when it is needed no more,
 * which may be after the Python object is gone. */
static ortc_status load_buffer(PyObject *source, const ortc_model_options *options, ortc_model **out,
                               ortc_error *e)
{
    py_buffer *b = PyMem_Malloc(sizeof *b);
    if (!b) {
        PyErr_NoMemory();
        return ORTC_OUT_OF_MEMORY;
    }
    *b = (py_buffer){0};
    if (PyObject_GetBuffer(source, b, 0) < 0) {
        PyMem_Free(b);
        return ORTC_INVALID_ARGUMENT;
    }
    const ortc_reader reader = {
        .size = sizeof reader, .arg = b, .bytes = memory_bytes, .map = memory_map, .close = memory_close};
    PyThreadState *thread = PyEval_SaveThread();
    const ortc_status s = ortc_model_load_reader(&reader, options, out, e);
    PyEval_RestoreThread(thread);
    return s;
}

static ortc_status load_path(PyObject *source, const ortc_model_options *options, ortc_model **out,
                             ortc_error *e)
{
    PyObject *path;
    if (!PyUnicode_FSConverter(source, &path)) return ORTC_INVALID_ARGUMENT;
    const char *text = PyBytes_AsString(path);
    PyThreadState *thread = PyEval_SaveThread();
    const ortc_status s = ortc_model_load(text, options, out, e);
    PyEval_RestoreThread(thread);
    Py_DECREF(path);
    return s;
}

static PyObject *model_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"source", "passes",     "max_bytes", "follow_links", "fold_operations", "timeout",
                            "cancel", "interleave", NULL};
    PyObject *source, *timeout = NULL, *cancel = NULL;
    int passes = 1, follow = 0, interleave = 0;
    unsigned long long max_bytes = 0, fold = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$pKpKOOp:Model", names, &source, &passes, &max_bytes,
                                     &follow, &fold, &timeout, &cancel, &interleave))
        return NULL;
    ortc_model_options options = ORTC_MODEL_OPTIONS_INIT;
    options.flags = (passes ? 0 : ORTC_MODEL_NO_PASSES) | (follow ? ORTC_MODEL_FOLLOW_LINKS : 0) |
                    (interleave ? ORTC_MODEL_INTERLEAVE : 0);
    options.max_bytes = max_bytes;
    options.fold_operations = fold;
    if (!py_stop(timeout, cancel, &options.deadline_ns, &options.cancel)) return NULL;
    ortc_model *model = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = PyObject_CheckBuffer(source) ? load_buffer(source, &options, &model, &e)
                                                 : load_path(source, &options, &model, &e);
    if (s != ORTC_OK) return PyErr_Occurred() ? NULL : py_raise(&e);
    py_model *self = (py_model *)PyType_GenericAlloc(type, 0);
    if (!self) {
        ortc_model_release(model);
        return NULL;
    }
    self->model = model;
    return (PyObject *)self;
}

static void model_dealloc(PyObject *object)
{
    py_model *self = (py_model *)object;
    if (self->weak) PyObject_ClearWeakRefs(object);
    ortc_model_release(self->model);
    py_free_object(object);
}

/* ---- What it says -------------------------------------------------------------------------------------- */

/* (name, type, element type or None, shape or None, optional, documentation) */
static PyObject *describe_io(const ortc_io *io)
{
    PyObject *shape;
    if (io->rank < 0 || !io->type || io->type->kind != ORTC_KIND_TENSOR) {
        Py_INCREF(Py_None);
        shape = Py_None;
    } else {
        shape = PyTuple_New(io->rank);
        for (int32_t i = 0; shape && i < io->rank; i++) {
            PyObject *extent = io->dims[i] >= 0 ? PyLong_FromLongLong(io->dims[i])
                                                : Py_BuildValue("z", io->symbols ? io->symbols[i] : NULL);
            if (!extent || PyTuple_SetItem(shape, i, extent) < 0) Py_CLEAR(shape);
        }
    }
    PyObject *text = py_type_text(io->type);
    return Py_BuildValue("(sNzNOs)", io->name, text, io->dtype ? ortc_dtype_name(io->dtype) : NULL, shape,
                         io->flags & ORTC_IO_OPTIONAL ? Py_True : Py_False, io->doc);
}

static PyObject *describe_all(const ortc_model *model, const ortc_io *(*at)(const ortc_model *, size_t))
{
    PyObject *list = PyList_New(0);
    const ortc_io *io;
    for (size_t i = 0; list && (io = at(model, i)); i++) {
        PyObject *item = describe_io(io);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *model_inputs(PyObject *self, PyObject *unused)
{
    return describe_all(((py_model *)self)->model, ortc_model_input);
}
static PyObject *model_outputs(PyObject *self, PyObject *unused)
{
    return describe_all(((py_model *)self)->model, ortc_model_output);
}

/* A dict of n names, each with a number or a text. */
static PyObject *dict_of(size_t n, const char *const *names, const int64_t *whole, const uint64_t *natural,
                         const char *const *texts)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < n; i++) {
        PyObject *item = whole     ? PyLong_FromLongLong(whole[i])
                         : natural ? PyLong_FromUnsignedLongLong(natural[i])
                                   : PyUnicode_FromString(texts[i]);
        if (!item || PyDict_SetItemString(dict, names[i], item) < 0) Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    return dict;
}

static PyObject *model_describe(PyObject *self, PyObject *unused)
{
    const ortc_model_info *d = ortc_model_describe(((py_model *)self)->model);
    return Py_BuildValue("{s:i,s:s,s:s,s:s,s:s,s:s,s:L,s:K,s:K,s:K,s:K,s:K,s:N,s:N,s:N,s:N}", "ir_version",
                         (int)d->ir_version, "producer", d->producer, "producer_version", d->producer_version,
                         "domain", d->domain, "graph_name", d->graph_name, "doc", d->doc, "version",
                         (long long)d->model_version, "nodes", (unsigned long long)d->n_nodes, "initializers",
                         (unsigned long long)d->n_initializers, "parameters",
                         (unsigned long long)d->n_parameters, "weight_bytes",
                         (unsigned long long)d->weight_bytes, "unfolded", (unsigned long long)d->n_unfolded,
                         "opsets", dict_of(d->n_opsets, d->opset_domains, d->opset_versions, NULL, NULL),
                         "metadata", dict_of(d->n_metadata, d->metadata_keys, NULL, NULL, d->metadata_values),
                         "operators", dict_of(d->n_ops, d->op_names, NULL, d->op_counts, NULL), "passes",
                         dict_of(d->n_passes, d->pass_names, NULL, d->pass_edits, NULL));
}

static PyObject *model_save(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", "external", "raised", NULL};
    PyObject *path, *external = NULL;
    int raised = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|$Op:save", names, PyUnicode_FSConverter, &path,
                                     &external, &raised))
        return NULL;
    ortc_save_options options = ORTC_SAVE_OPTIONS_INIT;
    PyObject *file = NULL;
    if (external && external != Py_None) {
        if (!PyUnicode_FSConverter(external, &file)) {
            Py_DECREF(path);
            return NULL;
        }
        options.flags |= ORTC_SAVE_EXTERNAL;
        options.external_file = PyBytes_AsString(file);
    }
    options.flags |= raised ? ORTC_SAVE_RAISED : 0;
    ortc_error e = ORTC_ERROR_INIT;
    const char *to = PyBytes_AsString(path);
    PyThreadState *thread = PyEval_SaveThread();
    const ortc_status s = ortc_model_save(((py_model *)self)->model, to, &options, &e);
    PyEval_RestoreThread(thread);
    Py_XDECREF(file);
    Py_DECREF(path);
    if (s != ORTC_OK) return py_raise(&e);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"_inputs", model_inputs, METH_NOARGS, NULL},
    {"_outputs", model_outputs, METH_NOARGS, NULL},
    {"_describe", model_describe, METH_NOARGS, NULL},
    {"save", (PyCFunction)(void (*)(void))model_save, METH_VARARGS | METH_KEYWORDS,
     "save(path, *, external=None, raised=False)\n--\n\nWrites the model as the graph passes left it, as "
     "standard "
     "ONNX.\n\nexternal: the name of a file beside it for the weights. raised: operators that the passes "
     "made "
     "(Gelu, Attention) stay such, even if that takes a newer opset."},
    {0},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_model, weak), READONLY, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_new, model_create},
    {Py_tp_dealloc, model_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0},
};
PyType_Spec py_model_spec = {"ortc._ortc.Model", sizeof(py_model), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
