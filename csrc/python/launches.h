/* Launches as a method in Python gets them: objects that contain the arguments of the call.
 *
 * C makes the object, so a launch costs no Python code before the method runs. Python converts an
 * argument only when a method reads it (mgpu_rt/runtime/_objects.py derives Launch from Call). A
 * method may keep the object for longer than the call lasts. */
#ifndef MGPU_RT_PYTHON_LAUNCHES_H
#define MGPU_RT_PYTHON_LAUNCHES_H

#include <errno.h>
#include <stddef.h>
#include <structmember.h>

static void launch(struct launch l);

/* Launch, the class in Python, adds the members that are objects of Python. */
struct call {
    PyObject head;
    struct launch launch;
    Py_ssize_t number;
};

/* The class of the objects, and the function that gets them. Changed under the GIL. */
static PyTypeObject *launch_class;
static PyObject *launch_function;

/* ---- the class ---- */

/* Makes the launch. Other threads run Python in the meantime. */
static PyObject *make_call(PyObject *self, PyObject *nothing) {
    const struct launch given = ((struct call *)self)->launch;
    (void)nothing;
    Py_BEGIN_ALLOW_THREADS launch(given);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *address_of_call(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyLong_FromVoidPtr(&((struct call *)self)->launch);
}

/* Class.answer(function): the function gets each launch of the program, as an object of the class.
 */
static PyObject *answer_calls(PyObject *class, PyObject *function) {
    PyObject *const before = launch_function, *const class_before = (PyObject *)launch_class;
    Py_INCREF(class);
    Py_INCREF(function);
    launch_class = (PyTypeObject *)class;
    launch_function = function;
    Py_XDECREF(before);
    Py_XDECREF(class_before);
    Py_RETURN_NONE;
}

static PyMethodDef call_methods[] = {
    {"_make", make_call, METH_NOARGS, "Makes the launch."},
    {"_address", address_of_call, METH_NOARGS, "Returns the address of the arguments."},
    {"_answer", answer_calls, METH_CLASS | METH_O, "Passes each launch to a function."},
    {0},
};
static PyMemberDef call_members[] = {
    {"number", T_PYSSIZET, offsetof(struct call, number), 0, NULL},
    {"_function", T_ULONG, offsetof(struct call, launch.function), READONLY, NULL},
    {"_capture", T_INT, offsetof(struct call, launch.capture), READONLY, NULL},
    {0},
};
static PyType_Slot call_slots[] = {
    {Py_tp_methods, call_methods}, {Py_tp_members, call_members}, {0}};
static PyType_Spec call_spec = {"mgpu_rt._runtime.Call", sizeof(struct call), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, call_slots};

/* Adds the class to the module, unless Python has no memory. */
static void add_launches(void) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *const module = PyImport_ImportModule("mgpu_rt._runtime");
    PyObject *const class = PyType_FromSpec(&call_spec);
    if (module && class)
        (void)PyObject_SetAttrString(module, "Call", class);
    PyErr_Clear();
    Py_XDECREF(class);
    Py_XDECREF(module);
    PyGILState_Release(gil);
}

/* ---- the program's launches ---- */

static int on_thread(void);

/* Makes Python keep its state of the calling thread until the thread ends. PyGILState_Release would
 * free the state after each launch, and with it Python's variables of the thread. cffi keeps the
 * state of each thread from which it has called Python. */
static void keep_thread_state(void) {
    static __thread bool is_kept __attribute__((tls_model("initial-exec")));
    if (!is_kept)
        is_kept = on_thread();
}

/* Calls Python with a launch. Returns false if Python has no memory or no stack left; Python itself
 * handles the exception of a method. */
static bool call_launch_function(const struct launch *given) {
    const int error = errno;
    keep_thread_state();
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *const function = launch_function, *answer = NULL;
    PyObject *const object = PyType_GenericAlloc(launch_class, 0);
    if (object) {
        ((struct call *)object)->launch = *given;
        Py_INCREF(function);
        answer = PyObject_CallFunctionObjArgs(function, object, NULL);
        Py_DECREF(function);
        Py_DECREF(object);
    }
    PyErr_Clear();
    Py_XDECREF(answer);
    PyGILState_Release(gil);
    errno = error;
    return answer;
}

#endif
