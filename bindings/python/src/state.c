/* bindings/python/src/state.c: State and Cancel: what a run may be given besides its inputs. */
#include "py.h"

#include <math.h>
#include <time.h>

/* ---- State --------------------------------------------------------------------------------------------- */

static PyObject *state_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"session", NULL};
    PyObject *session;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!:State", names, py_session_type, &session))
        return NULL;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_state *state;
    if (ortc_state_create(((py_session *)session)->session, &state, &e) != ORTC_OK) return py_raise(&e);
    py_state *self = (py_state *)PyType_GenericAlloc(type, 0);
    if (!self) {
        ortc_state_release(state);
        return NULL;
    }
    self->state = state;
    Py_INCREF(session);
    self->session = session;
    return (PyObject *)self;
}

static int state_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((py_state *)object)->session);
    return 0;
}
static int state_clear(PyObject *object)
{
    Py_CLEAR(((py_state *)object)->session);
    return 0;
}
static void state_dealloc(PyObject *object)
{
    py_state *self = (py_state *)object;
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    ortc_state_release(self->state);
    state_clear(object);
    py_free_object(object);
}

static PyObject *state_truncate(PyObject *self, PyObject *args)
{
    long long length;
    ortc_error e = ORTC_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "L:truncate", &length)) return NULL;
    if (ortc_state_truncate(((py_state *)self)->state, length, &e) != ORTC_OK) return py_raise(&e);
    Py_RETURN_NONE;
}
static PyObject *state_length(py_state *self, void *unused)
{
    return PyLong_FromLongLong(ortc_state_length(self->state));
}

static PyMethodDef state_methods[] = {
    {"truncate", state_truncate, METH_VARARGS,
     "truncate(length)\n--\n\nRolls back to the first `length` positions; 0 starts over."},
    {0},
};
static PyGetSetDef state_properties[] = {
    {"length", (getter)state_length, NULL, "Positions so far, of the longest tie with an axis."},
    {0},
};
static PyMemberDef state_members[] = {
    {"session", T_OBJECT_EX, offsetof(py_state, session), READONLY, "The session that it is of."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_state, weak), READONLY, NULL},
    {0},
};
static PyType_Slot state_slots[] = {
    {Py_tp_doc,
     "State(session)\n--\n\nWhat one conversation or stream keeps between its runs: the ties of the "
     "session.\n\nEmpty at first. Session.run(..., state=state) reads tied inputs from it and leaves "
     "tied outputs there; one run at a time."},
    {Py_tp_new, state_create},
    {Py_tp_dealloc, state_dealloc},
    {Py_tp_traverse, state_traverse},
    {Py_tp_clear, state_clear},
    {Py_tp_methods, state_methods},
    {Py_tp_getset, state_properties},
    {Py_tp_members, state_members},
    {0},
};
PyType_Spec py_state_spec = {"ortc._ortc.State", sizeof(py_state), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, state_slots};

/* ---- Cancel -------------------------------------------------------------------------------------------- */

static PyObject *cancel_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, ":Cancel", names)) return NULL;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_cancel *cancel;
    if (ortc_cancel_create(&cancel, &e) != ORTC_OK) return py_raise(&e);
    py_cancel *self = (py_cancel *)PyType_GenericAlloc(type, 0);
    if (!self) {
        ortc_cancel_release(cancel);
        return NULL;
    }
    self->cancel = cancel;
    return (PyObject *)self;
}
static void cancel_dealloc(PyObject *self)
{
    ortc_cancel_release(((py_cancel *)self)->cancel);
    py_free_object(self);
}
static PyObject *cancel_set(PyObject *self, PyObject *unused)
{
    ortc_cancel_set(((py_cancel *)self)->cancel);
    Py_RETURN_NONE;
}
static PyObject *cancel_reset(PyObject *self, PyObject *unused)
{
    ortc_cancel_reset(((py_cancel *)self)->cancel);
    Py_RETURN_NONE;
}

static PyMethodDef cancel_methods[] = {
    {"set", cancel_set, METH_NOARGS, "set()\n--\n\nEnds what was given it, and what will be."},
    {"reset", cancel_reset, METH_NOARGS, "reset()\n--\n\nWhat is given it goes on from now on."},
    {0},
};
static PyType_Slot cancel_slots[] = {
    {Py_tp_doc, "Cancel()\n--\n\nA flag that any thread may set: what was given it (a run, loading, making a "
                "session) raises "
                "ortc.Cancelled soon."},
    {Py_tp_new, cancel_create},
    {Py_tp_dealloc, cancel_dealloc},
    {Py_tp_methods, cancel_methods},
    {0},
};
bool py_stop(PyObject *timeout, PyObject *cancel, int64_t *out_deadline_ns, ortc_cancel **out_cancel)
{
    *out_deadline_ns = 0;
    *out_cancel = NULL;
    if (cancel && cancel != Py_None) {
        if (!PyObject_TypeCheck(cancel, py_cancel_type)) {
            PyErr_Format(PyExc_TypeError, "cancel: expected an ortc.Cancel, got %R",
                         (PyObject *)Py_TYPE(cancel));
            return false;
        }
        *out_cancel = ((py_cancel *)cancel)->cancel;
    }
    if (!timeout || timeout == Py_None) return true;
    const double seconds = PyFloat_AsDouble(timeout);
    if (PyErr_Occurred()) return false;
    if (!(seconds >= 0)) {
        PyErr_SetString(PyExc_ValueError, "timeout: expected seconds of at least 0");
        return false;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double most = 1e9; /* seconds: longer than any process lives */
    *out_deadline_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + (int64_t)(fmin(seconds, most) * 1e9) +
                       1;
    return true;
}

PyType_Spec py_cancel_spec = {"ortc._ortc.Cancel", sizeof(py_cancel), 0, Py_TPFLAGS_DEFAULT, cancel_slots};
