#include "driver/device.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "process/options.h"
#include "process/own_thread.h"
#include "proof.h"

#include <stdio.h>
#include <string.h>

/* HIP's structure of device properties has 792 bytes up to HIP 5.7, and 1472 bytes in later
 * releases. The structure contains the target after the device's name, at an offset that depends on
 * the release. */
enum { PROPERTIES = 4096, PROPERTIES_NAME = 256 };

/* ---- questions ---- */

/* Runs a question on another thread, because a question of HIP may change the thread's last error.
 * A thread that is cancelled while it waits would leave the other thread without its data. */
static void ask_elsewhere(void *(*question)(void *data), void *data) {
    pthread_t asking;
    const int cancelled = cancel_forbid();
    if (own_thread_start(&asking, question, data))
        pthread_join(asking, NULL);
    cancel_allow(cancelled);
}

/* A question about a device, and its answer: UNKNOWN, or a number that the question defines. */
enum { UNKNOWN, NO, YES };
struct question {
    int64_t (*ask)(int device);
    int device;
    int64_t answer;
};

static void *answer_question(void *data) {
    struct question *question = data;
    question->answer = question->ask(question->device);
    return NULL;
}

/* Returns the answer to a question, which is asked again as long as the answer is unknown. */
static int64_t ask_once(int64_t answers[MOST_DEVICES], int device, int64_t (*ask)(int device),
                        bool elsewhere) {
    if (device >= MOST_DEVICES)
        return UNKNOWN;
    const int64_t known = load_relaxed(&answers[device]);
    if (LIKELY(known != UNKNOWN))
        return known;
    struct question question = {ask, device, UNKNOWN};
    if (elsewhere)
        ask_elsewhere(answer_question, &question);
    else
        (void)answer_question(&question);
    store_relaxed(&answers[device], question.answer);
    return question.answer;
}

/* ---- memory that host and device share ---- */

/* Returns true if HIP does not answer. */
static bool has_attribute(int attribute, int device) {
    int value = 1;
    return !device_answered(hip.DeviceGetAttribute(&value, attribute, device)) || value;
}

static int64_t ask_pageable(int device) {
    return has_attribute(hipDeviceAttributePageableMemoryAccess, device) ? YES : NO;
}

bool device_reaches_pageable(int device) {
    static int64_t answers[MOST_DEVICES];
    return ask_once(answers, device, ask_pageable, false) != NO;
}

/* HIP 6 and later have an attribute for a large BAR, through which the host accesses all device
 * memory. HIP 5 refuses this attribute, and reports the large BAR only in the properties. */
static bool has_large_bar(int device) {
    enum { LARGE_BAR = 764 }; /* in HIP 5's structure */
    char properties[PROPERTIES] = "";
    int value;
    if (hip_version >= HIP_6_0 || cuda_present())
        return has_attribute(hipDeviceAttributeIsLargeBar, device);
    if (hip.GetDeviceProperties == hip_missing.GetDeviceProperties ||
        !device_answered(hip.GetDeviceProperties(properties, device)))
        return true;
    memcpy(&value, properties + LARGE_BAR, sizeof value);
    return value;
}

static int64_t ask_shared(int device) {
    const bool shared =
        DOUBT(kernels_reach_the_host, device_reaches_pageable(device)) ||
        DOUBT(host_reaches_the_device,
              has_attribute(hipDeviceAttributeIntegrated, device) || has_large_bar(device));
    if (shared)
        report_verbose("MGPU_RT_SYNC=lazy waits at each synchronise: device %d and the host may "
                       "access each other's memory (a large BAR, an APU, or HIP does not say)",
                       device);
    return shared ? YES : NO;
}

bool device_shares_memory(int device) {
    static int64_t answers[MOST_DEVICES];
    return ask_once(answers, device, ask_shared, false) != NO;
}

/* HIP 7 and later keep the last error until it is read, and do not count "not ready" as an error.
 */
void device_clear_error(hipError_t error) {
    if (PROOF(hip_keeps_it_as_the_last_error, error != hipErrorNotReady || hip_version < HIP_7))
        PROOF_STEP(question_leaves_no_error, (void)hip.GetLastError());
}

bool device_answered(hipError_t error) {
    if (error != hipSuccess)
        device_clear_error(error);
    return error == hipSuccess;
}

/* ---- limits, and the place on the machine ---- */

static int attribute_of(int device, int attribute) {
    int value = 0;
    return hip_untimed.DeviceGetAttribute(&value, attribute, device) == hipSuccess ? value : 0;
}

static int64_t ask_group_memory(int device) {
    return attribute_of(device, hipDeviceAttributeMaxSharedMemoryPerBlock);
}

bool device_has_group_memory(int device, int32_t bytes) {
    static int64_t answers[MOST_DEVICES];
    if (bytes <= 0 || cuda_present())
        return true;
    const int64_t most = ask_once(answers, device, ask_group_memory, true);
    return most == UNKNOWN || bytes <= most;
}

/* The answer is the place plus 1. */
static int64_t ask_place(int device) {
    return ((int64_t)attribute_of(device, hipDeviceAttributePciDomainID) << 32) +
           ((int64_t)attribute_of(device, hipDeviceAttributePciBusId) << 8) +
           attribute_of(device, hipDeviceAttributePciDeviceId) + 1;
}

off_t device_place(int device) {
    static int64_t answers[MOST_DEVICES];
    const int64_t answer = ask_once(answers, device, ask_place, true);
    return answer ? answer - 1 : 0;
}

/* ---- the target ---- */

struct target_question {
    int device;
    char *target;
};

static void *ask_target(void *data) {
    const struct target_question *question = data;
    char properties[PROPERTIES + 1] = "";
    if (hip_untimed.GetDeviceProperties(properties, question->device) != hipSuccess)
        return NULL;
    const char *found =
        memmem(properties + PROPERTIES_NAME, PROPERTIES - PROPERTIES_NAME, "gfx", 3);
    if (found)
        snprintf(question->target, DEVICE_TARGET, "%s", found);
    return NULL;
}

void device_target(int device, char target[DEVICE_TARGET]) {
    struct target_question question = {device, target};
    target[0] = '\0';
    ask_elsewhere(ask_target, &question);
}

/* ---- MGPU_RT_DEVICE ---- */

static struct advice no_such_device = {
    .text = "MGPU_RT_DEVICE names device %d; HIP has %d, counted from 0"};
static struct advice shared_devices = {
    .text = "local rank %d uses device %d of the %d that it sees, and shares it with another rank, "
            "unless each rank sees devices of its own"};

static int count_devices(void) {
    int count = 0;
    return device_answered(hip.GetDeviceCount(&count)) ? count : 0;
}

static bool is_chosen(void) {
    int device = 0;
    return device_answered(hip.GetDevice(&device)) && device != 0;
}

/* If there are more ranks than visible devices, ranks share devices, unless a variable such as
 * ROCR_VISIBLE_DEVICES shows each rank other devices. On each machine, only the first such rank
 * prints a message. */
static int device_of_rank(int rank, int count) {
    if (count == 0)
        return rank;
    if (rank == count)
        report_once(&shared_devices, rank, rank % count, count);
    return rank % count;
}

void device_choose(void) {
    if (is_chosen())
        return;
    const int count = count_devices();
    const int device = options.device_by_rank ? device_of_rank(options.device_number, count)
                                              : options.device_number;
    REPORT("hipSetDevice(MGPU_RT_DEVICE)", hip.SetDevice(device), &no_such_device, device, count);
}

bool device_memory_number(void *memory, uint64_t *number) {
    *number = 0; /* AMD's HIP 5.2.3 writes 32 bits */
    return device_answered(hip.PointerGetAttribute(number, hipPointerAttributeBufferId, memory));
}
