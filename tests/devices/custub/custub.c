/* A stand-in for libcuda.so.1: records every call and returns the results that a test sets.
 *
 *     custub_take()               the calls since the last time, a line each: the symbol and its
 *                                 arguments in hexadecimal; to be freed with free()
 *     custub_fail(symbol, error)  every call of the symbol answers that from now on; 0: no longer
 *     custub_pointer(type)        what cuPointerGetAttributes says of every address: 0 nothing,
 *                                 1 the host's, 2 the device's, 3 both's
 *     custub_capture(status)      what cuStreamGetCaptureInfo says of every stream: 0 that it is
 *                                 not captured, 1 that it is
 *
 * The environment variable CUSTUB_INIT sets the result of cuInit. */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 12 };

char *custub_take(void);
void custub_fail(const char *symbol, int error);
void custub_pointer(int type);
void custub_capture(int status);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *record;
static size_t record_size;
static uint64_t last_handle = 0x1000;
static _Thread_local uint64_t current; /* context: 0xC0 + ordinal of the device */
static int pointer_type, capture_status;

static struct {
    const char *symbol;
    int error;
} faults[] = {
#define CU(symbol, count, effect) {#symbol, 0},
#include "functions.def"
#undef CU
};
enum { FUNCTIONS = sizeof faults / sizeof *faults };

static void note(const char *format, ...) {
    char *longer = realloc(record, record_size + 256);
    va_list words;
    if (!longer)
        abort();
    record = longer;
    va_start(words, format);
    record_size += (size_t)vsnprintf(record + record_size, 256, format, words);
    va_end(words);
}

static void note_call(const char *symbol, int count, const uint64_t *arguments) {
    note("%s", symbol);
    for (int i = 0; i < count; i++)
        note(" %llx", (unsigned long long)arguments[i]);
    note("\n");
}

char *custub_take(void) {
    pthread_mutex_lock(&lock);
    char *taken = record ? record : strdup("");
    record = NULL;
    record_size = 0;
    pthread_mutex_unlock(&lock);
    return taken;
}

void custub_fail(const char *symbol, int error) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(faults[i].symbol, symbol) == 0) {
            faults[i].error = error;
            return;
        }
    fprintf(stderr, "custub: there is no %s\n", symbol);
    abort();
}

void custub_pointer(int type) {
    pointer_type = type;
}

void custub_capture(int status) {
    capture_status = status;
}

static int answer(const char *symbol) {
    const char *init = getenv("CUSTUB_INIT");
    if (init && strcmp(symbol, "cuInit") == 0)
        return atoi(init);
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(faults[i].symbol, symbol) == 0)
            return faults[i].error;
    return 0;
}

/* ---- what the functions write ---- */

static void write_pointer(const uint64_t *a) {
    const int *attributes = (const int *)a[1];
    void **values = (void **)a[2];
    for (unsigned i = 0; i < (unsigned)a[0]; i++)
        switch (attributes[i]) {
        case 2: /* memory type */
            *(unsigned *)values[i] = pointer_type == 3 ? 2 : (unsigned)pointer_type;
            break;
        case 3: /* device pointer */
        case 4: /* host pointer */
            *(uint64_t *)values[i] = a[3];
            break;
        case 8: /* managed */
            *(unsigned *)values[i] = pointer_type == 3;
            break;
        default: /* device ordinal */
            *(int *)values[i] = 1;
        }
}

static void note_options(const uint64_t *a, int error) {
    const int *options = (const int *)a[3];
    void **values = (void **)a[4];
    for (unsigned i = 0; i < (unsigned)a[2]; i++) {
        if (options[i] == 5 && error) /* the buffer of the error log */
            strcpy(values[i], "ptxas: nonsense");
        if (options[i] != 5)
            note("  option %d = %llu\n", options[i], (unsigned long long)values[i]);
    }
}

static void note_cluster(const uint64_t *a) {
    const unsigned *launch = (const unsigned *)a[0];
    const char *attributes = *(const char *const *)(a[0] + 40);
    note("  grid %u %u %u block %u %u %u shared %u stream %llx\n", launch[0], launch[1], launch[2],
         launch[3], launch[4], launch[5], launch[6], *(const unsigned long long *)(a[0] + 32));
    for (unsigned i = 0; i < *(const unsigned *)(a[0] + 48); i++) {
        const unsigned *attribute = (const unsigned *)(attributes + (size_t)i * 72);
        note("  attribute %u = %u %u %u\n", attribute[0], attribute[2], attribute[3], attribute[4]);
    }
}

/* Writes one line for each dimension. The list of strides has no element for the last dimension. */
static void note_tensor(const uint64_t *a) {
    const unsigned rank = (unsigned)a[2];
    for (unsigned i = 0; i < rank; i++)
        note("  dimension %llu stride %llu box %u step %u\n", ((const unsigned long long *)a[4])[i],
             i + 1 < rank ? ((const unsigned long long *)a[5])[i] : 0, ((const unsigned *)a[6])[i],
             ((const unsigned *)a[7])[i]);
}

static void note_extra(const uint64_t *a) {
    void **extra = (void **)a[10];
    for (int i = 0; extra && i < 5; i++)
        note("  extra %llx\n", (unsigned long long)extra[i]);
}

#define NOTHING (void)0
#define INT(value) *(int *)a[0] = (value)
#define SIZE(value) *(size_t *)a[0] = (value)
#define HOST *(void **)a[0] = malloc(a[1]) /* the library reads and writes these bytes */
#define HANDLE *(uint64_t *)a[0] = last_handle += 0x10
#define ORDINAL *(int *)a[0] = (int)a[1] + 50 /* a device's handle differs from its ordinal */
#define ATTRIBUTE *(int *)a[0] = 1000 + (int)a[1]
#define TEXT strcpy((char *)a[0], "stub")
#define NAME *(const char **)a[1] = "CUDA_ERROR_OF_STUB"
#define CONTEXT *(uint64_t *)a[0] = 0xC0 + a[1] - 50
#define CURRENT *(uint64_t *)a[0] = current
#define SET_CURRENT current = a[0]
#define FIRST_DEVICE *(int *)a[1] = 50
#define CURRENT_DEVICE *(int *)a[0] = (int)(current - 0xC0 + 50)
#define POINTER write_pointer(a)
#define CAPTURE *(int *)a[1] = capture_status
#define COMPILED HANDLE
#define PARAMETER *(size_t *)a[3] = a[1] < 2 ? 8 : 0 /* a kernel has two */
#define CLUSTER note_cluster(a)
#define EXTRA note_extra(a)
#define TENSOR note_tensor(a)

#define CU(symbol, count, effect)                                                                  \
    int symbol(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,       \
               uint64_t a6, uint64_t a7, uint64_t a8, uint64_t a9, uint64_t a10, uint64_t a11);    \
    int symbol(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,       \
               uint64_t a6, uint64_t a7, uint64_t a8, uint64_t a9, uint64_t a10, uint64_t a11) {   \
        const uint64_t a[MOST_ARGUMENTS] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};     \
        pthread_mutex_lock(&lock);                                                                 \
        const int error = answer(#symbol);                                                         \
        note_call(#symbol, count, a);                                                              \
        if (strcmp(#symbol, "cuModuleLoadDataEx") == 0)                                            \
            note_options(a, error);                                                                \
        if (!error)                                                                                \
            effect;                                                                                \
        pthread_mutex_unlock(&lock);                                                               \
        return error;                                                                              \
    }
#include "functions.def"
