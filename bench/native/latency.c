/* Measures two delays: between a synchronise and the begin of the next kernel, and between a
 * kernel's end and the synchronise's return.
 *
 *     latency HIP RUNTIME PTX CALLS ITERATIONS
 *
 * CALLS is 7 or 5 for calls through the runtime, or 2 for calls to HIP itself. Needs an NVIDIA GPU.
 * Prints JSON, with times in ns:
 *
 *     start   for each iteration, from the return of a synchronise to the begin of the next kernel
 *     end     for each iteration, from the end of a kernel to the return of the synchronise
 *     step    the smallest step of the device's clock
 *     error   the largest errors of the comparisons of the clocks, before and after the iterations
 *     drift   the time that the device's clock gained on the host's between these comparisons */
#include "hip.h"
#include "runtime.h"

#include <string.h>

enum { QUESTIONS = 2000, SPIN_NS = 3000, WARM_UP = 50, MAILBOX = 4096, PTX_INPUT = 1 };

static const uint64_t PATIENCE_NS = 5000000000;

static struct runtime runtime;

/* ---- the image: binary code, as lowered programs hold it ---- */

static const void *image;
static size_t image_size;

static void compile(const char *ptx) {
    void *cuda = open_library("libcuda.so.1");
    int (*create)(unsigned count, int *options, void **values, handle *state);
    int (*add)(handle state, int kind, void *data, size_t size, const char *name, unsigned count,
               int *options, void **values);
    int (*complete)(handle state, void **cubin, size_t *size);
    *(void **)&create = symbol(cuda, "cuLinkCreate_v2");
    *(void **)&add = symbol(cuda, "cuLinkAddData_v2");
    *(void **)&complete = symbol(cuda, "cuLinkComplete");
    handle state;
    void *cubin;
    check(create(0, NULL, NULL, &state), "cuLinkCreate");
    check(add(state, PTX_INPUT, (void *)ptx, strlen(ptx) + 1, "latency.ptx", 0, NULL, NULL),
          "cuLinkAddData");
    check(complete(state, &cubin, &image_size), "cuLinkComplete");
    image = cubin; /* valid until `state` is destroyed, which never happens */
}

/* ---- the two clocks ---- */

struct comparison {
    uint64_t host, device; /* the same moment on the two clocks */
    uint64_t trip;         /* ns of the round trip; the error is at most half this time */
};

static volatile uint64_t *mailbox;
static handle echo_function, echo_stream;

static void prepare_clocks(void) {
    handle module;
    mailbox = aligned_alloc(MAILBOX, MAILBOX);
    if (!mailbox)
        fail("no memory", "for the mailbox");
    CALL(HostRegister, (void *)mailbox, MAILBOX, 2 /* mapped */);
    CALL(ModuleLoadData, &module, image);
    CALL(ModuleGetFunction, &echo_function, module, "echo");
    CALL(StreamCreate, &echo_stream);
}

static struct comparison compare_clocks(void) {
    struct comparison best = {0, 0, UINT64_MAX};
    uint64_t rounds = QUESTIONS;
    void *device;
    void *params[] = {&device, &rounds};
    memset((void *)mailbox, 0, MAILBOX);
    CALL(HostGetDevicePointer, &device, (void *)mailbox, 0);
    CALL(ModuleLaunchKernel, echo_function, 1, 1, 1, 1, 1, 1, 0, echo_stream, params, NULL);
    for (uint64_t round = 1; round <= rounds; round++) {
        const uint64_t asked = now_ns();
        mailbox[0] = round;
        while (mailbox[16] != round)
            if (now_ns() - asked > PATIENCE_NS)
                fail("no answer", "from the kernel that compares the clocks");
        const uint64_t answered = now_ns();
        if (answered - asked < best.trip)
            best = (struct comparison){(asked + answered) / 2, mailbox[8], answered - asked};
    }
    CALL(StreamSynchronize, echo_stream);
    return best;
}

/* Converts a time of the device's clock to a time of the host's clock. */
static double host_time(uint64_t device, struct comparison first, struct comparison last) {
    const double rate =
        (double)(last.host - first.host) / (double)(int64_t)(last.device - first.device);
    return (double)first.host + (double)(int64_t)(device - first.device) * rate;
}

/* ---- the loop ---- */

struct stamps {
    uint64_t begin, end, step;
};

static int calls;
static handle kept_module, kept_function, kept_stream;

static void prepare_loop(void) {
    if (calls == 5)
        kept_module = runtime.ModuleLoad(image, image_size);
    if (calls != 2)
        return;
    CALL(ModuleLoadData, &kept_module, image);
    CALL(ModuleGetFunction, &kept_function, kept_module, "stamp");
    CALL(StreamCreate, &kept_stream);
}

/* Makes one launch as lowered programs do; returns the time at which the synchronise returned. */
static uint64_t launch(struct stamps *out) {
    uint64_t spin = SPIN_NS;
    void *params[] = {&out, &spin};
    if (calls == 2) {
        CALL(ModuleLaunchKernel, kept_function, 1, 1, 1, 1, 1, 1, 0, kept_stream, params, NULL);
        CALL(StreamSynchronize, kept_stream);
        return now_ns();
    }
    handle module = calls == 7 ? runtime.ModuleLoad(image, image_size) : kept_module;
    handle function = runtime.ModuleGetFunction(module, "stamp");
    handle stream = runtime.StreamCreate();
    runtime.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL, 2);
    runtime.StreamSynchronize(stream);
    const uint64_t end = now_ns();
    runtime.StreamDestroy(stream);
    if (calls == 7)
        runtime.ModuleUnload(module);
    return end;
}

int main(int argc, char **argv) {
    if (argc != 6)
        fail("usage", "latency HIP RUNTIME PTX CALLS ITERATIONS");
    setenv("MGPU_RT_HIP", argv[1], 1);
    open_hip(argv[1]);
    resolve_runtime(&runtime, open_library(argv[2]));
    calls = atoi(argv[4]);
    const long count = atol(argv[5]) + WARM_UP;
    struct stamps *device, *stamps = calloc((size_t)count, sizeof *stamps);
    uint64_t *ends = calloc((size_t)count, sizeof *ends);
    if (!stamps || !ends)
        fail("no memory", "for the times");
    CALL(Malloc, (void **)&device, (size_t)count * sizeof *stamps); /* also creates the context */
    compile(read_file(argv[3]));
    prepare_clocks();
    prepare_loop();

    const struct comparison first = compare_clocks();
    for (long i = 0; i < count; i++)
        ends[i] = launch(&device[i]);
    const struct comparison last = compare_clocks();
    CALL(Memcpy, stamps, device, (size_t)count * sizeof *stamps, MEMCPY_DEFAULT);

    uint64_t step = UINT64_MAX;
    for (long i = 0; i < count; i++)
        step = stamps[i].step < step ? stamps[i].step : step;
    printf("{\"step\": %llu, \"error\": [%llu, %llu], \"drift\": %lld, \"start\": [",
           (unsigned long long)step, (unsigned long long)first.trip / 2,
           (unsigned long long)last.trip / 2,
           (long long)((last.device - first.device) - (last.host - first.host)));
    for (long i = WARM_UP; i < count; i++)
        printf("%s%.0f", i > WARM_UP ? ", " : "",
               host_time(stamps[i].begin, first, last) - (double)ends[i - 1]);
    printf("], \"end\": [");
    for (long i = WARM_UP; i < count; i++)
        printf("%s%.0f", i > WARM_UP ? ", " : "",
               (double)ends[i] - host_time(stamps[i].end, first, last));
    printf("]}\n");
    return 0;
}
