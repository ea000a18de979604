/* Places in the program's host code: the call chains that lead to the library's functions. */
#ifndef SOFTGPU_CHECK_PLACE_H
#define SOFTGPU_CHECK_PLACE_H

enum { SOFTGPU_FRAMES = 6 };

/* A call chain of the program, as return addresses; the first address belongs to the innermost
 * call. */
struct softgpu_place {
    unsigned count;
    void *frames[SOFTGPU_FRAMES];
};

/* Returns the place in the program that has called the library. */
struct softgpu_place softgpu_this_place(void);

#endif
