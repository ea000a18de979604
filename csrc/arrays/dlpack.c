/* The Python module mgpu_rt._dlpack, which exports an array as a DLPack capsule. Other packages can
 * use the array's memory without a copy.
 *
 * This module is written in C, because a consumer may release the memory on any thread, even
 * without the GIL or after the interpreter's end. The releasing thread may also have a pending
 * exception. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>

/* DLTensor, DLManagedTensor and, from version 1 on, DLManagedTensorVersioned of dlpack.h. */
struct tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct managed {
    struct tensor tensor;
    void *context;
    void (*deleter)(struct managed *self);
};
struct versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct versioned *self);
    uint64_t flags;
    struct tensor tensor;
};

struct exported {
    union { /* the first member: the deleters cast a pointer to the union */
        struct managed managed;
        struct versioned versioned;
    };
    PyObject *owner;   /* the owner of the memory */
    int64_t numbers[]; /* sizes, then strides */
};

/* A consumer renames a capsule that it has consumed. */
static const char plain_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

/* Releases the owner; the caller holds the GIL. */
static void release(struct exported *exported) {
    PyObject *kind, *value, *trace; /* the pending exception */
    PyErr_Fetch(&kind, &value, &trace);
    Py_DECREF(exported->owner);
    PyErr_Restore(kind, value, trace);
    free(exported);
}

/* Releases memory that its consumer no longer uses. Does nothing after the end of the interpreter:
 * the memory is then freed with the process. */
static void release_consumed(void *exported) {
    if (!Py_IsInitialized())
        return;
    const PyGILState_STATE state = PyGILState_Ensure();
    release(exported);
    PyGILState_Release(state);
}

static void delete_managed(struct managed *managed) {
    release_consumed(managed);
}

static void delete_versioned(struct versioned *versioned) {
    release_consumed(versioned);
}

/* Releases the memory of a capsule that Python destroys and that no consumer has consumed. */
static void end_capsule(PyObject *capsule) {
    const char *name = PyCapsule_GetName(capsule);
    if (name == plain_name || name == versioned_name)
        release(PyCapsule_GetPointer(capsule, name));
}

static int read_numbers(PyObject *tuple, int64_t *numbers) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (numbers[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* capsule(owner, address, device type, device, code, bits, shape, strides in elements, versioned)
 */
static PyObject *make_capsule(PyObject *module, PyObject *arguments) {
    PyObject *owner, *shape, *strides;
    unsigned long long address;
    int device_type, device, code, bits, versioned;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OKiiiiO!O!p", &owner, &address, &device_type, &device, &code,
                          &bits, &PyTuple_Type, &shape, &PyTuple_Type, &strides, &versioned))
        return NULL;
    const Py_ssize_t rank = PyTuple_Size(shape);
    if (PyTuple_Size(strides) != rank)
        return PyErr_Format(PyExc_ValueError, "there are %zd sizes and %zd strides", rank,
                            PyTuple_Size(strides));
    struct exported *exported = malloc(sizeof *exported + 2 * (size_t)rank * sizeof(int64_t));
    if (!exported)
        return PyErr_NoMemory();
    exported->owner = owner;
    const struct tensor tensor = {
        .data = (void *)(uintptr_t)address,
        .device_type = device_type,
        .device_id = device,
        .rank = (int32_t)rank,
        .code = (uint8_t)code,
        .bits = (uint8_t)bits,
        .lanes = 1,
        .shape = exported->numbers,
        .strides = exported->numbers + rank,
    };
    if (versioned)
        exported->versioned =
            (struct versioned){.major = 1, .deleter = delete_versioned, .tensor = tensor};
    else
        exported->managed = (struct managed){.tensor = tensor, .deleter = delete_managed};
    PyObject *capsule = NULL;
    if (read_numbers(shape, exported->numbers) == 0 &&
        read_numbers(strides, exported->numbers + rank) == 0)
        capsule = PyCapsule_New(exported, versioned ? versioned_name : plain_name, end_capsule);
    if (capsule)
        Py_INCREF(owner);
    else
        free(exported);
    return capsule;
}

static PyMethodDef methods[] = {
    {"capsule", make_capsule, METH_VARARGS, "A capsule of DLPack that keeps its owner."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "mgpu_rt._dlpack", .m_doc = "Arrays as capsules of DLPack.",
    .m_size = 0,           .m_methods = methods,
};

PyMODINIT_FUNC PyInit__dlpack(void) {
    return PyModuleDef_Init(&definition);
}
