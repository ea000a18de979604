/* HIPSTUB_PINS=1: registering a range pins the range's physical pages, as for a GPU. The device
 * uses the pinned pages even after the program unmaps these pages or maps other pages at their
 * addresses. */
#ifndef HIPSTUB_PINS_H
#define HIPSTUB_PINS_H

#include <stdbool.h>
#include <stddef.h>

struct pins;

bool pins_wanted(void);

/* Pins the pages of a range, up to 1 MB; returns NULL unless HIPSTUB_PINS is set. */
struct pins *pins_open(const void *address, size_t bytes);
void pins_close(struct pins *pins);

/* Reads a part of the range through the pinned pages, as the device does. */
void pins_read(const struct pins *pins, const void *from, void *to, size_t bytes);

#endif
