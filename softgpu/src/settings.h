/* The settings that MGPU_RT_SOFTGPU takes besides targets: "gfx90a,memory=4G,threads=8". */
#ifndef SOFTGPU_SETTINGS_H
#define SOFTGPU_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#define SOFTGPU_VARIABLE "MGPU_RT_SOFTGPU"
#define SOFTGPU_SETTINGS "memory, threads, copies, budget, barrier_budget, compiler_cache"

enum { SOFTGPU_SETTING_SIZE = 64 };

/* Returns the whole list; NULL if it is empty, and in a program with rights that its caller
 * lacks. */
const char *softgpu_list(void);

/* Returns the next item; NULL after the last one. */
const char *softgpu_next_item(const char *item);

/* Returns true if an item of the list is a known setting. */
bool softgpu_is_setting(const char *item, size_t length);

/* Copies the value of a setting, cut off if it is too long. If the list lacks the setting, the
 * variable of the last release counts, such as MGPU_RT_SOFTGPU_MEMORY for memory. Returns false,
 * and an empty text, if neither is set. */
bool softgpu_setting(const char *name, char value[SOFTGPU_SETTING_SIZE]);

/* Prints, for each of those variables that is set, what to write instead. */
void softgpu_name_old_variables(void (*say)(const char *format, ...));

#endif
