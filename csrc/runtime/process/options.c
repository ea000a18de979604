#include "process/options.h"
#include "process/lines.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

struct options options = {.caches = ALL_CACHES, .device_number = -1};

/* Reports an option's senseless value. `problem` says which value the library uses instead. */
static void complain(const char *variable, const char *value, const char *problem) {
    line_print("%s='%s' %s", variable, value, problem);
}

/* A program may have privileges that its caller lacks (set-uid, AT_SECURE). The caller must not
 * choose the program's code, files or delays, so the library ignores all variables. */
static const char *variable_or(const char *variable, const char *fallback) {
    const char *value = secure_getenv(variable);
    return value && value[0] ? value : fallback;
}

const char *options_path_variable(const char *name) {
    return variable_or(name, NULL);
}

/* Returns the number in `text`; otherwise reports `problem` and returns `fallback`. */
static long number(const char *variable, const char *text, long fallback, const char *problem) {
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && value >= 0 && value <= 1 << 30)
        return value;
    complain(variable, text, problem);
    return fallback;
}

static const char default_limit[] = "is not a number from 0 on: 32 is used";
static const char default_delay[] = "is not a number from 0 on: no delay is used";
static const char default_device[] = "is not a number from 0 on: HIP's default device is used";

/* Returns the bytes of a unit, an upper or lower case letter; 0 for any other character. */
static double unit(char letter) {
    static const char units[] = "KkMmGg";
    const char *found = letter ? strchr(units, letter) : NULL;
    return found ? (double)(1 << 10 * ((found - units) / 2 + 1)) : 0;
}

/* Reads a number with a decimal point, in any locale of the program. */
static double decimal(const char *text, char **end) {
    const locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    const double value = plain ? strtod_l(text, end, plain) : strtod(text, end);
    if (plain)
        freelocale(plain);
    return value;
}

/* Reads a size such as "512M", "1000000" or "0.5". Returns false if the text is no size, or is more
 * than any machine has. */
static bool read_size(const char *text, double *value, bool *in_units) {
    char *end;
    *value = decimal(text, &end);
    *in_units = *end != '\0';
    const double factor = *in_units ? unit(*end) : 1;
    if (end == text || factor == 0 || (*in_units && end[1]))
        return false;
    *value *= factor;
    return *value >= 0 && *value < 1e18;
}

static void read_memory_limit(struct options *out) {
    double value;
    bool in_units;
    out->memory_limit_bytes = 0; /* the fraction applies */
    out->memory_limit_fraction = 0.25;
    if (!read_size(out->memory_limit, &value, &in_units) ||
        (!in_units && value > 1 && value != (double)(size_t)value))
        complain(
            "MGPU_RT_MEMORY_LIMIT", out->memory_limit,
            "is neither a number of bytes such as 512M nor a fraction such as 0.5: 0.25 is used");
    else if (in_units || value > 1)
        out->memory_limit_bytes = (size_t)value | 1;
    else
        out->memory_limit_fraction = value;
}

static void read_module_limit(struct options *out) {
    double value;
    bool in_units;
    if (!read_size(out->module_limit, &value, &in_units) ||
        (!in_units && value != (double)(size_t)value)) {
        complain("MGPU_RT_MODULE_LIMIT", out->module_limit,
                 "is not a number of bytes such as 64M: 256M is used");
        value = 256 << 20;
    }
    out->module_limit_bytes = (size_t)value;
}

static bool is_off(const char *value) {
    return strcmp(value, "off") == 0 || strcmp(value, "0") == 0;
}

bool options_early_verbose(void) {
    const char *value = variable_or("MGPU_RT_VERBOSE", NULL);
    return value && !is_off(value);
}

/* Returns the place of a value among an option's words, which end with NULL. Reports any other
 * value, and returns 0: the first word is used. */
static int choice(const char *variable, const char *value, const char *const *words) {
    char problem[LINE] = "is neither";
    for (int i = 0; words[i]; i++) {
        if (strcmp(value, words[i]) == 0)
            return i;
        (void)text_append(problem, sizeof problem, "%s %s", i ? " nor" : "", words[i]);
    }
    (void)text_append(problem, sizeof problem, ": %s is used", words[0]);
    complain(variable, value, problem);
    return 0;
}
#define CHOICE(variable, value, ...)                                                               \
    choice(variable, value, (const char *const[]){__VA_ARGS__, NULL})

const char *const cache_names[CACHE_NAMES] = {"modules", "functions",     "streams",
                                              "memory",  "registrations", "staging"};

/* Returns the bit of the cache called `name`, a word of `length` letters; 0 if there is no such
 * cache. */
static unsigned cache_bit(const char *name, size_t length) {
    for (unsigned cache = 0; cache < CACHE_NAMES; cache++)
        if (strlen(cache_names[cache]) == length && strncmp(cache_names[cache], name, length) == 0)
            return 1U << cache;
    return 0;
}

/* Reads "on", "off", or the names of the caches that are on. */
static unsigned read_caches(const char *value) {
    unsigned caches = 0;
    if (is_off(value))
        return 0;
    for (const char *name = value; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        const unsigned bit = cache_bit(name, strcspn(name, ","));
        caches |= bit;
        if (bit)
            continue;
        if (strcmp(value, "on") != 0 && strcmp(value, "1") != 0)
            complain("MGPU_RT_CACHE", value,
                     "is neither on nor off nor a list of modules, functions, streams, memory, "
                     "registrations, staging: on is used");
        return ALL_CACHES;
    }
    const unsigned for_functions = 1U << CACHE_MODULES;
    const unsigned for_staging = 1U << CACHE_STREAMS | 1U << CACHE_MEMORY;
    if ((caches & 1U << CACHE_FUNCTIONS && ~caches & for_functions) ||
        (caches & 1U << CACHE_STAGING && ~caches & for_staging))
        complain("MGPU_RT_CACHE", value,
                 "names a cache that has no effect: functions needs modules, and staging needs "
                 "streams and memory");
    return caches;
}

/* Reads the paths of the statistics and the trace; "" means no output. The word `markers` may
 * precede the trace's path, or replace it. */
static void read_outputs(struct options *out) {
    static const char markers[] = "markers";
    const size_t word = strcspn(out->trace, ",");
    out->trace_markers_on = word == sizeof markers - 1 && strncmp(out->trace, markers, word) == 0;
    if (out->trace_markers_on)
        out->trace += word + (out->trace[word] == ',');
    if (is_off(out->stats))
        out->stats = "";
    if (strcmp(out->stats, "on") == 0)
        out->stats = "1";
    if (is_off(out->trace))
        out->trace = "";
    if (strcmp(out->trace, "on") == 0 || strcmp(out->trace, "1") == 0) {
        complain("MGPU_RT_TRACE", out->trace, "is not a path: no trace is written");
        out->trace = "";
    }
}

/* ---- the manager: off; an interpreter; delay=MS; or INTERPRETER,delay=MS ---- */

static void read_manager(struct options *out) {
    static const char word[] = "delay=";
    const char *comma = strrchr(out->manager, ','), *last = comma ? comma + 1 : out->manager;
    const char *delay = strncmp(last, word, sizeof word - 1) == 0 ? last + sizeof word - 1 : NULL;
    const char *end = comma ? comma : last;
    if (!delay)
        end = out->manager + strlen(out->manager);
    snprintf(out->python, sizeof out->python, "%.*s", (int)(end - out->manager), out->manager);
    out->manager_off = is_off(out->python) || getauxval(AT_SECURE);
    if (strcmp(out->python, "on") == 0 || strcmp(out->python, "1") == 0 || is_off(out->python))
        out->python[0] = '\0';
    out->manager_delay_ms = out->policy[0] ? 0 : -1; /* a policy of the user makes all decisions, so
                                                      * the manager starts at the first call */
    if (delay)
        out->manager_delay_ms =
            number("MGPU_RT_MANAGER", delay, out->manager_delay_ms, default_delay);
}

/* ---- launchers ---- */

enum launcher_fact { LAUNCHER_RANK, LAUNCHER_LOCAL_RANK, LAUNCHER_FACTS };

static const char *const launchers[][LAUNCHER_FACTS] = {
#define LAUNCHER(launcher, ...) {__VA_ARGS__},
#include "process/launchers.def"
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

/* Other programs than torchrun may set RANK too. */
static bool is_launchers(const char *variable) {
    return variable[0] && (strcmp(variable, "RANK") != 0 || variable_or("LOCAL_RANK", NULL));
}

/* Returns the value of the innermost launcher's variable for a fact, and the variable's name.
 * Returns NULL if no launcher has set such a variable. */
static const char *find_launcher(enum launcher_fact fact, const char **variable) {
    for (size_t i = 0; i < LAUNCHERS; i++) {
        *variable = launchers[i][fact];
        const char *value = is_launchers(*variable) ? variable_or(*variable, NULL) : NULL;
        if (value)
            return value;
    }
    return NULL;
}

int options_rank(void) {
    const char *variable, *value = find_launcher(LAUNCHER_RANK, &variable);
    char *end = NULL;
    const long rank = value ? strtol(value, &end, 10) : -1;
    return end && *end == '\0' && rank >= 0 && rank <= 1 << 30 ? (int)rank : -1;
}

static int local_rank(void) {
    char problem[LINE] = "but no launcher has set a rank, so HIP's default device is used; looked "
                         "for:";
    const char *variable, *value = find_launcher(LAUNCHER_LOCAL_RANK, &variable);
    if (value)
        return (int)number(variable, value, -1, default_device);
    for (size_t i = 0; i < LAUNCHERS; i++)
        if (launchers[i][LAUNCHER_LOCAL_RANK][0])
            (void)text_append(problem, sizeof problem, " %s", launchers[i][LAUNCHER_LOCAL_RANK]);
    complain("MGPU_RT_DEVICE", "local-rank", problem);
    return -1;
}

void options_read(struct options *out) {
#define OPTION(field, variable, default_value, meaning)                                            \
    out->field = variable_or(variable, default_value);
#include "process/options.def"
    read_outputs(out);
    read_manager(out);
    out->caches = read_caches(out->cache);
    out->sync_lazy = CHOICE("MGPU_RT_SYNC", out->sync, "strict", "lazy");
    enum { AUTO, ON, OFF };
    const int exclusive = CHOICE("MGPU_RT_EXCLUSIVE", out->exclusive, "auto", "on", "off");
    out->exclusive_on = exclusive == ON;
    out->witness_on = exclusive != OFF;
    read_memory_limit(out);
    out->verbose_on = CHOICE("MGPU_RT_VERBOSE", out->verbose, "on", "1", "off", "0") < 2;
    read_module_limit(out);
    out->stream_limit_count = number("MGPU_RT_STREAM_LIMIT", out->stream_limit, 32, default_limit);
    out->device_number = -1;
    out->device_by_rank = strcmp(out->device, "local-rank") == 0;
    if (out->device_by_rank)
        out->device_number = local_rank();
    else if (out->device[0])
        out->device_number = (int)number("MGPU_RT_DEVICE", out->device, -1, default_device);
}
