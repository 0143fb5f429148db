/* bindings/python/src/module.c: the module itself: its types, errors, and what belongs to no object. */
#include "py.h"

#include <string.h>

PyTypeObject *py_value_type, *py_model_type, *py_session_type, *py_state_type, *py_cancel_type,
    *py_profiler_type;

/* ---- Errors -------------------------------------------------------------------------------------------- */

static PyObject *errors; /* dict of ortc/_errors.py: code -> class */

PyObject *py_raise(const ortc_error *e)
{
    PyObject *code = PyLong_FromLong(e->code);
    PyObject *class = code ? PyDict_GetItemWithError(errors, code) : NULL;
    /* The text may end in the middle of a character. */
    PyObject *text = PyUnicode_DecodeUTF8(e->text, (Py_ssize_t)strlen(e->text), "replace");
    if (text && !PyErr_Occurred()) PyErr_SetObject(class ? class : PyExc_RuntimeError, text);
    Py_XDECREF(code);
    Py_XDECREF(text);
    return NULL;
}

void py_free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- Functions ----------------------------------------------------------------------------------------- */

/* Collects dicts that a callback is told of; `failed` once an exception is set. */
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

static int each_provider(void *arg, const ortc_provider_info *p)
{
    return append(arg,
                  Py_BuildValue("{s:s,s:s,s:s,s:K,s:K,s:I,s:I}", "provider", p->provider, "device", p->device,
                                "notes", p->notes, "memory_bytes", (unsigned long long)p->memory_bytes,
                                "memory_free", (unsigned long long)p->memory_free, "kernels", p->n_kernels,
                                "ordinal", p->ordinal));
}

static PyObject *providers(PyObject *self, PyObject *unused)
{
    list_arg l = {PyList_New(0), false};
    if (!l.list) return NULL;
    ortc_providers(each_provider, &l);
    if (l.failed) Py_CLEAR(l.list);
    return l.list;
}

static int each_operator(void *arg, const ortc_operator_info *o)
{
    return append(arg, Py_BuildValue("(ssi)", o->domain, o->name, (int)o->since));
}

static PyObject *operators(PyObject *self, PyObject *unused)
{
    list_arg l = {PyList_New(0), false};
    if (!l.list) return NULL;
    ortc_operators(each_operator, &l);
    if (l.failed) Py_CLEAR(l.list);
    return l.list;
}

static PyObject *load_plugin(PyObject *self, PyObject *args)
{
    PyObject *path;
    ortc_error e = ORTC_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "O&:load_plugin", PyUnicode_FSConverter, &path)) return NULL;
    ortc_status s = ortc_plugin_load(PyBytes_AsString(path), &e);
    Py_DECREF(path);
    if (s != ORTC_OK) return py_raise(&e);
    Py_RETURN_NONE;
}

/* The log comes from any thread, with or without the interpreter's lock. */
static PyObject *logger;

static void on_log(void *arg, int32_t level, const char *text)
{
    if (!Py_IsInitialized()) return;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *result = logger ? PyObject_CallFunction(logger, "is", (int)level, text) : NULL;
    if (!result) PyErr_WriteUnraisable(logger);
    Py_XDECREF(result);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(lock);
}

static PyObject *set_log(PyObject *self, PyObject *args)
{
    PyObject *function;
    int level = ORTC_LOG_WARNING;
    if (!PyArg_ParseTuple(args, "O|i:set_log", &function, &level)) return NULL;
    PyObject *old = logger;
    logger = NULL;
    if (function != Py_None) {
        Py_INCREF(function);
        logger = function;
    }
    ortc_log_set(logger ? on_log : NULL, NULL, level);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"providers", providers, METH_NOARGS, "Devices of all providers, as dicts."},
    {"operators", operators, METH_NOARGS, "Operators that the library knows: (domain, name, version)."},
    {"load_plugin", load_plugin, METH_VARARGS,
     "load_plugin(path)\n--\n\nLoads a plugin: operators, kernels, providers for models loaded from then "
     "on."},
    {"set_log", set_log, METH_VARARGS,
     "set_log(function, level=2)\n--\n\nCalls function(level, text) for the library's messages up to level "
     "(1 errors, 2 warnings, 3 info, 4 debug); None: nobody is told. Before threads use the library."},
    {0},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "ortc._ortc",
                                        .m_doc = "The C half of ortc.", .m_size = -1, .m_methods = functions};

static int add_types(PyObject *module)
{
    const struct {
        const char *name;
        PyType_Spec *spec;
        PyTypeObject **type;
    } types[] = {
        {"Value", &py_value_spec, &py_value_type},       {"Model", &py_model_spec, &py_model_type},
        {"Session", &py_session_spec, &py_session_type}, {"State", &py_state_spec, &py_state_type},
        {"Cancel", &py_cancel_spec, &py_cancel_type},    {"Profiler", &py_profiler_spec, &py_profiler_type},
    };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        PyObject *type = PyType_FromSpec(types[i].spec);
        if (!type) return -1;
        *types[i].type = (PyTypeObject *)type;
        Py_INCREF(type);
        if (PyModule_AddObject(module, types[i].name, type) < 0) return -1;
    }
    return 0;
}

PyMODINIT_FUNC PyInit__ortc(void);
PyMODINIT_FUNC PyInit__ortc(void)
{
    PyObject *from = PyImport_ImportModule("ortc._errors");
    errors = from ? PyObject_GetAttrString(from, "BY_CODE") : NULL;
    Py_XDECREF(from);
    PyObject *module = errors ? PyModule_Create(&definition) : NULL;
    if (!module || add_types(module) < 0 ||
        PyModule_AddStringConstant(module, "__version__", ortc_version()) < 0 ||
        PyModule_AddIntConstant(module, "OPSET", ORTC_OPSET) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
