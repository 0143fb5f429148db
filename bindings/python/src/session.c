/* bindings/python/src/session.c: Session: a model placed on providers, and what is asked of it besides runs,
 * which are in run.c. */
#include "py.h"

#include <stdlib.h>
#include <string.h>

/* ---- Options ------------------------------------------------------------------------------------------- */

/* Memory for the arrays of one call: blocks in a list, freed together. */
typedef struct block {
    struct block *next;
} block;
static void *block_take(block **all, size_t bytes)
{
    block *b = PyMem_Malloc(sizeof *b + bytes);
    if (!b) return PyErr_NoMemory();
    b->next = *all;
    *all = b;
    return b + 1;
}
static void block_free(block *all)
{
    for (block *next; all; all = next) {
        next = all->next;
        PyMem_Free(all);
    }
}

/* A str's bytes, terminated; NULL with an exception. */
static const char *text_of(PyObject *text, block **all)
{
    char *bytes, *copy = NULL;
    PyObject *encoded = PyUnicode_Check(text) ? PyUnicode_AsUTF8String(text) : NULL;
    if (!encoded && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "expected a str, got %R", (PyObject *)Py_TYPE(text));
    if (encoded && PyBytes_AsStringAndSize(encoded, &bytes, NULL) == 0 &&
        (copy = block_take(all, strlen(bytes) + 1)))
        strcpy(copy, bytes);
    Py_XDECREF(encoded);
    return copy;
}

/* The items of a list of str; NULL with an exception. */
static const char *const *texts_of(PyObject *list, size_t *out_count, block **all)
{
    const Py_ssize_t n = PyList_Size(list);
    const char **texts = n < 0 ? NULL : block_take(all, (size_t)(n + 1) * sizeof *texts);
    for (Py_ssize_t i = 0; texts && i < n; i++)
        if (!(texts[i] = text_of(PyList_GetItem(list, i), all))) return NULL;
    *out_count = (size_t)n;
    return texts;
}

static const ortc_tie *ties_of(PyObject *list, size_t *out_count, block **all)
{
    const Py_ssize_t n = PyList_Size(list);
    ortc_tie *ties = n < 0 ? NULL : block_take(all, (size_t)(n + 1) * sizeof *ties);
    for (Py_ssize_t i = 0; ties && i < n; i++) {
        PyObject *input, *output;
        int axis;
        long long capacity;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "UUiL", &input, &output, &axis, &capacity))
            return NULL;
        ties[i] = (ortc_tie){text_of(input, all), text_of(output, all), axis, 0, capacity};
        if (!ties[i].input || !ties[i].output) return NULL;
    }
    *out_count = (size_t)n;
    return ties;
}

/* Tables by which runs find names: of inputs by hashing, of outputs by position. */
static bool list_names(py_session *self, ortc_model *model)
{
    size_t n_in = 0, n_out = 0;
    while (ortc_model_input(model, n_in)) n_in++;
    while (ortc_model_output(model, n_out)) n_out++;
    self->in = PyMem_Malloc((n_in + n_out + 1) * sizeof *self->in);
    if (self->in) self->in[n_in + n_out] = NULL;
    self->inputs = PyDict_New();
    self->outputs = PyTuple_New((Py_ssize_t)n_out);
    if (!self->in || !self->inputs || !self->outputs) return false;
    self->out = self->in + n_in;
    for (size_t i = 0; i < n_in; i++) {
        self->in[i] = ortc_model_input(model, i);
        PyObject *index = PyLong_FromSize_t(i);
        if (!index || PyDict_SetItemString(self->inputs, self->in[i]->name, index) < 0) return false;
        Py_DECREF(index);
    }
    for (size_t i = 0; i < n_out; i++) {
        self->out[i] = ortc_model_output(model, i);
        PyObject *name = PyUnicode_InternFromString(self->out[i]->name);
        if (!name || PyTuple_SetItem(self->outputs, (Py_ssize_t)i, name) < 0) return false;
    }
    return true;
}

/* Session.__init__ of ortc/__init__.py has given everything its default and form. */
static PyObject *session_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *model, *keep, *choose, *dim_names, *dim_values, *ties, *timeout, *cancel;
    const char *providers, *require, *precision;
    unsigned int threads, max_contexts;
    unsigned long long plan_cache, max_bytes;
    int fusion, winograd, pack_at_once;
    if (!PyArg_ParseTuple(args, "O!zzIIKKpppO!O!O!O!O!zOO:Session", py_model_type, &model, &providers,
                          &require, &threads, &max_contexts, &plan_cache, &max_bytes, &fusion, &winograd,
                          &pack_at_once, &PyList_Type, &dim_names, &PyList_Type, &dim_values, &PyList_Type,
                          &ties, &PyList_Type, &keep, &PyList_Type, &choose, &precision, &timeout, &cancel))
        return NULL;
    block *all = NULL;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.flags = (fusion ? 0 : ORTC_SESSION_NO_FUSION) | (winograd ? 0 : ORTC_SESSION_NO_WINOGRAD) |
              (pack_at_once ? ORTC_SESSION_PACK_AT_ONCE : 0);
    o.providers = providers;
    o.require = require;
    o.threads = threads;
    o.max_contexts = max_contexts;
    o.plan_cache_bytes = plan_cache;
    o.max_bytes = max_bytes;
    o.precision = precision;
    if (!py_stop(timeout, cancel, &o.deadline_ns, &o.cancel)) return NULL;
    o.dim_names = texts_of(dim_names, &o.n_dims, &all);
    int64_t *values = o.dim_names ? block_take(&all, (o.n_dims + 1) * sizeof *values) : NULL;
    for (size_t i = 0; values && i < o.n_dims; i++)
        values[i] = PyLong_AsLongLong(PyList_GetItem(dim_values, (Py_ssize_t)i));
    o.dim_values = values;
    o.ties = ties_of(ties, &o.n_ties, &all);
    o.keep = o.ties ? texts_of(keep, &o.n_keep, &all) : NULL;
    o.choose = o.keep ? texts_of(choose, &o.n_choose, &all) : NULL;
    py_session *self = PyErr_Occurred() ? NULL : (py_session *)PyType_GenericAlloc(type, 0);
    if (self && list_names(self, ((py_model *)model)->model)) {
        ortc_error e = ORTC_ERROR_INIT;
        Py_INCREF(model);
        self->model = model;
        PyThreadState *thread = PyEval_SaveThread();
        ortc_session_create(((py_model *)model)->model, &o, &self->session, &e);
        PyEval_RestoreThread(thread);
        if (e.code != ORTC_OK) py_raise(&e);
    }
    block_free(all);
    if (self && PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

static int session_traverse(PyObject *object, visitproc visit, void *arg)
{
    const py_session *self = (py_session *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->model);
    Py_VISIT(self->inputs);
    Py_VISIT(self->outputs);
    return 0;
}
static int session_clear(PyObject *object)
{
    py_session *self = (py_session *)object;
    Py_CLEAR(self->model);
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->outputs);
    return 0;
}
static void session_dealloc(PyObject *object)
{
    py_session *self = (py_session *)object;
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    ortc_session_release(self->session);
    PyMem_Free(self->in);
    session_clear(object);
    py_free_object(object);
}

/* ---- Looking inside ------------------------------------------------------------------------------------ */

typedef struct list_arg {
    PyObject *list;
    bool failed;
} list_arg;

static int append(list_arg *l, PyObject *item)
{
    l->failed = !item || PyList_Append(l->list, item) < 0;
    Py_XDECREF(item);
    return l->failed;
}

static int each_placement(void *arg, const ortc_placement *p)
{
    return append(arg,
                  Py_BuildValue("{s:s,s:s,s:s,s:i,s:s,s:s,s:s,s:s}", "node", p->node, "domain", p->domain,
                                "op", p->op, "version", (int)p->version, "provider", p->provider, "kernel",
                                p->kernel, "fused", p->fused, "reasons", p->reasons));
}

static PyObject *session_placement(PyObject *self, PyObject *unused)
{
    list_arg l = {PyList_New(0), false};
    if (!l.list) return NULL;
    ortc_session_placement(((py_session *)self)->session, each_placement, &l);
    if (l.failed) Py_CLEAR(l.list);
    return l.list;
}

static PyObject *session_passes(PyObject *self, PyObject *unused)
{
    PyObject *dict = PyDict_New();
    uint64_t edits;
    const char *name;
    for (size_t i = 0; dict && (name = ortc_session_pass(((py_session *)self)->session, i, &edits)); i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(edits);
        if (!count || PyDict_SetItemString(dict, name, count) < 0) Py_CLEAR(dict);
        Py_XDECREF(count);
    }
    return dict;
}

static PyObject *session_statistics(PyObject *self, PyObject *unused)
{
    ortc_session_stats s = ORTC_SESSION_STATS_INIT;
    ortc_session_statistics(((py_session *)self)->session, &s);
    return Py_BuildValue("{s:I,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "contexts", s.n_contexts, "plans_made",
                         (unsigned long long)s.plans_made, "plan_bytes", (unsigned long long)s.plan_bytes,
                         "arena_bytes", (unsigned long long)s.arena_bytes, "captures",
                         (unsigned long long)s.captures, "replays", (unsigned long long)s.replays,
                         "bytes_to_devices", (unsigned long long)s.bytes_to_devices, "bytes_from_devices",
                         (unsigned long long)s.bytes_from_devices);
}

static PyObject *session_trim(PyObject *self, PyObject *unused)
{
    PyThreadState *thread = PyEval_SaveThread();
    const uint64_t bytes = ortc_session_trim(((py_session *)self)->session);
    PyEval_RestoreThread(thread);
    return PyLong_FromUnsignedLongLong(bytes);
}

PyObject *py_session_run(PyObject *, PyObject *args, PyObject *keywords); /* run.c */

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))py_session_run, METH_VARARGS | METH_KEYWORDS,
     "run(inputs, outputs=None, *, out=None, state=None, advance=0, cancel=None, timeout=None, seed=0, "
     "profiler=None, values=False, device=None, stream=0)\n--\n\nRuns the model; a dict of results by "
     "name.\n\n"
     "inputs: a dict of arrays by name: NumPy arrays, whatever has a buffer or __dlpack__, ortc.Value, lists "
     "and "
     "numbers; lists for sequences, dicts for maps, None for an empty optional. Dense memory is not copied.\n"
     "outputs: names of those that are wanted (all); the others are not computed where that saves work.\n"
     "out: a dict of writable arrays that results are written into, by name.\n"
     "state, advance: tied values come from and stay in this ortc.State; positions that the run adds to "
     "fixed "
     "ties.\n"
     "cancel: an ortc.Cancel. timeout: seconds, after which ortc.Deadline is raised.\n"
     "seed: for random operators. profiler: an ortc.Profiler.\n"
     "values: results are ortc.Value instead of arrays, lists and dicts.\n"
     "device: results stay in the memory of this device of the session's (\"cuda\"), as ortc.Value, which "
     "has "
     "__dlpack__. stream: the native stream of the session's first device that the run is queued on; CUDA's "
     "default one where an input lies on the GPU and none is given.\n\n"
     "Any thread, also at once; the interpreter's lock is not held. Errors are subclasses of ortc.Error."},
    {"_placement", session_placement, METH_NOARGS, NULL},
    {"_passes", session_passes, METH_NOARGS, NULL},
    {"statistics", session_statistics, METH_NOARGS,
     "statistics()\n--\n\nWhat the session holds, in bytes, and has done so far."},
    {"trim", session_trim, METH_NOARGS,
     "trim()\n--\n\nFrees what can be made again (idle contexts, plans, free memory); the bytes freed."},
    {0},
};
static PyMemberDef members[] = {
    {"model", T_OBJECT_EX, offsetof(py_session, model), READONLY, "The model that it runs."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_session, weak), READONLY, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_new, session_create},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_traverse, session_traverse},
    {Py_tp_clear, session_clear},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0},
};
PyType_Spec py_session_spec = {"ortc._ortc.Session", sizeof(py_session), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
