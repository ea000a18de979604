/* Places in the program's host code: the chains of calls that lead to the library's functions. */
#ifndef SOFTGPU_CHECK_PLACE_H
#define SOFTGPU_CHECK_PLACE_H

enum { SOFTGPU_FRAMES = 6 };

/* The program's calls that lead to a place, innermost first, as return addresses. */
struct softgpu_place {
    unsigned count;
    void *frames[SOFTGPU_FRAMES];
};

/* Returns the place of the call that a function of the checker answers. */
struct softgpu_place softgpu_this_place(void);

#endif
