#include "driver/witness.h"
#include "driver/device.h"
#include "driver/report.h"
#include "process/mapped.h"
#include "process/own_thread.h"
#include "telemetry/counters.h"

#include <stdio.h>
#include <string.h>

/* HIP_API: HIP's number for the calls of its API. The other two numbers are ROCr's. */
enum { HIP_API = 3, ROCR_VERSION = 0, ROCR_NOT_STARTED = 0x100b };

/* The kinds of operations: 0 for a function that may change HIP's objects. HARMLESS marks functions
 * that change nothing but the calling thread's device and last error. OF_ADDRESSES marks harmless
 * functions that tell which memory is registered. ALLOCATES marks functions that allocate device
 * memory, or tell how much is free. WAITS marks functions that wait for all work of a device, and
 * RESTS other functions that submit none. BEARS_NO_REPORTS marks functions after which HIP may
 * crash while it reports, and FREES_STREAM those after which HIP 7 may. */
enum { OPERATIONS = 1024 };
enum { HARMLESS = 1, OF_ADDRESSES = 2, ALLOCATES = 4, WAITS = 8, RESTS = 16 };
enum { BEARS_NO_REPORTS = 32, FREES_STREAM = 64 };
static uint8_t kinds[OPERATIONS];

/* The operation of each function of hip.def. GRAPH_CALL marks those of graphs. */
static const uint32_t NO_CALL = UINT32_MAX, ANY_CALL = UINT32_MAX - 1, GRAPH_CALL = 1u << 31;
static uint32_t operations[HIP_COUNT];

int witness_users = WITNESS_UNREGISTERED;

static const char *(*operation_name)(uint32_t operation);
static void (*set_tracer)(int (*tracer)(int domain, uint32_t operation, void *data));

/* ---- which calls other code has made, in words ---- */

static const char *reason = "the options ask for no report of HIP";

/* The first call of other code, plus 1; also WITH_WORD if this call has ended the user's word. */
static unsigned ended_by;
static const unsigned WITH_WORD = 1u << 31;
static bool was_sole_user;

static bool override_ended_word;

static const char *name_of(unsigned first) {
    return load_relaxed(&operation_name)((first & ~WITH_WORD) - 1);
}

void witness_describe(char text[WITNESS_TEXT]) {
    const unsigned operation = load_acquire(&ended_by);
    if (witness_is_sole_user())
        snprintf(text, WITNESS_TEXT, "none");
    else if (operation)
        snprintf(text, WITNESS_TEXT, "%s was the first%s", name_of(operation),
                 operation & WITH_WORD ? ", and ended MGPU_RT_EXCLUSIVE=on" : "");
    else
        snprintf(text, WITNESS_TEXT, "unknown, because %s%s", load_acquire(&reason),
                 load_acquire(&override_ended_word) ? ", so an override ended MGPU_RT_EXCLUSIVE=on"
                                                    : "");
}

void witness_record(void) {
    if (load_acquire(&was_sole_user) || load_acquire(&override_ended_word))
        witness_describe(counts.start.other_calls);
}

/* Ends the sole use, and prints why if the library was the sole user. */
static void end_sole_use(void) {
    char text[WITNESS_TEXT];
    if (exchange_acq_rel(&witness_users, WITNESS_OTHERS) != WITNESS_SOLE_USER)
        return;
    witness_describe(text);
    report_verbose("calls of HIP by other code: %s; from now on the library queries HIP", text);
    witness_record();
}

static void end_sole_use_because(const char *why) {
    store_release(&reason, why);
    end_sole_use();
}

/* True from the first call of other code on, until all that rests on the user's word is settled. */
static bool word_is_ending;

static void end_sole_use_by(uint32_t operation) {
    unsigned none = 0;
    const bool word = exclusive_hip();
    if (word)
        store_release(&word_is_ending, true);
    if (cas_acq_rel(&ended_by, &none, (operation + 1) | (word ? WITH_WORD : 0)))
        end_sole_use();
    store_release(&witness_users, WITNESS_OTHERS); /* the other code's call runs after this store */
}

/* `expected` is the operation that the thread's wrapper is about to call. It is NO_CALL after HIP
 * has reported that call, and ANY_CALL while hipSPARSE runs, which the library has called. A
 * program may leave a call of HIP by siglongjmp. `expected` is then NO_CALL already, so later calls
 * of other code do not count as the library's. */
static __thread struct {
    uint32_t expected;
    unsigned within; /* functions between witness_enter and witness_leave */
    bool waited;     /* by its last call that waits or may submit work, other code waited for the
                      * device */
} own __attribute__((tls_model("initial-exec"))) = {.expected = UINT32_MAX};

void witness_delegate(bool delegates) {
    store_relaxed(&own.expected, delegates ? ANY_CALL : NO_CALL);
}

/* ---- the user's word ---- */

bool (*witness_ends_word)(void);

static struct advice word_has_ended = {
    .text = "other code in this process called %s, so MGPU_RT_EXCLUSIVE=on has ended: from now on "
            "the library queries HIP, postpones no wait, and keeps no memory registered"};

void witness_enter(void) {
    store_relaxed(&own.within, own.within + 1);
}

void witness_leave(void) {
    store_relaxed(&own.within, own.within - 1);
}

/* Ends the user's word before other code's call runs. Each call of other code does this until one
 * of them has settled everything. So no such call runs before, and none waits for another. HIP has
 * no objects in a forked child, and has released them in the last phases of an exit. */
static void end_word(void) {
    if (runtime_forked || runtime_is(MODE_LATE))
        return;
    if (exclusive_hip())
        report_once(&word_has_ended, name_of(load_acquire(&ended_by)));
    if (DOUBT(handler_interrupts_a_registration, load_relaxed(&own.within)))
        exclusive_stop();
    else if (witness_ends_word())
        store_release(&word_is_ending, false);
}

/* Returns true if other code can notice, or change, by this function what the library keeps. */
static bool concerns_library(unsigned kind) {
    return !(kind & HARMLESS) ||
           (kind & OF_ADDRESSES &&
            DOUBT(registered_memory_can_be_seen,
                  load_acquire(&options.exclusive_on) || load_acquire(&word_is_ending)));
}

/* ---- memory and work of other code ---- */

/* The threads on which other code may have submitted work. NULL: none. The address of a thread's
 * `own`: this thread. The address of this variable: several threads. */
static const void *workers;

bool witness_others_have_no_work(void) {
    const void *who = load_acquire(&workers);
    return !who || (who == &own && own.waited);
}

/* A wait proves nothing about calls of other threads, because these calls may not have returned.
 * With several devices, the wait may have been for another device. Until witness_install the
 * library's own calls come here, too. */
static void note_call_of_others(unsigned kind) {
    const void *nobody = NULL;
    if (kind & ALLOCATES && load_acquire(&was_sole_user))
        PROOF_STEP(other_code_finds_idle_memory, other_code_allocates());
    if (kind & (ALLOCATES | RESTS))
        return;
    own.waited = kind & WAITS && PROOF(wait_was_for_the_device, hip_device_count == 1);
    if (!(kind & WAITS) && !cas_acq_rel(&workers, &nobody, &own) && nobody != &own)
        store_release(&workers, &workers);
}

/* ---- what HIP reports ---- */

/* HIP 7.2.4 sometimes crashes if it has any function to report to. It does so if a graph runs,
 * after a reset, or after other code has destroyed a stream. At the end of a wait for an event it
 * then reads the stream, which may be freed by now. So the library removes its function before the
 * first of these calls. If a profiler had replaced the function, `hear` would not have been called.
 * The library itself destroys streams that have been idle for long, and on HIP 7 idle streams at
 * the exit. We ran 300 programs that exit right after such a wait: no program crashed. */
static void stop_hearing(void) {
    end_sole_use_because("HIP may crash while it reports");
    (load_relaxed(&set_tracer))(NULL);
}

/* Other code may call HIP before the library knows the release. */
static bool may_be_hip_7(void) {
    return !hip_version || hip_version >= HIP_7;
}

static __attribute__((noinline)) void hear_slow(uint32_t operation) {
    const int users = load_acquire(&witness_users); /* `kinds` was written before */
    const unsigned kind = operation < OPERATIONS ? load_relaxed(&kinds[operation]) : 0;
    if (own.expected == (operation | GRAPH_CALL)) {
        own.expected = NO_CALL;
    } else if (own.expected != ANY_CALL && concerns_library(kind)) {
        if (users != WITNESS_OTHERS)
            PROOF_STEP(other_codes_call_ends_sole_use, end_sole_use_by(operation));
        if (load_acquire(&word_is_ending))
            PROOF_STEP(other_codes_call_ends_the_word, end_word());
        note_call_of_others(kind);
    }
    if (DOUBT(hip_crashes_while_it_reports,
              kind & BEARS_NO_REPORTS || (kind & FREES_STREAM && may_be_hip_7())))
        stop_hearing();
}

/* HIP calls this function before each call. The result 1 asks HIP to record nothing. */
static int hear(int domain, uint32_t operation, void *data) {
    (void)data;
    if (domain != HIP_API)
        return 1;
    if (LIKELY(PROOF(call_is_the_librarys_own, own.expected == operation)))
        own.expected = NO_CALL;
    else
        hear_slow(operation);
    return 1;
}

/* ---- the library's own calls ---- */

static struct hip_functions unmarked;

/* The call of HIP is the wrapper's last step, so the compiler jumps to HIP's function, and copies
 * no argument. */
#define HIP_FN(need, name, params, args)                                                           \
    static hipError_t own_##name params {                                                          \
        own.expected = load_relaxed(&operations[HIP_##name]);                                      \
        return unmarked.name args;                                                                 \
    }
#include "driver/hip.def"

static void mark_own_calls(void) {
    unmarked = hip;
#define HIP_FN(need, name, params, args)                                                           \
    if (hip.name != hip_missing.name)                                                              \
        hip.name = own_##name;
#include "driver/hip.def"
}

/* Returns true if HIP reports this call. Otherwise ends the sole use. */
static bool is_reported(hipError_t (*call)(void)) {
    (void)call();
    if (PROOF(hip_still_reports, own.expected == NO_CALL))
        return true;
    own.expected = NO_CALL;
    end_sole_use_because(load_acquire(&was_sole_user)
                             ? "HIP no longer reports calls to this library: a profiler gets them"
                             : "this HIP does not report calls");
    return false;
}

/* Up to HIP 6 each successful query clears the thread's last error, as the successful call of stock
 * does. hipPeekAtLastError would leave the error. */
__attribute__((noinline)) bool witness_probe(void) {
    return is_reported(hip_version < HIP_7 ? hip.GetLastError : hip.PeekAtLastError);
}

/* The override may read the thread's last error, so the probe leaves this error. */
bool witness_hears_overrides(void) {
    if (witness_is_sole_user() && is_reported(hip.PeekAtLastError))
        return true;
    store_release(&override_ended_word, true);
    witness_record();
    return false;
}

void witness_install(void) {
    char text[WITNESS_TEXT];
    int users = load_acquire(&witness_users);
    if (PROOF(registration_has_ended, users == WITNESS_REGISTERED)) {
        mark_own_calls();
        store_release(&was_sole_user, witness_probe());
        (void)cas_acq_rel(&witness_users, &users, WITNESS_SOLE_USER);
    } else {
        (void)exchange_acq_rel(&witness_users, WITNESS_OTHERS);
    }
    witness_describe(text);
    report_verbose("calls of HIP by other code: %s", text);
}

/* ---- registration ---- */

/* The functions that only answer questions, and hipInit and hipSetDevice, are harmless.
 * hipMemGetInfo is not harmless, because its answer counts memory that the library caches. Nor is
 * hipStreamQuery, because it may order the work of streams (docs/questions.md). The names of other
 * functions begin with the words in their rows: hipMallocAsync, hipFreeArray. */
static const struct {
    const char *name;
    unsigned kind;
} known_functions[] = {
    {"hipApiName", HARMLESS},
    {"hipChooseDevice", HARMLESS},
    {"hipChooseDeviceR0000", HARMLESS},
    {"hipChooseDeviceR0600", HARMLESS},
    {"hipDeviceCanAccessPeer", HARMLESS},
    {"hipDeviceComputeCapability", HARMLESS},
    {"hipDeviceGet", HARMLESS},
    {"hipDeviceGetAttribute", HARMLESS},
    {"hipDeviceGetByPCIBusId", HARMLESS},
    {"hipDeviceGetName", HARMLESS},
    {"hipDeviceGetP2PAttribute", HARMLESS},
    {"hipDeviceGetPCIBusId", HARMLESS},
    {"hipDeviceGetUuid", HARMLESS},
    {"hipDeviceTotalMem", HARMLESS},
    {"hipDriverGetVersion", HARMLESS},
    {"hipExtGetLastError", HARMLESS},
    {"hipFuncGetAttributes", HARMLESS},
    {"hipGetDevice", HARMLESS},
    {"hipGetDeviceCount", HARMLESS},
    {"hipGetDeviceProperties", HARMLESS},
    {"hipGetDevicePropertiesR0000", HARMLESS},
    {"hipGetDevicePropertiesR0600", HARMLESS},
    {"hipGetErrorName", HARMLESS},
    {"hipGetErrorString", HARMLESS},
    {"hipGetLastError", HARMLESS},
    {"hipInit", HARMLESS},
    {"hipMemGetAddressRange", HARMLESS | OF_ADDRESSES},
    {"hipPeekAtLastError", HARMLESS},
    {"hipPointerGetAttribute", HARMLESS | OF_ADDRESSES},
    {"hipPointerGetAttributes", HARMLESS | OF_ADDRESSES},
    {"hipRuntimeGetVersion", HARMLESS},
    {"hipSetDevice", HARMLESS},
    {"hipStreamGetCaptureInfo", HARMLESS},
    {"hipStreamGetCaptureInfo_v2", HARMLESS},
    {"hipStreamGetDevice", HARMLESS},
    {"hipStreamGetFlags", HARMLESS},
    {"hipStreamGetPriority", HARMLESS},
    {"hipStreamIsCapturing", HARMLESS},
    {"hipDevicePrimaryCtxReset", BEARS_NO_REPORTS},
    {"hipDeviceReset", BEARS_NO_REPORTS},
    {"hipGraph", BEARS_NO_REPORTS},
    {"hipStreamBeginCapture", BEARS_NO_REPORTS},
    {"hipArray3DCreate", ALLOCATES},
    {"hipArrayCreate", ALLOCATES},
    {"hipExtMallocWithFlags", ALLOCATES},
    {"hipMalloc", ALLOCATES},
    {"hipMemAlloc", ALLOCATES},
    {"hipMemCreate", ALLOCATES},
    {"hipMemGetInfo", ALLOCATES},
    {"hipMipmappedArrayCreate", ALLOCATES},
    {"hipEventCreate", RESTS},
    {"hipEventDestroy", RESTS},
    {"hipEventQuery", RESTS},
    {"hipEventSynchronize", RESTS},
    {"hipFree", RESTS},
    {"hipHost", RESTS},
    {"hipStreamCreate", RESTS},
    {"hipStreamDestroy", RESTS | FREES_STREAM},
    {"hipStreamSynchronize", RESTS},
    {"hipDeviceSynchronize", WAITS},
};

static uint8_t kind_of(const char *name) {
    unsigned kind = 0;
    for (size_t i = 0; i < sizeof known_functions / sizeof *known_functions; i++) {
        const size_t end = known_functions[i].kind & HARMLESS ? 1 : 0; /* the whole name */
        if (strncmp(name, known_functions[i].name, strlen(known_functions[i].name) + end) == 0)
            kind |= known_functions[i].kind;
    }
    return (uint8_t)kind;
}

static void describe_operation(uint32_t operation, const char *name) {
    const uint8_t kind = kind_of(name);
    const uint32_t called = operation | (kind & BEARS_NO_REPORTS ? GRAPH_CALL : 0);
    store_relaxed(&kinds[operation], kind);
#define HIP_FN(need, function, params, args)                                                       \
    if (strcmp(name, "hip" #function) == 0)                                                        \
        store_relaxed(&operations[HIP_##function], called);
#include "driver/hip.def"
}

/* Returns true if ROCr reports that it has not started. */
static bool is_unused(const struct witness_functions *functions) {
    uint16_t version;
    return functions->ask_rocr(ROCR_VERSION, &version) == ROCR_NOT_STARTED;
}

static bool has_profiler(void) {
    char path[PATH_MAX];
    const char *own_profiler = options_path_variable("GPU_CLR_PROFILE");
    return own_profiler || mapped_find("libroctracer64", "", path, sizeof path) ||
           mapped_find("librocprofiler64", "", path, sizeof path);
}

static const char *find_obstacle(const struct witness_functions *functions) {
    if (!functions->set_tracer || !functions->name || !functions->ask_rocr)
        return "this HIP does not report calls";
    if (DOUBT(profiler_needs_the_reports, has_profiler()))
        return "a profiler gets HIP's reports";
    return exclusive_hip() || PROOF(hip_was_unused, is_unused(functions))
               ? NULL
               : "HIP was in use before the library's first call";
}

void witness_open(const struct witness_functions *functions) {
    static bool opened;
    if (exchange_acq_rel(&opened, true) && !DOUBT(word_rests_on_reports, exclusive_hip()))
        return;
    store_release(&reason, "another thread started the library during the registration");
    const char *why = find_obstacle(functions);
    if (why) {
        store_release(&reason, why);
        return;
    }
    store_relaxed(&operation_name, functions->name);
    store_relaxed(&set_tracer, functions->set_tracer);
    for (uint32_t operation = 0; operation < OPERATIONS; operation++) {
        const char *name = functions->name(operation);
        if (name)
            describe_operation(operation, name);
    }
    int users = load_acquire(&witness_users);
    if (users != WITNESS_UNREGISTERED)
        return;
    functions->set_tracer(hear);
    if (DOUBT(other_code_may_have_work, !is_unused(functions)))
        store_release(&workers, &workers);
    why = find_obstacle(functions); /* other code may have called HIP in the meantime */
    if (why)
        end_sole_use_because(why);
    else
        (void)cas_acq_rel(&witness_users, &users, WITNESS_REGISTERED);
}
