/* HIPSTUB_PINS=1: the pages that lay under a range when it was registered, as a GPU has them
 * pinned. They stay the device's when the program unmaps them or maps others there. */
#ifndef HIPSTUB_PINS_H
#define HIPSTUB_PINS_H

#include <stdbool.h>
#include <stddef.h>

struct pins;

bool pins_wanted(void);

/* Pins the pages of a range, up to 1 MB; NULL if that is not asked for. */
struct pins *pins_open(const void *address, size_t bytes);
void pins_close(struct pins *pins);

/* Reads what the device sees of a part of the range. */
void pins_read(const struct pins *pins, const void *from, void *to, size_t bytes);

#endif
