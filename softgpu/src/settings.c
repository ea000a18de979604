#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *softgpu_list(void) {
    const char *value = secure_getenv(SOFTGPU_VARIABLE);
    return value && *value ? value : NULL;
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

bool softgpu_setting(const char *name, char value[SOFTGPU_SETTING_SIZE]) {
    const size_t wanted = strlen(name);
    for (const char *item = softgpu_list(); item; item = softgpu_next_item(item)) {
        const size_t length = strcspn(item, ",");
        if (name_length(item, length) == wanted && memcmp(item, name, wanted) == 0)
            return snprintf(value, SOFTGPU_SETTING_SIZE, "%.*s", (int)(length - wanted - 1),
                            item + wanted + 1) > 0;
    }
    *value = '\0';
    return false;
}
