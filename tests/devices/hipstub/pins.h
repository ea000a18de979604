/* HIPSTUB_PINS=1: the pages of a range at its registration, as a GPU has them pinned. The device
 * keeps pinned pages when the program unmaps them or maps others there. */
#ifndef HIPSTUB_PINS_H
#define HIPSTUB_PINS_H

#include <stdbool.h>
#include <stddef.h>

struct pins;

bool pins_wanted(void);

/* Pins the pages of a range, up to 1 MB; returns NULL if that is not asked for. */
struct pins *pins_open(const void *address, size_t bytes);
void pins_close(struct pins *pins);

/* Reads the device's view of a part of the range. */
void pins_read(const struct pins *pins, const void *from, void *to, size_t bytes);

#endif
