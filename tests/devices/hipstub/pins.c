/* A pipe references the pages that were spliced into the pipe. A later read returns the current
 * content of these pages. */
#include "pins.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct pins {
    uintptr_t begin; /* address of the first page */
    size_t bytes;    /* size of all pages */
    int pages[2], copy[2];
};

static void die(const char *what) {
    perror(what);
    abort();
}

static void open_pipe(int ends[2], size_t bytes) {
    if (pipe2(ends, O_CLOEXEC) != 0 || fcntl(ends[1], F_SETPIPE_SZ, bytes) < 0)
        die("hipstub: a pipe for pinned pages");
}

bool pins_wanted(void) {
    const char *wanted = getenv("HIPSTUB_PINS");
    return wanted != NULL && strcmp(wanted, "1") == 0;
}

struct pins *pins_open(const void *address, size_t bytes) {
    if (!pins_wanted())
        return NULL;
    struct pins *pins = calloc(1, sizeof *pins);
    const uintptr_t end = ((uintptr_t)address + bytes + PAGE - 1) / PAGE * PAGE;
    pins->begin = (uintptr_t)address / PAGE * PAGE;
    pins->bytes = end - pins->begin;
    open_pipe(pins->pages, pins->bytes);
    open_pipe(pins->copy, pins->bytes);
    for (uintptr_t at = pins->begin; at < end; at += PAGE) {
        *(volatile char *)at +=
            0; /* the write makes the page private to the process, like a write by a device */
        struct iovec page = {(void *)at, PAGE};
        if (vmsplice(pins->pages[1], &page, 1, 0) != PAGE)
            die("hipstub: vmsplice");
    }
    return pins;
}

void pins_close(struct pins *pins) {
    for (int i = 0; pins != NULL && i < 2; i++) {
        close(pins->pages[i]);
        close(pins->copy[i]);
    }
    free(pins);
}

void pins_read(const struct pins *pins, const void *from, void *to, size_t bytes) {
    char *all = malloc(pins->bytes);
    if (tee(pins->pages[0], pins->copy[1], pins->bytes, 0) != (ssize_t)pins->bytes)
        die("hipstub: tee");
    for (size_t have = 0; have < pins->bytes;) {
        const ssize_t got = read(pins->copy[0], all + have, pins->bytes - have);
        if (got <= 0)
            die("hipstub: pinned pages");
        have += (size_t)got;
    }
    memcpy(to, all + ((uintptr_t)from - pins->begin), bytes);
    free(all);
}
