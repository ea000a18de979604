/* Finds which HIP libraries this machine has: by the files that are there, with any number in the
 * name. */
#ifndef MGPU_RT_HIP_SEARCH_H
#define MGPU_RT_HIP_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hip_candidate {
    char *path;
    const char *place; /* the way in which it was found, in words */
    int rank;          /* of the place: what the user has said comes before what is merely there */
    int version[3];    /* of the file's real name, 0 where that has none */
    dev_t device;
    ino_t inode;
};

struct hip_candidates {
    struct hip_candidate *list; /* in the order to try */
    size_t count, room;
    bool incomplete; /* memory ran out */
};

/* The places of the search, in words, for the message that nothing was found. */
extern const char hip_places[];

/* Finds the HIP libraries of this machine. The order of the places: ROCM_PATH, HIP_PATH,
 * LD_LIBRARY_PATH. The other places follow, newest first: the loader's cache and default folders,
 * /opt/rocm and other releases there, the Python packages of ROCm, CONDA_PREFIX. Opens no library;
 * reads some folders and the loader's cache, once a process. If memory runs out the list is
 * incomplete: the user may have meant one that is not in it. Works on a small stack. */
struct hip_candidates hip_search(void);

void hip_search_free(struct hip_candidates *found);

#endif
