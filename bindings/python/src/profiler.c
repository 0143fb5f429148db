/* bindings/python/src/profiler.c: Profiler: collects what runs tell, without the interpreter's lock; events
 * become Python objects when they are asked for. Several runs may share one. */
#include "py.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct event {
    /* name, operator, provider, kernel, each terminated: the session may be gone when they are read */
    char *texts;
    uint32_t kind, step;
    int64_t start_ns, duration_ns;
    double flops, bytes, clocks;
} event;

typedef struct py_profiler {
    PyObject_HEAD ortc_profiler profiler;
    pthread_mutex_t lock; /* guards what follows */
    event *events;
    size_t count, capacity;
    bool lost; /* there was no memory for an event */
} py_profiler;

/* The strings one behind the other, in one block. */
static char *copy_texts(const ortc_profile_event *e)
{
    const char *const texts[] = {e->name, e->op, e->provider, e->kernel};
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < COUNT_OF(texts); i++) bytes += strlen(texts[i]) + 1;
    char *block = malloc(bytes);
    for (size_t i = 0; block && i < COUNT_OF(texts); i++) {
        strcpy(block + at, texts[i]);
        at += strlen(texts[i]) + 1;
    }
    return block;
}

static void record(void *arg, const ortc_profile_event *e)
{
    py_profiler *self = arg;
    char *text = copy_texts(e);
    pthread_mutex_lock(&self->lock);
    if (self->count == self->capacity) {
        const size_t capacity = self->capacity ? 2 * self->capacity : 256;
        event *more = realloc(self->events, capacity * sizeof *more);
        if (more) {
            self->events = more;
            self->capacity = capacity;
        }
    }
    if (text && self->count < self->capacity) {
        self->events[self->count++] = (event){text,           e->kind,  e->step,  e->start_ns,
                                              e->duration_ns, e->flops, e->bytes, e->clocks};
        text = NULL;
    } else {
        self->lost = true;
    }
    pthread_mutex_unlock(&self->lock);
    free(text);
}

const ortc_profiler *py_profiler_get(PyObject *object)
{
    if (PyObject_TypeCheck(object, py_profiler_type)) return &((py_profiler *)object)->profiler;
    PyErr_Format(PyExc_TypeError, "profiler: expected an ortc.Profiler, got %R", (PyObject *)Py_TYPE(object));
    return NULL;
}

static PyObject *profiler_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    py_profiler *self = (py_profiler *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    pthread_mutex_init(&self->lock, NULL);
    self->profiler = (ortc_profiler)ORTC_PROFILER_INIT;
    self->profiler.arg = self;
    self->profiler.record = record;
    return (PyObject *)self;
}

/* What was collected, moved out: Python must not be called under the lock that `record` takes. */
static size_t take(py_profiler *self, event **out, bool *lost)
{
    pthread_mutex_lock(&self->lock);
    const size_t n = self->count;
    *out = self->events;
    *lost = self->lost;
    self->events = NULL;
    self->count = self->capacity = 0;
    self->lost = false;
    pthread_mutex_unlock(&self->lock);
    return n;
}

static void free_events(event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) free(events[i].texts);
    free(events);
}

static void profiler_dealloc(PyObject *object)
{
    py_profiler *self = (py_profiler *)object;
    free_events(self->events, self->count);
    pthread_mutex_destroy(&self->lock);
    py_free_object(object);
}

static PyObject *describe(const event *e)
{
    static const char *const kinds[] = {"", "step", "phase", "plan"};
    const char *texts[4] = {e->texts};
    for (size_t i = 1; i < COUNT_OF(texts); i++) texts[i] = texts[i - 1] + strlen(texts[i - 1]) + 1;
    return Py_BuildValue("(sIssssLLddd)", e->kind < COUNT_OF(kinds) ? kinds[e->kind] : "", e->step, texts[0],
                         texts[1], texts[2], texts[3], (long long)e->start_ns, (long long)e->duration_ns,
                         e->flops, e->bytes, e->clocks);
}

static PyObject *profiler_take(PyObject *self, PyObject *unused)
{
    event *events;
    bool lost;
    const size_t n = take((py_profiler *)self, &events, &lost);
    PyObject *list = lost ? PyErr_NoMemory() : PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = describe(&events[i]);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    free_events(events, n);
    return list;
}

static PyMethodDef methods[] = {
    {"_take", profiler_take, METH_NOARGS, "What was collected since the last time, as tuples."},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_new, profiler_create},
    {Py_tp_dealloc, profiler_dealloc},
    {Py_tp_methods, methods},
    {0},
};
PyType_Spec py_profiler_spec = {"ortc._ortc.Profiler", sizeof(py_profiler), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
