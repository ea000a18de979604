/* Fuzzes the settings: each line of the input contains a value for one variable. */
#include "process/options.h"
#include "edge.h"

#include <stdlib.h>
#include <string.h>

static const char *const variables[] = {
#define OPTION(field, variable, default_value, meaning) variable,
#include "process/options.def"
#define LAUNCHER(launcher, ...) __VA_ARGS__,
#include "process/launchers.def"
};
enum { VARIABLES = sizeof variables / sizeof *variables };

/* Each line begins with the letter of the variable. */
static void set_variables(char *text) {
    char *rest = NULL;
    for (unsigned i = 0; i < VARIABLES; i++)
        unsetenv(variables[i]);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (line[0] >= 'A')
            setenv(variables[(unsigned)(line[0] - 'A') % VARIABLES], line + 1, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = edge_text(data, size);
    set_variables(text);
    struct options read = {0};
    options_read(&read);
    HOLDS(read.stream_limit_count >= 0 && read.manager_delay_ms >= -1);
    HOLDS(read.module_limit_bytes < (size_t)1 << 60 && read.memory_limit_bytes < (size_t)1 << 60);
    HOLDS(read.memory_limit_fraction >= 0 && read.memory_limit_fraction <= 1);
    HOLDS(read.device_number >= -1);
    HOLDS(read.stats && read.trace && read.manager && read.hip);
    free(text);
    return 0;
}
