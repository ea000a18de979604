/* Answers questions about the files that the loader has mapped into this process. Most answers take
 * a lock of the loader, so a forked child must not ask. */
#ifndef MGPU_RT_MAPPED_H
#define MGPU_RT_MAPPED_H

#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls dl_iterate_phdr, and no fork happens during the walk. The walk takes a lock of the loader.
 * If a thread walks during a fork, glibc (2.36 for one) keeps the lock locked in the child. The
 * child then hangs at its own walk or dlopen. `visit` must not fork, and must not take a lock. */
int mapped_walk(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data);
void mapped_before_fork(void); /* waits for the walk in progress; the next one waits for the fork */
void mapped_after_fork(void);  /* in the parent and in the child */

/* Returns true if the loader has mapped an object whose file name begins with `prefix`. Ignores the
 * object whose path is `but`. Writes the object's path to `path`. */
bool mapped_find(const char *prefix, const char *but, char *path, size_t size);

/* Returns a handle, as dlopen does, for the first mapped library whose file name begins with
 * `prefix`, or NULL. Also finds libraries opened with RTLD_LOCAL, which dlsym(RTLD_DEFAULT) does
 * not find. Writes the library's path to `path`. */
void *mapped_library(const char *prefix, char *path, size_t size);

/* Returns true if an object of the process imports a function whose name begins with `prefix`.
 * Costs 20 ns for each imported name. */
bool mapped_imports(const char *prefix);

/* Returns the function of this name in an object of the process; NULL if no object has the
 * function. Ignores this library and copies of this library. Costs 0.1 µs for each object. */
typedef void (*mapped_code)(void);
mapped_code mapped_function(const char *name);

/* Returns how often the loader has mapped objects into this process. */
unsigned long long mapped_objects(void);

/* Finds the file of this name in the folder of this library's file. Returns false if the folder is
 * unknown. */
bool mapped_beside(const char *name, char *path, size_t size);

/* Opens the library of this name in that folder, and passes `host`, the runtime's functions for the
 * library, to its only exported function. `host` has to stay. Returns the library's functions; NULL
 * if the library cannot be opened. */
typedef const void *plugin_entry(const void *host);
const void *mapped_plugin(const char *name, const char *entry, const void *host);

/* Finds the folder three levels above this library's file, without a trailing slash: the root of a
 * checkout, or site-packages of an installed package. Returns false if the folder is unknown. */
bool mapped_home(char path[PATH_MAX]);

/* Returns true if these bytes stay unchanged, at their address, for the life of the process. Bytes
 * are constant in a segment that the loader mapped from a file and left read-only. The segment must
 * belong to the program itself, or to a library that the loader never unloads (-z nodelete). Costs
 * about 1 µs, so only misses call this function. Any other library may be closed, and its addresses
 * may then contain other bytes, so a hit has to compare the bytes. If a program makes its own
 * constants writable (mprotect), the bytes may change although the function returns true; the
 * program's compiler makes the same assumption. Returns false in a forked child. During the fork, a
 * thread of the parent may have held the loader's lock, and the child could then never take the
 * lock. */
bool mapped_for_good(const void *data, size_t size);

/* Writes the path of the mapped file that contains an address, cut off at `size`, and returns the
 * address as the file's symbols count it. In other memory and in a forked child, the path is "" and
 * the address is unchanged. */
uint64_t mapped_place(const void *address, char *file, size_t size);

#endif
