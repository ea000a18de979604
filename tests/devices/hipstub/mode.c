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
int stub_devices, stub_version, stub_capability;
int stub_pageable, stub_large_bar, stub_integrated;
bool stub_reuse, stub_reuse_other_kinds;
bool stub_destroy_returns, stub_late;
size_t stub_memory;

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

static bool is(const char *name, const char *wanted) {
    const char *value = getenv(name);
    return value != NULL && strcmp(value, wanted) == 0;
}

static long long number_of(const char *name, long long otherwise) {
    const char *value = getenv(name);
    return value != NULL ? strtoll(value, NULL, 0) : otherwise;
}

__attribute__((constructor)) static void read_environment(void) {
    const char *mode = getenv("HIPSTUB_MODE");
    const char *fault = getenv("HIPSTUB_FAULT");
    const char *delay = getenv("HIPSTUB_DELAY");
    const char *async = getenv("HIPSTUB_ASYNC");
    log_path = getenv("HIPSTUB_LOG");
    kernels_path = getenv("HIPSTUB_KERNELS");
    if (mode != NULL && !is("HIPSTUB_MODE", "record") && !is("HIPSTUB_MODE", "fast"))
        refuse("HIPSTUB_MODE", mode);
    if (fault != NULL && hipstub_set_fault(fault) != 0)
        refuse("HIPSTUB_FAULT", fault);
    if (delay != NULL && hipstub_set_delay(delay) != 0)
        refuse("HIPSTUB_DELAY", delay);
    read_paces(async);
    stub_devices = (int)number_of("HIPSTUB_DEVICES", 1);
    if (stub_devices < 0 || stub_devices > STUB_MOST_DEVICES)
        refuse("HIPSTUB_DEVICES", getenv("HIPSTUB_DEVICES"));
    stub_capability = (int)number_of("HIPSTUB_CAPABILITY", 90);
    stub_version = (int)number_of("HIPSTUB_VERSION", 50221153);
    stub_memory = (size_t)number_of("HIPSTUB_MEMORY", 1 << 30);
    stub_pageable = is("HIPSTUB_PAGEABLE", "1");
    stub_large_bar = is("HIPSTUB_VISIBLE", "bar");
    stub_integrated = is("HIPSTUB_VISIBLE", "integrated");
    stub_reuse_other_kinds = is("HIPSTUB_REUSE", "2");
    stub_reuse = stub_reuse_other_kinds || is("HIPSTUB_REUSE", "1");
    stub_destroy_returns = is("HIPSTUB_DESTROY_RETURNS", "1");
    stub_late = is("HIPSTUB_LATE", "1");
    teardown_wanted = is("HIPSTUB_TEARDOWN", "1");
    stub_tells = is("HIPSTUB_TELLS", "1");
    stub_rocr = getenv("HIPSTUB_TELLS") != NULL;
    stub_records = is("HIPSTUB_MODE", "record") || fault != NULL || delay != NULL ||
                   async != NULL || log_path != NULL || kernels_path != NULL || teardown_wanted ||
                   getenv("HIPSTUB_SHARED") != NULL;
    stub_fast = !stub_records && !stub_tells;
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
