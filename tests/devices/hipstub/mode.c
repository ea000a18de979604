#include "mode.h"

#include "faults.h"
#include "hipstub.h"
#include "log.h"
#include "tell.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool stub_fast = true;
bool stub_records;
int stub_devices = 1;
int stub_version = 50221153;
int stub_pageable, stub_large_bar, stub_integrated;
int stub_capability = 90;
bool stub_reuse, stub_reuse_other_kinds;
bool stub_destroy_returns, stub_late;
size_t stub_memory = (size_t)1 << 30;

static struct stub_pace *paces;
static unsigned pace_count;
static const char *log_path;
static const char *kernels_path;
static bool teardown_wanted, torn_down;

static void read_paces(const char *text) {
    while (text != NULL && *text != '\0') {
        struct stub_pace pace = {atoi(text), 0};
        if (strncmp(text, "held", 4) == 0)
            pace.waiters = text[4] == '2' ? 2 : 1;
        paces = realloc(paces, (pace_count + 1) * sizeof *paces);
        paces[pace_count++] = pace;
        text = strchr(text, ',');
        if (text != NULL)
            ++text;
    }
}

struct stub_pace stub_pace_of(unsigned nth) {
    return pace_count == 0 ? (struct stub_pace){-1, 0} : paces[nth % pace_count];
}

static void tear_down(void) {
    torn_down = true;
}

static void register_teardown(void) {
    atexit(tear_down);
}

void stub_check_teardown(const char *function) {
    /* The first call of HIP creates static objects. The exit handler of these objects runs before
     * the program's destructors, but after exit handlers that were registered later. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (teardown_wanted)
        pthread_once(&once, register_teardown);
    if (torn_down) {
        fprintf(stderr, "hipstub: HIP used after teardown: %s\n", function);
        abort();
    }
}

/* Aborts because of an invalid setting. If the stub ignored the setting, a test would pass without
 * proving anything. */
static void refuse(const char *name, const char *value) {
    fprintf(stderr, "hipstub: %s=%s makes no sense\n", name, value);
    abort();
}

__attribute__((constructor)) static void read_environment(void) {
    const char *mode = getenv("HIPSTUB_MODE");
    const char *fault = getenv("HIPSTUB_FAULT");
    const char *delay = getenv("HIPSTUB_DELAY");
    const char *async = getenv("HIPSTUB_ASYNC");
    const char *devices = getenv("HIPSTUB_DEVICES");
    const char *version = getenv("HIPSTUB_VERSION");
    const char *capability = getenv("HIPSTUB_CAPABILITY");
    const char *memory = getenv("HIPSTUB_MEMORY");
    const char *pageable = getenv("HIPSTUB_PAGEABLE");
    const char *visible = getenv("HIPSTUB_VISIBLE");
    const char *reuse = getenv("HIPSTUB_REUSE");
    const char *destroy = getenv("HIPSTUB_DESTROY_RETURNS");
    const char *late = getenv("HIPSTUB_LATE");
    const char *teardown = getenv("HIPSTUB_TEARDOWN");
    const char *tells = getenv("HIPSTUB_TELLS");
    log_path = getenv("HIPSTUB_LOG");
    kernels_path = getenv("HIPSTUB_KERNELS");

    if (mode != NULL && strcmp(mode, "record") != 0 && strcmp(mode, "fast") != 0)
        refuse("HIPSTUB_MODE", mode);
    if (mode != NULL && strcmp(mode, "record") == 0)
        stub_fast = false;
    if (fault != NULL || delay != NULL || async != NULL || log_path != NULL || kernels_path != NULL)
        stub_fast = false;
    if (fault != NULL && hipstub_set_fault(fault) != 0)
        refuse("HIPSTUB_FAULT", fault);
    if (delay != NULL && hipstub_set_delay(delay) != 0)
        refuse("HIPSTUB_DELAY", delay);
    read_paces(async);
    if (devices != NULL)
        stub_devices = atoi(devices);
    if (stub_devices < 0 || stub_devices > STUB_MOST_DEVICES)
        refuse("HIPSTUB_DEVICES", devices);
    if (capability != NULL)
        stub_capability = atoi(capability);
    if (version != NULL)
        stub_version = atoi(version);
    stub_pageable = pageable != NULL && strcmp(pageable, "1") == 0;
    stub_large_bar = visible != NULL && strcmp(visible, "bar") == 0;
    stub_integrated = visible != NULL && strcmp(visible, "integrated") == 0;
    if (memory != NULL)
        stub_memory = strtoull(memory, NULL, 0);
    stub_reuse_other_kinds = reuse != NULL && strcmp(reuse, "2") == 0;
    stub_reuse = stub_reuse_other_kinds || (reuse != NULL && strcmp(reuse, "1") == 0);
    stub_destroy_returns = destroy != NULL && strcmp(destroy, "1") == 0;
    stub_late = late != NULL && strcmp(late, "1") == 0;
    teardown_wanted = teardown != NULL && strcmp(teardown, "1") == 0;
    if (teardown_wanted)
        stub_fast = false;
    stub_records = !stub_fast;
    stub_tells = tells != NULL && strcmp(tells, "1") == 0;
    stub_rocr = tells != NULL;
    if (stub_tells)
        stub_fast = false;
}

static void load_kernels(void) {
    void *library = dlopen(kernels_path, RTLD_NOW | RTLD_LOCAL);
    void (*provide)(void) = NULL;
    if (library != NULL)
        *(void **)&provide = dlsym(library, "hipstub_kernels");
    if (provide == NULL)
        refuse("HIPSTUB_KERNELS", kernels_path);
    provide();
}

void stub_load_kernels(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (kernels_path != NULL)
        pthread_once(&once, load_kernels);
}

/* Writes the record after the program's destructors have run, because destructors may still call
 * HIP. */
__attribute__((destructor)) static void write_log(void) {
    if (log_path != NULL)
        stub_log_write(log_path);
}
