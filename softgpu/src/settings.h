/* Settings that MGPU_RT_SOFTGPU accepts besides targets: "gfx90a,memory=4G,threads=8". */
#ifndef SOFTGPU_SETTINGS_H
#define SOFTGPU_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#define SOFTGPU_VARIABLE "MGPU_RT_SOFTGPU"
#define SOFTGPU_SETTINGS "memory, threads, copies, budget, barrier_budget, compiler_cache"

enum { SOFTGPU_SETTING_SIZE = 64 };

/* Returns the value of MGPU_RT_SOFTGPU. Returns NULL if the variable is unset or empty, or if the
 * program has more privileges than the program's caller. */
const char *softgpu_list(void);

/* Returns the list's next item; NULL after the last item. */
const char *softgpu_next_item(const char *item);

/* Returns true if an item of the list is a known setting. */
bool softgpu_is_setting(const char *item, size_t length);

/* Copies the value of a setting, truncated if too long. If the list lacks the setting, copies the
 * value of the variable that the previous release used, such as MGPU_RT_SOFTGPU_MEMORY for memory.
 * Returns false and an empty text if neither the list nor the variable sets a value. */
bool softgpu_setting(const char *name, char value[SOFTGPU_SETTING_SIZE]);

/* Prints the new setting for each environment variable that the previous release used and that is
 * still set. */
void softgpu_name_old_variables(void (*say)(const char *format, ...));

#endif
