/* Memory that may not be there: a reader of an image asks first whether bytes can be read.
 *
 * Mapped is not readable: a page may have no rights, or lie behind the end of its file. */
#ifndef MGPU_RT_VIEW_H
#define MGPU_RT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view {
    const unsigned char *bytes;
    size_t limit; /* nothing behind it is looked at; SIZE_MAX: only reading can tell */
    size_t known; /* so many bytes from the start can be read */
};

/* True if `size` bytes at `offset` can be read, and all before them: what lies behind a gap is no
 * part of the same file. A page that is not known yet costs one system call, 50 ns. */
bool view_holds(struct view *view, uint64_t offset, uint64_t size);

/* A part of a view that can be read, as a view of its own: nothing of it is asked again. */
static inline struct view view_part(const struct view *view, uint64_t offset, uint64_t size) {
    return (struct view){view->bytes + offset, size, size};
}

/* The length of the text that begins a view, without its 0; SIZE_MAX if reading ends before it. */
size_t view_text_length(struct view *view);

#endif
