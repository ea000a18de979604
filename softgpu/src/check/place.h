/* Places in the program's host code: the call chains that lead to the library's functions. */
#ifndef SOFTGPU_CHECK_PLACE_H
#define SOFTGPU_CHECK_PLACE_H

enum { SOFTGPU_FRAMES = 6 };

/* The return addresses of the program's calls that lead to a place, innermost first. */
struct softgpu_place {
    unsigned count;
    void *frames[SOFTGPU_FRAMES];
};

/* Returns the place of a call; the caller is the checker function that overrides the called
 * function. */
struct softgpu_place softgpu_this_place(void);

#endif
