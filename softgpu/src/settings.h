/* Reads the settings that MGPU_RT_SOFTGPU may contain after the targets, as in
 * "gfx90a,memory=4G,threads=8". */
#ifndef SOFTGPU_SETTINGS_H
#define SOFTGPU_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#define SOFTGPU_VARIABLE "MGPU_RT_SOFTGPU"
#define SOFTGPU_SETTINGS "memory, threads, copies, budget, barrier_budget, compiler_cache"

enum { SOFTGPU_SETTING_SIZE = 64 };

/* Returns the value of MGPU_RT_SOFTGPU. Returns NULL if the variable is unset or empty, or if the
 * program runs with raised privileges, as a setuid program does. */
const char *softgpu_list(void);

/* Returns the list's next item; NULL after the last item. */
const char *softgpu_next_item(const char *item);

/* Returns true if an item of the list is a known setting. */
bool softgpu_is_setting(const char *item, size_t length);

/* Copies the value of a setting to `value`, and truncates a value that is too long. Returns false
 * and an empty text if MGPU_RT_SOFTGPU does not contain the setting or its value is empty. */
bool softgpu_setting(const char *name, char value[SOFTGPU_SETTING_SIZE]);

#endif
