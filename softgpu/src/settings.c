#include "settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *variable(const char *name) {
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

const char *softgpu_list(void) {
    return variable(SOFTGPU_VARIABLE);
}

const char *softgpu_next_item(const char *item) {
    const char *comma = strchr(item, ',');
    return comma ? comma + 1 : NULL;
}

/* Returns the length of a setting's name, or 0 if the item is not a setting. */
static size_t name_length(const char *item, size_t length) {
    const char *equals = memchr(item, '=', length);
    return equals ? (size_t)(equals - item) : 0;
}

bool softgpu_is_setting(const char *item, size_t length) {
    const size_t wanted = name_length(item, length);
    for (const char *name = SOFTGPU_SETTINGS; wanted && *name; name += strspn(name, ", ")) {
        const size_t known = strcspn(name, ",");
        if (known == wanted && memcmp(name, item, known) == 0)
            return true;
        name += known;
    }
    return false;
}

/* Returns the value of the separate environment variable that the previous release had for a
 * setting. */
static const char *old_variable(const char *name, char old[SOFTGPU_SETTING_SIZE]) {
    snprintf(old, SOFTGPU_SETTING_SIZE, SOFTGPU_VARIABLE "_%s", name);
    for (char *letter = old; *letter; letter++)
        *letter = (char)toupper((unsigned char)*letter);
    return variable(old);
}

void softgpu_name_old_variables(void (*say)(const char *format, ...)) {
    char name[SOFTGPU_SETTING_SIZE], old[SOFTGPU_SETTING_SIZE];
    for (const char *at = SOFTGPU_SETTINGS; *at; at += strspn(at, ", ")) {
        const int length = (int)strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", length, at);
        at += length;
        const char *value = old_variable(name, old);
        if (value)
            say("%s has no effect from the next release on; instead: " SOFTGPU_VARIABLE
                "=gfx90a,%s=%s",
                old, name, value);
    }
}

bool softgpu_setting(const char *name, char value[SOFTGPU_SETTING_SIZE]) {
    const size_t wanted = strlen(name);
    for (const char *item = softgpu_list(); item; item = softgpu_next_item(item)) {
        const size_t length = strcspn(item, ",");
        if (name_length(item, length) == wanted && memcmp(item, name, wanted) == 0)
            return snprintf(value, SOFTGPU_SETTING_SIZE, "%.*s", (int)(length - wanted - 1),
                            item + wanted + 1) > 0;
    }
    char variable_before[SOFTGPU_SETTING_SIZE];
    const char *old = old_variable(name, variable_before);
    snprintf(value, SOFTGPU_SETTING_SIZE, "%s", old ? old : "");
    return old != NULL;
}
