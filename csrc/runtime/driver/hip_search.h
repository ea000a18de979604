/* Finds this machine's HIP libraries by file name, with any version number in the name. */
#ifndef MGPU_RT_HIP_SEARCH_H
#define MGPU_RT_HIP_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hip_candidate {
    char *path;
    const char *place; /* the way in which the library was found, in words */
    int rank;       /* rank of the place; the places that the user has named have the best ranks */
    int version[3]; /* version in the file's real name; 0 if the name contains no version */
    dev_t device;
    ino_t inode;
};

struct hip_candidates {
    struct hip_candidate *list; /* in the order in which the library tries the candidates */
    size_t count, room;
    bool incomplete; /* memory ran out */
};

/* Names the places of the search, for the message that no library was found. */
extern const char hip_places[];

/* Finds the HIP libraries of this machine. The first places are: ROCM_PATH, HIP_PATH,
 * LD_LIBRARY_PATH. Libraries from all other places follow, the newest version first. The other
 * places are the loader's cache and default folders, releases in /opt, ROCm's Python packages and
 * CONDA_PREFIX. Opens no library; reads some folders and the loader's cache, once in a process. If
 * memory runs out the list is incomplete: it may lack the library that the user meant. Needs only a
 * small stack. */
struct hip_candidates hip_search(void);

void hip_search_free(struct hip_candidates *found);

#endif
