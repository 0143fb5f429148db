/* bindings/python/src/run.c: Session.run: from Python's arguments to ortc_run and back.
 *
 * What a run needs lies in one block: values of inputs and results, what holds their memory, names. The
 * inputs' memory is held by the run and not by the values, so that a small model pays for no object that it
 * does not see. */
#include "py.h"

#include <string.h>

typedef struct call {
    size_t n_in, n_out, n_held;
    py_place place;
    ortc_in *in;
    ortc_out *out;
    py_hold *holds;   /* of inputs, and of what results are written into */
    PyObject **names; /* of results */
    PyObject **given; /* arrays that results are written into, or NULL */
    PyObject *texts;  /* list of bytes: names that the model's tables do not have */
} call;

static bool call_init(call *c, size_t n_in, size_t n_out)
{
    const size_t sizes[] = {n_in * sizeof *c->in, n_out * sizeof *c->out, (n_in + n_out) * sizeof *c->holds,
                            n_out * sizeof *c->names, n_out * sizeof *c->given};
    size_t bytes = 0;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) bytes += sizes[i];
    char *block = PyMem_Malloc(bytes + 1);
    *c = (call){.n_out = n_out, .in = (ortc_in *)block, .place = c->place};
    if (!block) {
        PyErr_NoMemory();
        return false;
    }
    memset(block, 0, bytes);
    c->out = (ortc_out *)(block + sizes[0]);
    c->holds = (py_hold *)(block + sizes[0] + sizes[1]);
    c->names = (PyObject **)(block + sizes[0] + sizes[1] + sizes[2]);
    c->given = c->names + n_out;
    for (size_t i = 0; i < n_in + n_out; i++) c->holds[i].place = &c->place;
    return true;
}

static void call_end(call *c)
{
    for (size_t i = 0; i < c->n_in; i++) ortc_value_release(c->in[i].value);
    for (size_t i = 0; i < c->n_out; i++) ortc_value_release(c->out[i].value);
    for (size_t i = 0; i < c->n_held; i++) py_hold_release(&c->holds[i]);
    PyMem_Free(c->in);
    Py_XDECREF(c->texts);
}

/* A name that stands in no table: the library will say what is wrong with it, or it is a value that is
 * kept. */
static const char *text_of(call *c, PyObject *name)
{
    char *text;
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "names are str, got %R", (PyObject *)Py_TYPE(name));
        return NULL;
    }
    if (!c->texts && !(c->texts = PyList_New(0))) return NULL;
    PyObject *bytes = PyUnicode_AsUTF8String(name);
    const bool kept = bytes && PyList_Append(c->texts, bytes) == 0;
    Py_XDECREF(bytes); /* the list has it */
    return kept && PyBytes_AsStringAndSize(bytes, &text, NULL) == 0 ? text : NULL;
}

static bool add_input(call *c, const py_session *self, PyObject *name, PyObject *object)
{
    PyObject *index = PyDict_GetItemWithError(self->inputs, name);
    const ortc_io *io = index ? self->in[PyLong_AsSize_t(index)] : NULL;
    if (!index && PyErr_Occurred()) return false;
    ortc_in *in = &c->in[c->n_in];
    in->name = io ? io->name : text_of(c, name);
    if (!in->name) return false;
    in->value = py_to_value(object, io ? io->type : NULL, &c->holds[c->n_held]);
    if (in->value) {
        c->n_in++;
        c->n_held++;
        return true;
    }
    PyObject *type, *value, *trace; /* which input it was about */
    PyErr_Fetch(&type, &value, &trace);
    if (type && PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
        PyErr_NormalizeException(&type, &value, &trace);
        PyErr_Format(type, "input '%U': %S", name, value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(type, value, trace);
    }
    return false;
}

static bool add_inputs(call *c, const py_session *self, PyObject *inputs)
{
    PyObject *name, *object;
    for (Py_ssize_t at = 0; PyDict_Next(inputs, &at, &name, &object);) {
        /* Conversion may run Python code, which may change the dict. */
        Py_INCREF(name);
        Py_INCREF(object);
        const bool good = c->n_in < (size_t)PyDict_Size(inputs) && add_input(c, self, name, object);
        Py_DECREF(name);
        Py_DECREF(object);
        if (!good) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "inputs changed during the run");
            return false;
        }
    }
    return true;
}

/* Whether an output is placed where the caller likes: a tensor, not of strings, as far as the model says. */
static bool has_place(const py_session *self, const char *name)
{
    size_t i = 0;
    while (self->out[i] && strcmp(self->out[i]->name, name)) i++;
    const ortc_io *io = self->out[i];
    return !io || (io->type && io->type->kind == ORTC_KIND_TENSOR && io->dtype != ORTC_STRING);
}

/* outputs: a list of names, or NULL for all; out: a dict, or NULL; memory: where results are placed. */
static bool add_outputs(call *c, const py_session *self, PyObject *outputs, PyObject *out, uint32_t memory)
{
    for (size_t i = 0; i < c->n_out; i++) {
        c->names[i] = outputs ? PyList_GetItem(outputs, (Py_ssize_t)i)
                              : PyTuple_GetItem(self->outputs, (Py_ssize_t)i);
        c->out[i].name = outputs ? text_of(c, c->names[i]) : self->out[i]->name;
        if (!c->out[i].name) return false;
        if (memory && has_place(self, c->out[i].name)) c->out[i].memory = memory;
        if (!out || !(c->given[i] = PyDict_GetItemWithError(out, c->names[i]))) {
            if (PyErr_Occurred()) return false;
            continue;
        }
        c->out[i].value = py_to_output(c->given[i], &c->holds[c->n_held]);
        if (!c->out[i].value) return false;
        c->n_held++;
    }
    return true;
}

static PyObject *results(call *c, bool values)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < c->n_out; i++) {
        PyObject *result;
        if (c->given[i]) {
            Py_INCREF(c->given[i]);
            result = c->given[i];
        } else {
            ortc_value *value = c->out[i].value;
            c->out[i].value = NULL;
            result = values ? py_value_new(value, ortc_value_type(value)->kind != ORTC_KIND_TENSOR)
                            : py_from_value(value, false);
        }
        if (!result || PyDict_SetItem(dict, c->names[i], result) < 0) Py_CLEAR(dict);
        Py_XDECREF(result);
    }
    return dict;
}

typedef struct options {
    PyObject *inputs, *outputs, *out, *state, *cancel, *timeout, *profiler;
    const char *device;
    long long advance;
    unsigned long long seed, stream;
    int values;
} options;

static bool parse(PyObject *args, PyObject *keywords, options *o)
{
    static char *names[] = {"inputs", "outputs",  "out",    "state",  "advance", "cancel", "timeout",
                            "seed",   "profiler", "values", "device", "stream",  NULL};
    if (!keywords && PyTuple_Size(args) == 1) /* the usual call needs no parser */
        o->inputs = PyTuple_GetItem(args, 0);
    else if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O$OOLOOKOpzK:run", names, &o->inputs,
                                          &o->outputs, &o->out, &o->state, &o->advance, &o->cancel,
                                          &o->timeout, &o->seed, &o->profiler, &o->values, &o->device,
                                          &o->stream))
        return false;
    const struct {
        PyObject **object;
        PyTypeObject *type;
        const char *expected;
    } checks[] = {{&o->inputs, &PyDict_Type, "inputs: expected a dict of arrays by name"},
                  {&o->out, &PyDict_Type, "out: expected a dict of arrays by name"},
                  {&o->state, py_state_type, "state: expected an ortc.State"}};
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        PyObject *x = *checks[i].object;
        if (i && x == Py_None) x = *checks[i].object = NULL;
        if (!x || PyObject_TypeCheck(x, checks[i].type)) continue;
        PyErr_Format(PyExc_TypeError, "%s, got %R", checks[i].expected, (PyObject *)Py_TYPE(x));
        return false;
    }
    if (o->profiler == Py_None) o->profiler = NULL;
    return true;
}

/* The tied outputs are not asked for when there is a state: that would copy them. */
static PyObject *default_outputs(const options *o)
{
    PyObject *session = ((py_state *)o->state)->session;
    return PyObject_GetAttrString(session, "_untied_outputs");
}

PyObject *py_session_run(PyObject *object, PyObject *args, PyObject *keywords)
{
    const py_session *self = (py_session *)object;
    options o = {.outputs = Py_None};
    ortc_run_args run = ORTC_RUN_ARGS_INIT;
    ortc_error e = ORTC_ERROR_INIT;
    PyObject *outputs = NULL, *result = NULL;
    call c = {0};

    if (!parse(args, keywords, &o)) return NULL;
    if (o.outputs != Py_None)
        outputs = PyUnicode_Check(o.outputs) ? Py_BuildValue("[O]", o.outputs) : PySequence_List(o.outputs);
    else if (o.state)
        outputs = default_outputs(&o);
    if (!outputs && PyErr_Occurred()) return NULL;
    const Py_ssize_t n_out = outputs ? PyList_Size(outputs) : PyTuple_Size(self->outputs);
    uint32_t memory = 0;
    if (o.device && ortc_session_memory(self->session, o.device, &memory, &e) != ORTC_OK) {
        py_raise(&e);
        goto end;
    }
    c.place = (py_place){self->session, (void *)(uintptr_t)o.stream};
    if (n_out < 0 || !call_init(&c, (size_t)PyDict_Size(o.inputs), (size_t)n_out)) goto end;
    if (!add_inputs(&c, self, o.inputs) || !add_outputs(&c, self, outputs, o.out, memory)) goto end;
    run.in = c.in;
    run.n_in = c.n_in;
    run.out = c.out;
    run.n_out = c.n_out;
    run.state = o.state ? ((py_state *)o.state)->state : NULL;
    run.queue = c.place.queue;
    run.seed = o.seed;
    run.advance = o.advance;
    if (!py_stop(o.timeout, o.cancel, &run.deadline_ns, &run.cancel)) goto end;
    if (o.profiler && !(run.profiler = py_profiler_get(o.profiler))) goto end;

    PyThreadState *thread = PyEval_SaveThread();
    const ortc_status s = ortc_run(self->session, &run, &e);
    PyEval_RestoreThread(thread);
    result = s == ORTC_OK ? results(&c, o.values) : py_raise(&e);
end:
    if (c.in) call_end(&c);
    Py_XDECREF(outputs);
    return result;
}
