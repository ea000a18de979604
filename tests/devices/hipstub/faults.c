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

/* Splits text at commas, and passes each part's function and what follows the function's name and a
 * colon to `take`; returns -1 if `take` rejects a part. */
static int each_part(const char *text, int (*take)(unsigned function, const char *rest)) {
    char copy[1024];
    if (strlen(text) >= sizeof copy)
        return -1;
    strcpy(copy, text);
    char *next = NULL;
    for (char *rest = strtok_r(copy, ",", &next); rest != NULL; rest = strtok_r(NULL, ",", &next)) {
        const int function = stub_function_index(strsep(&rest, ":"));
        if (function < 0 || rest == NULL || take((unsigned)function, rest) != 0)
            return -1;
    }
    return 0;
}

static int take_fault(unsigned function, const char *rest) {
    char nth[24];
    struct fault fault = {.function = function};
    if (fault_count == MOST || sscanf(rest, "%23[^:]:%d", nth, &fault.error) != 2)
        return -1;
    fault.nth = strcmp(nth, "*") == 0 ? 0 : strtoull(nth, NULL, 10);
    faults[fault_count++] = fault;
    return 0;
}

static int take_delay(unsigned function, const char *rest) {
    return sscanf(rest, "%u", &delays[function]) == 1 ? 0 : -1;
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
