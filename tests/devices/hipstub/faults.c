#include "faults.h"

#include "hipstub.h"
#include "log.h"
#include "objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64 };

static struct fault {
    unsigned function;
    uint64_t nth; /* 0: every call fails */
    int error;
} faults[MOST];
static unsigned fault_count;

static unsigned delays[STUB_FUNCTIONS];

/* Splits text at commas and passes each part to `take`; returns -1 if `take` rejects a part. */
static int each_part(const char *text, int (*take)(char *part)) {
    char copy[1024];
    if (strlen(text) >= sizeof copy)
        return -1;
    strcpy(copy, text);
    char *rest = NULL;
    for (char *part = strtok_r(copy, ",", &rest); part != NULL; part = strtok_r(NULL, ",", &rest))
        if (take(part) != 0)
            return -1;
    return 0;
}

static int take_fault(char *part) {
    char name[64], nth[24];
    struct fault fault;
    if (fault_count == MOST || sscanf(part, "%63[^:]:%23[^:]:%d", name, nth, &fault.error) != 3)
        return -1;
    int function = stub_function_index(name);
    if (function < 0)
        return -1;
    fault.function = (unsigned)function;
    fault.nth = strcmp(nth, "*") == 0 ? 0 : strtoull(nth, NULL, 10);
    faults[fault_count++] = fault;
    return 0;
}

static int take_delay(char *part) {
    char name[64];
    unsigned microseconds;
    if (sscanf(part, "%63[^:]:%u", name, &microseconds) != 2)
        return -1;
    int function = stub_function_index(name);
    if (function < 0)
        return -1;
    delays[function] = microseconds;
    return 0;
}

int hipstub_set_fault(const char *text) {
    stub_lock();
    fault_count = 0;
    int result = each_part(text, take_fault);
    stub_unlock();
    return result;
}

int hipstub_set_delay(const char *text) {
    stub_lock();
    memset(delays, 0, sizeof delays);
    int result = each_part(text, take_delay);
    stub_unlock();
    return result;
}

hipError_t stub_fault(unsigned function, uint64_t nth) {
    for (unsigned i = 0; i < fault_count; ++i)
        if (faults[i].function == function && (faults[i].nth == 0 || faults[i].nth == nth))
            return (hipError_t)faults[i].error;
    return hipSuccess;
}

void stub_delay(unsigned function) {
    if (delays[function] != 0)
        usleep(delays[function]);
}
