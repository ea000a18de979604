#include "edge.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char *room(void) {
    static unsigned char *begin;
    if (begin)
        return begin;
    begin = mmap(NULL, 2 * EDGE_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOLDS(begin != MAP_FAILED);
    HOLDS(mprotect(begin + EDGE_ROOM, EDGE_ROOM, PROT_NONE) == 0);
    /* An earlier stack may have poisoned this memory. */
    ASAN_UNPOISON_MEMORY_REGION(begin, 2 * EDGE_ROOM);
    return begin;
}

const unsigned char *edge_copy(const uint8_t *data, size_t *size) {
    if (*size > EDGE_ROOM)
        *size = EDGE_ROOM;
    unsigned char *copy = room() + EDGE_ROOM - *size;
    if (*size)
        memcpy(copy, data, *size);
    return copy;
}

char *edge_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    HOLDS(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}
