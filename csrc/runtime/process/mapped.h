/* Questions about the files that the loader has mapped into this process. */
#ifndef MGPU_RT_MAPPED_H
#define MGPU_RT_MAPPED_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Calls `visit` with each object of the process until it returns anything but 0, and returns that.
 * Takes a lock of the loader's, so it is not for a child of fork. */
typedef int mapped_visit(const struct dl_phdr_info *info, void *data);
int mapped_walk(mapped_visit *visit, void *data);

/* Returns true if an object whose file name begins with `prefix` is mapped, other than the file
 * `but`. Writes the library's path to `path`. */
bool mapped_find(const char *prefix, const char *but, char *path, size_t size);

/* Returns a handle (as of dlopen) on the first mapped library whose file name begins with `prefix`,
 * or NULL. Finds libraries opened with RTLD_LOCAL too, which dlsym(RTLD_DEFAULT) does not. Writes
 * the library's path to `path`. */
void *mapped_library(const char *prefix, char *path, size_t size);

/* Returns true if an object of the process imports a function whose name begins with `prefix`.
 * Costs 20 ns a name that some object imports. */
bool mapped_imports(const char *prefix);

/* Returns the function of this name in an object of the process that is no copy of this library;
 * NULL if there is none. Costs 0.1 µs an object. */
typedef void (*mapped_code)(void);
mapped_code mapped_function(const char *name);

/* Returns how often the loader has mapped objects into this process. */
unsigned long long mapped_objects(void);

/* Returns the directory that holds the folder lib/ of this library, without a slash at the end. The
 * folder is above build/ in a checkout, and site-packages in an installed package. Returns false if
 * it is not known.
 */
bool mapped_home(char *path, size_t size);

/* Returns true if these bytes stay unchanged, at their address, for the life of the process. Bytes
 * do in a segment that the loader mapped from a file and left unwritable. The segment belongs to
 * the program itself, or to a library that is marked as never to be unloaded (-z nodelete). Costs
 * about 1 µs, so it is for misses only. Other libraries may be closed and others mapped in their
 * place, so their bytes have to be compared. A program that makes its own constants writable
 * (mprotect) breaks this, as it breaks what its compiler assumed. Returns false in a child of fork:
 * another thread may have held the loader's lock, which the child then never gets. */
bool mapped_for_good(const void *data, size_t size);

/* Finds the name of the constant at an address, in the symbol table of the file that it was mapped
 * from. Returns false if the file has none, was replaced, or has names of more than MAPPED_SYMBOL
 * bytes there. Returns false in a child of fork, as above, and once 256 MiB of tables have been
 * read in the process. Reads the file, so it is called for recorded calls only, once an image. */
enum { MAPPED_SYMBOL = 256 };
bool mapped_symbol(const void *address, char name[MAPPED_SYMBOL]);

/* Finds the name of the function that an address lies in, and the address's distance from its
 * begin; as above.
 */
bool mapped_code_symbol(const void *address, char name[MAPPED_SYMBOL], size_t *offset);

#endif
