/* Steps in which the program maps host memory, registers the memory, and replaces the memory's
 * pages. */
#include "steps.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int file = -1; /* the file that was mapped most recently */

static char *map(char *at, size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0);
    char *found = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (found == MAP_FAILED)
        give_up("no pages");
    return found;
}

/* pages BUFFER COUNT FILE: maps COUNT pages; if FILE is 1, maps them from a file in memory */
static void play_pages(const struct step *step) {
    const size_t bytes = (size_t)ARGUMENT(1) * PAGE;
    BUFFER(0) = map(NULL, bytes);
    if (ARGUMENT(2) == 0)
        return;
    file = memfd_create("pages", MFD_CLOEXEC);
    if (ftruncate(file, (off_t)bytes) != 0 || mmap(BUFFER(0), bytes, PROT_READ | PROT_WRITE,
                                                   MAP_SHARED | MAP_FIXED, file, 0) != BUFFER(0))
        give_up("no file in memory");
}

/* Gives this process new pages: a forked child shares the old pages, so a write makes the kernel
 * copy each page. */
static void split(char *at, size_t bytes) {
    int ends[2];
    if (pipe(ends) != 0)
        give_up("no pipe");
    const pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &(char){0}, 1) < 0);
    }
    for (size_t i = 0; i < bytes; i += PAGE)
        ++at[i];
    close(ends[0]);
    close(ends[1]);
    waitpid(child, NULL, 0);
}

/* Moves each page separately: if the library watches some of the pages, they are several mappings.
 */
static void move(char *from, char *to, size_t bytes) {
    const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    for (size_t i = 0; i < bytes; i += PAGE)
        if (mremap(from + i, PAGE, PAGE, flags, to + i) == MAP_FAILED)
            give_up("the pages do not move");
}

enum { UNMAPPED, MOVED, DROPPED, TRUNCATED, FORKED };

/* replace BUFFER COUNT HOW: replaces the pages at the address */
static void play_replace(const struct step *step) {
    char *at = BUFFER(0);
    const size_t bytes = (size_t)ARGUMENT(1) * PAGE;
    switch (ARGUMENT(2)) {
    case UNMAPPED: /* a single call replaces the pages, because one of HIP's threads may map memory
                    * at a free address */
        map(at, bytes);
        break;
    case MOVED:
        move(at, map(NULL, bytes), bytes);
        break;
    case DROPPED:
        madvise(at, bytes, MADV_DONTNEED);
        break;
    case TRUNCATED:
        if (ftruncate(file, 0) != 0 || ftruncate(file, (off_t)bytes) != 0)
            give_up("the file keeps its pages");
        break;
    default:
        split(at, bytes);
    }
}

/* register BUFFER BYTES, unregister BUFFER */
static void play_register(const struct step *step) {
    mgpuMemHostRegister(BUFFER(0), (uint64_t)ARGUMENT(1));
}

static void play_unregister(const struct step *step) {
    mgpuMemHostUnregister(BUFFER(0));
}

const struct step_kind host_steps[] = {
    {"pages", play_pages},
    {"replace", play_replace},
    {"register", play_register},
    {"unregister", play_unregister},
    {NULL, NULL},
};
