/* Steps with wrong arguments, and steps of the thread's last error (tests/runtime/last_error). */
#include "steps.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* hip: prints the version of HIP */
static void play_hip(const struct step *step) {
    int version = 0;
    HIP(hipRuntimeGetVersion, int *)(&version);
    say(step, "%d", version);
}

enum pending { NO_ERROR, WRONG_DEVICE, NO_MEMORY };

/* pending ERROR: the program leaves an error */
static void play_pending(const struct step *step) {
    void *address;
    HIP(hipGetLastError, void)();
    if (ARGUMENT(0) == WRONG_DEVICE)
        HIP(hipSetDevice, int)(99);
    else if (ARGUMENT(0) == NO_MEMORY)
        HIP(hipMalloc, void **, size_t)(&address, (size_t)1 << 50);
}

/* errors: prints the thread's last error as HIP shows it twice; the second call clears the error */
static void play_errors(const struct step *step) {
    const int peeked = HIP(hipPeekAtLastError, void)(), got = HIP(hipGetLastError, void)();
    say(step, "%d %d", peeked, got);
}

/* quit: ends the process without exit handlers */
static void play_quit(const struct step *step) {
    (void)step;
    _exit(0);
}

/* ---- images ---- */

enum load { IN_PAGES, AT_THE_END, UNREADABLE, NO_IMAGE, COMPILED, EMPTY };

/* Returns an image in pages of its own: at the beginning, or in front of unreadable memory. Returns
 * the address of that memory, or empty pages. */
static char *place(int number, enum load how) {
    size_t bytes;
    const void *content = image_content(number, &bytes);
    --bytes; /* the player's own 0 */
    const size_t room = (bytes / PAGE + 1) * PAGE;
    char *area =
        mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || mprotect(area + room, PAGE, PROT_NONE) != 0)
        give_up("no pages");
    if (how == UNREADABLE)
        return area + room;
    if (how == EMPTY)
        return area;
    return memcpy(how == AT_THE_END ? area + room - bytes : area, content, bytes);
}

/* place MODULE IMAGE HOW: loads what `place` returns, loads NULL, or compiles the image */
static void play_place(const struct step *step) {
    const enum load how = (enum load)ARGUMENT(2);
    char *image = how == NO_IMAGE ? NULL : place((int)ARGUMENT(1), how);
    MODULE(0) = how == COMPILED ? mgpuModuleLoadJIT(image, 2, 0) : mgpuModuleLoad(image, 0);
    say_handle(step, MODULE(0));
}

/* lookup FUNCTION MODULE NAME: looks up a name that no kernel has */
static void play_lookup(const struct step *step) {
    static const char *const names[] = {"no_such_kernel", "", NULL};
    FUNCTION(0) = mgpuModuleGetFunction(MODULE(1), names[ARGUMENT(2)]);
    say_handle(step, FUNCTION(0));
}

/* ---- launches: the kernels find a count of 0 ---- */

static uint64_t zeros[16];
static void *params[16];

static void **no_work(void) {
    for (unsigned i = 0; i < 16; ++i)
        params[i] = &zeros[i];
    return params;
}

/* grid FUNCTION GRID BLOCK SHARED STREAM */
static void play_grid(const struct step *step) {
    mgpuLaunchKernel(FUNCTION(0), (intptr_t)ARGUMENT(1), 1, 1, (intptr_t)ARGUMENT(2), 1, 1,
                     (int32_t)ARGUMENT(3), STREAM(4), no_work(), NULL, 0);
}

/* cooperate FUNCTION GRID CLUSTER BLOCK STREAM */
static void play_cooperate(const struct step *step) {
    const intptr_t cluster = (intptr_t)ARGUMENT(2), one = cluster != 0;
    mgpuLaunchKernelCooperative(FUNCTION(0), (intptr_t)ARGUMENT(1), 1, 1, cluster, one, one,
                                (intptr_t)ARGUMENT(3), 1, 1, 0, STREAM(4), no_work(), NULL);
}

/* symbol BUFFER: launches by a symbol that nobody has registered */
static void play_symbol(const struct step *step) {
    mgpuLaunchKernelRT(BUFFER(0), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 0);
}

/* ---- memrefs ---- */

enum memref { REGISTERED, UNREGISTERED, DEVICE_FLOAT, DEVICE_INT32 };

/* memref HOW BUFFER: registers, unregisters or asks for the device's address by a memref of a page
 */
static void play_memref(const struct step *step) {
    float *memory = BUFFER(1);
    struct mgpu_memref_float row = {memory, memory, 0, PAGE, 1};
    struct mgpu_memref *bytes = (struct mgpu_memref *)&row;
    switch (ARGUMENT(0)) {
    case REGISTERED:
        mgpuMemHostRegisterMemRef(1, bytes, 1);
        break;
    case UNREGISTERED:
        mgpuMemHostUnregisterMemRef(1, bytes, 1);
        break;
    case DEVICE_FLOAT:
        mgpuMemGetDeviceMemRef1dFloat(memory, memory, 0, 4, 1);
        break;
    default:
        mgpuMemGetDeviceMemRef1dInt32(BUFFER(1), BUFFER(1), 0, 4, 1);
    }
}

const struct step_kind error_steps[] = {
    {"hip", play_hip},
    {"pending", play_pending},
    {"errors", play_errors},
    {"quit", play_quit},
    {"place", play_place},
    {"lookup", play_lookup},
    {"grid", play_grid},
    {"cooperate", play_cooperate},
    {"symbol", play_symbol},
    {"memref", play_memref},
    {NULL, NULL},
};
