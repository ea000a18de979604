/* The C half of mgpu_rt._runtime, through which a runtime in Python answers a program's calls.
 *
 * The cffi module includes this file (csrc/packaging/runtime_module.py) after it has defined
 * PLAIN_ABI, which lists the functions of csrc/abi.def with Python's types:
 *
 *     FN    (result, name, (parameters), (arguments))
 *     VOID  (void,   name, (parameters), (arguments))
 *     LAUNCH(void,   name, (parameters), (arguments))
 *
 * Handles and addresses are integers of a pointer's size, because x86-64 passes integers and
 * pointers in the same registers. Python therefore gets ints, and cffi creates no objects for
 * them.
 *
 * Each function has three functions here. `on_NAME` is Python's, which cffi defines. `NAME` calls
 * the library's own function. `enter_NAME` replaces the library's function, and calls `on_NAME`. If
 * a method calls the function that it overrides, `enter_NAME` passes the call to the library, so
 * the method does not recurse.
 *
 * A call into Python takes a microsecond, and each argument and result adds to it. So C calls
 * Python without cffi for a launch, and makes the object that a method gets (launches.h). A runtime
 * that overrides only launches needs to know the kernels. For this runtime, `note_NAME` replaces
 * the functions that load modules and look functions up. It calls the library's function, and tells
 * Python only what Python does not know yet (known.h). */
#include "known.h"
#include "launches.h"
#include "stack.h"

#include <unistd.h>

typedef void (*mgpu_rt_function)(void);

/* ---- the library's functions; until Python binds to a library, these stand-ins ---- */

/* Reports that a program calls a method of a runtime that is not installed. */
static uintptr_t absent(void) {
    static bool said;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        fputs("mgpu_rt: a runtime's method was called while it is no program's, and nothing is "
              "done: see mgpu_rt.intercept\n",
              stderr);
    return 0;
}

#define FN(result, name, params, args)                                                             \
    static mgpu_rt_function own_##name = (mgpu_rt_function)absent;                                 \
    static result name params {                                                                    \
        return ((result(*) params)own_##name)args;                                                 \
    }
PLAIN_ABI(FN, FN, FN)
#undef FN

/* ---- calls of Python ---- */

/* Python handles a method's exception (_adapters.py). The handler may also fail, for lack of memory
 * or stack. cffi then returns LOST. For a void function cffi returns 0, because the method's
 * adapter returns 1 on success. The program would continue without the call, so it ends. Inside
 * `with intercept(...)`, the end of the `with` block raises RuntimeError instead. */
#define LOST INT32_MIN

static int lost, ends_program;
static __thread bool inside __attribute__((tls_model("initial-exec"))); /* of a method */

static void end_program(int status) {
    fflush(stdout);
    _exit(status);
}

static void say_lost(void) {
    fputs("mgpu_rt: a method of a runtime in Python has failed, and Python could not say how: it "
          "has no memory, or no depth of calls left\n",
          stderr);
}

static void lose(void *value, size_t size) {
    say_lost();
    if (ends_program)
        end_program(1);
    lost = 1;
    memset(value, 0, size);
}

/* Calls Python, which returns 0 if the call is lost. */
#define CALL_PYTHON(call)                                                                          \
    do {                                                                                           \
        inside = true;                                                                             \
        int answer = call;                                                                         \
        inside = false;                                                                            \
        if (!answer)                                                                               \
            lose(&answer, sizeof answer);                                                          \
    } while (0)

#define FN(result, name, params, args)                                                             \
    static result on_##name params;                                                                \
    static result enter_##name params {                                                            \
        if (inside || !stack_has_room())                                                           \
            return name args;                                                                      \
        inside = true;                                                                             \
        result answer = on_##name args;                                                            \
        inside = false;                                                                            \
        if (answer == (result)LOST)                                                                \
            lose(&answer, sizeof answer);                                                          \
        return answer;                                                                             \
    }
#define VOID(result, name, params, args)                                                           \
    static int on_##name params;                                                                   \
    static void enter_##name params {                                                              \
        if (inside || !stack_has_room())                                                           \
            return name args;                                                                      \
        CALL_PYTHON(on_##name args);                                                               \
    }
#define NOTHING(result, name, params, args)
PLAIN_ABI(FN, VOID, NOTHING)
#undef FN
#undef VOID

/* ---- launches ---- */

static void launch(struct launch l) {
    const intptr_t *const g = l.grid, *const b = l.block, *const c = l.cluster;
    if (l.symbol)
        mgpuLaunchKernelRT(l.function, g[0], g[1], g[2], b[0], b[1], b[2], l.shared, l.stream,
                           l.params, l.extra, 0);
    else if (l.cooperative)
        mgpuLaunchKernelCooperative(l.function, g[0], g[1], g[2], c[0], c[1], c[2], b[0], b[1],
                                    b[2], l.shared, l.stream, l.params, l.extra);
    else if (l.clustered)
        mgpuLaunchClusterKernel(l.function, c[0], c[1], c[2], g[0], g[1], g[2], b[0], b[1], b[2],
                                l.shared, l.stream, l.params, l.extra, 0);
    else
        mgpuLaunchKernel(l.function, g[0], g[1], g[2], b[0], b[1], b[2], l.shared, l.stream,
                         l.params, l.extra, 0);
}

enum { NOT_ASKED = INT32_MIN };
static uintptr_t query_capture; /* hipStreamIsCapturing, if a hook asks for it; otherwise 0 */

/* Returns the status of a stream's capture; HIP's error as a negative number. C asks, because
 * ctypes would take 1.5 µs for each launch. */
static int ask_capture(uintptr_t stream) {
    int status = 0;
    const int error = ((int (*)(void *, int *))query_capture)((void *)stream, &status);
    return error ? -error : status;
}

static void enter_launch(struct launch l) {
    if (inside || !stack_has_room())
        return launch(l);
    if (l.stream)
        l.capture = query_capture ? ask_capture(l.stream) : NOT_ASKED;
    CALL_PYTHON(call_launch_function(&l));
}

/* The members of struct launch that differ between the functions. abi.def names the parameters. */
#define OF_mgpuLaunchKernel .function = function
#define OF_mgpuLaunchKernelRT .function = symbol, .symbol = true
#define OF_mgpuLaunchClusterKernel                                                                 \
    .function = function, .cluster = {clusterX, clusterY, clusterZ}, .clustered = true
#define OF_mgpuLaunchKernelCooperative                                                             \
    .function = function, .cluster = {clusterX, clusterY, clusterZ},                               \
    .clustered = clusterX || clusterY || clusterZ, .cooperative = true
#define LAUNCH(result, name, parameters, args)                                                     \
    static void enter_##name parameters {                                                          \
        enter_launch((struct launch){OF_##name, .grid = {gridX, gridY, gridZ},                     \
                                     .block = {blockX, blockY, blockZ}, .shared = smem,            \
                                     .stream = stream, .params = params, .extra = extra});         \
    }
PLAIN_ABI(NOTHING, NOTHING, LAUNCH)
#undef LAUNCH
#undef NOTHING

/* ---- the kernels of a runtime that overrides only launches ---- */

static int on_loaded(uintptr_t module, uintptr_t image);
static int on_found(uintptr_t function, uintptr_t module, const char *name);

/* Returns false if Python has called the library, or does not fit on the stack. */
static bool may_notify(void) {
    return !inside && stack_has_room();
}

static uintptr_t note_module(uintptr_t module, uintptr_t image) {
    if (module && !module_is_known(module, image) && may_notify())
        CALL_PYTHON(on_loaded(module, image));
    return module;
}
static uintptr_t note_mgpuModuleLoad(uintptr_t image, size_t size) {
    return note_module(mgpuModuleLoad(image, size), image);
}
static uintptr_t note_mgpuModuleLoadJIT(uintptr_t image, int level, size_t size) {
    return note_module(mgpuModuleLoadJIT(image, level, size), image);
}
static uintptr_t note_mgpuModuleGetFunction(uintptr_t module, const char *name) {
    const uintptr_t function = mgpuModuleGetFunction(module, name);
    if (function && !function_is_known(function, module, name) && may_notify())
        CALL_PYTHON(on_found(function, module, name));
    return function;
}

/* glibc's exit may be called by one of its handlers: it continues with the remaining handlers. */
static int status_at_end;
static void replace_status(int status, void *nothing) {
    (void)nothing;
    if (status == 0)
        exit(status_at_end);
}
static void change_status(int status) {
    if (status_at_end == 0 && status != 0)
        on_exit(replace_status, NULL);
    status_at_end = status;
}

static int on_end(void);
static void enter_end(void) {
    if (stack_has_room() && !on_end()) {
        say_lost();
        change_status(1);
    }
}
