#include "log.h"

#include "faults.h"
#include "hipstub.h"
#include "mode.h"
#include "objects.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 12, MOST_MISUSES = 200 };

static const char *const names[STUB_FUNCTIONS] = {
#define HIP_CALL(name, params, args, fast) #name,
#include "functions.def"
#include "graphs.def"
#undef HIP_CALL
    "hipDeviceSynchronize", "hipDeviceReset",  "hipLaunchKernel",
    "hipDrvLaunchKernelEx", "hipGetLastError", "hipPeekAtLastError",
};

struct record {
    enum stub_function function;
    unsigned thread;
    unsigned count;
    int result;
    const char *names;
    bool has_out;
    uint64_t out;
    struct stub_value values[MOST_ARGUMENTS]; /* each string is a copy that the record owns */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct record *records;
static size_t record_count, record_capacity;
static uint64_t counts[STUB_FUNCTIONS];
static char *misuses[MOST_MISUSES];
static uint64_t misuse_count;
static unsigned
    generation; /* number of resets; stub_log_end ignores calls that began before the last reset */

static _Thread_local hipError_t last_error;
static _Thread_local unsigned thread_number;

void stub_lock(void) {
    pthread_mutex_lock(&mutex);
}
void stub_unlock(void) {
    pthread_mutex_unlock(&mutex);
}

pthread_mutex_t *stub_mutex(void) {
    return &mutex;
}

/* A fork waits for the mutex. In the child, the mutex is therefore free and the data are
 * consistent. */
__attribute__((constructor)) static void serve_children(void) {
    pthread_atfork(stub_lock, stub_unlock, stub_unlock);
}

const char *stub_function_name(unsigned function) {
    return function < STUB_FUNCTIONS ? names[function] : "unknown";
}

int stub_function_index(const char *name) {
    for (int i = 0; i < STUB_FUNCTIONS; ++i)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static unsigned this_thread(void) {
    static unsigned threads;
    if (thread_number == 0)
        thread_number = ++threads;
    return thread_number;
}

size_t stub_log_begin(enum stub_function function, const char *argument_names,
                      const struct stub_value *values, unsigned count, hipError_t *fault) {
    stub_check_teardown(names[function]);
    stub_lock();
    if (record_count == record_capacity) {
        record_capacity = record_capacity == 0 ? 1024 : 2 * record_capacity;
        records = realloc(records, record_capacity * sizeof *records);
    }
    struct record *record = &records[record_count];
    *record = (struct record){.function = function,
                              .thread = this_thread(),
                              .count = count,
                              .result = -1,
                              .names = argument_names};
    for (unsigned i = 0; i < count; ++i) {
        record->values[i] = values[i];
        if (values[i].is_text && values[i].bits != 0)
            record->values[i].bits = (uintptr_t)strdup((const char *)(uintptr_t)values[i].bits);
    }
    *fault = stub_fault(function, ++counts[function]);
    size_t number = ((size_t)generation << 40) | record_count++;
    stub_unlock();
    stub_delay(function);
    return number;
}

/* Stores the result as the thread's last error. Up to release 6 of HIP, each call overwrites the
 * thread's last error, even with hipSuccess. From release 7 of HIP on, an error remains until the
 * thread reads the error, and hipErrorNotReady does not count as an error. */
static void note_error(hipError_t result) {
    if (stub_version < 70000000 || (result != hipSuccess && result != hipErrorNotReady))
        last_error = result;
}

hipError_t stub_log_end(size_t number, hipError_t result, const void *out) {
    stub_lock();
    if (number >> 40 == generation) {
        struct record *record = &records[number & (((size_t)1 << 40) - 1)];
        record->result = (int)result;
        if (out != NULL && result == hipSuccess) {
            record->has_out = true;
            memcpy(&record->out, out, sizeof record->out);
        }
    }
    stub_unlock();
    note_error(result);
    return result;
}

hipError_t stub_last_error(bool clear) {
    hipError_t error = last_error;
    if (clear)
        last_error = hipSuccess;
    return error;
}

void stub_misuse(const char *format, ...) {
    if (misuse_count++ >= MOST_MISUSES)
        return;
    va_list arguments;
    va_start(arguments, format);
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    misuses[misuse_count - 1] = strdup(text);
}

uint64_t hipstub_count(const char *function) {
    int index = stub_function_index(function);
    stub_lock();
    uint64_t count = index < 0 ? 0 : counts[index];
    stub_unlock();
    return count;
}

uint64_t hipstub_misuse(void) {
    stub_lock();
    uint64_t count = misuse_count;
    stub_unlock();
    return count;
}

void hipstub_reset(void) {
    stub_lock();
    for (size_t r = 0; r < record_count; ++r)
        for (unsigned i = 0; i < records[r].count; ++i)
            if (records[r].values[i].is_text)
                free((void *)(uintptr_t)records[r].values[i].bits);
    for (uint64_t i = 0; i < misuse_count && i < MOST_MISUSES; ++i)
        free(misuses[i]);
    record_count = 0;
    misuse_count = 0;
    memset(counts, 0, sizeof counts);
    ++generation;
    stub_unlock();
}

/* Writes a string as JSON. HIP's strings rarely contain characters that need an escape. */
static void put_text(FILE *to, const char *text) {
    putc('"', to);
    for (; *text != '\0'; ++text) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            fprintf(to, "\\u%04x", c);
        else
            putc(c, to);
    }
    putc('"', to);
}

static void put_arguments(FILE *to, const struct record *record) {
    const char *name = record->names + 1; /* skips the opening parenthesis */
    for (unsigned i = 0; i < record->count; ++i) {
        int length = (int)strcspn(name, ",)");
        fprintf(to, "%s\"%.*s\": ", i == 0 ? "" : ", ", length, name);
        const struct stub_value *value = &record->values[i];
        if (value->is_text && value->bits != 0)
            put_text(to, (const char *)(uintptr_t)value->bits);
        else
            fprintf(to, "%llu", (unsigned long long)value->bits);
        name += length;
        name += strspn(name, ", ");
    }
}

static void put_log(FILE *to) {
    stub_lock();
    fputs("{\"counts\": {", to);
    const char *separator = "";
    for (int i = 0; i < STUB_FUNCTIONS; ++i) {
        if (counts[i] == 0)
            continue;
        fprintf(to, "%s\"%s\": %llu", separator, names[i], (unsigned long long)counts[i]);
        separator = ", ";
    }
    fprintf(to, "},\n\"misuses\": %llu,\n\"misuse\": [", (unsigned long long)misuse_count);
    for (uint64_t i = 0; i < misuse_count && i < MOST_MISUSES; ++i) {
        fputs(i == 0 ? "" : ", ", to);
        put_text(to, misuses[i]);
    }
    fputs("],\n\"live\": {", to);
    separator = "";
    for (const char *const *what = stub_live_words; *what != NULL; ++what) {
        fprintf(to, "%s\"%s\": %lld", separator, *what, (long long)stub_live(*what));
        separator = ", ";
    }
    fputs("},\n\"calls\": [", to);
    for (size_t r = 0; r < record_count; ++r) {
        const struct record *record = &records[r];
        fprintf(to, "%s\n{\"name\": \"%s\", \"thread\": %u, \"result\": %d, ", r == 0 ? "" : ",",
                names[record->function], record->thread, record->result);
        if (record->has_out)
            fprintf(to, "\"out\": %llu, ", (unsigned long long)record->out);
        fputs("\"args\": {", to);
        put_arguments(to, record);
        fputs("}}", to);
    }
    fputs("]}\n", to);
    stub_unlock();
}

char *hipstub_json(void) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    put_log(to);
    fclose(to);
    return text;
}

void stub_log_write(const char *path) {
    char full[4096];
    const char *mark = strstr(path, "%p");
    if (mark != NULL)
        snprintf(full, sizeof full, "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2);
    else
        snprintf(full, sizeof full, "%s", path);
    FILE *to = fopen(full, "w");
    if (to == NULL) {
        perror(full);
        return;
    }
    put_log(to);
    fclose(to);
}
