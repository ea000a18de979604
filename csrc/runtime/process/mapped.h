/* The files that the loader has mapped into this process. */
#ifndef MGPU_RT_MAPPED_H
#define MGPU_RT_MAPPED_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Shows each object of the process to `visit` until that returns something else than 0, and returns
 * that. Takes a lock of the loader's: not in a child of fork. */
typedef int mapped_visit(const struct dl_phdr_info *info, void *data);
int mapped_walk(mapped_visit *visit, void *data);

/* Returns true if an object whose file name begins with `prefix` is mapped, other than the file
 * `but`. Its path goes to `path`. */
bool mapped_find(const char *prefix, const char *but, char *path, size_t size);

/* Returns a handle (as of dlopen) on the first mapped library whose file name begins with `prefix`,
 * or NULL. Finds libraries opened with RTLD_LOCAL too, which dlsym(RTLD_DEFAULT) does not. Its path
 * goes to `path`. */
void *mapped_library(const char *prefix, char *path, size_t size);

/* Returns true if an object of the process imports a function whose name begins with `prefix`.
 * Costs 20 ns a name that some object imports. */
bool mapped_imports(const char *prefix);

/* The function of this name in an object of the process that is no copy of this library; NULL if
 * there is none. Costs 0.1 µs an object. */
typedef void (*mapped_code)(void);
mapped_code mapped_function(const char *name);

/* Returns how often the loader has mapped objects into this process. */
unsigned long long mapped_objects(void);

/* Returns the directory that holds the folder lib/ of this library, without a slash at the end. It
 * is the one above build/ in a checkout, site-packages in an installed package. False if not known.
 */
bool mapped_home(char *path, size_t size);

/* Returns true if these bytes stay what they are, where they are, for the life of the process. They
 * lie in a segment that the loader mapped from a file and left unwritable. It belongs to the
 * program itself, or to a library that is marked as never to be unloaded (-z nodelete). Costs about
 * 1 µs: for misses only. Other libraries may be closed and others mapped in their place; what they
 * hold has to be compared. A program that makes its own constants writable (mprotect) breaks this,
 * as it breaks what its compiler assumed. False in a child of fork: another thread may have held
 * the loader's lock, which the child then never gets. */
bool mapped_for_good(const void *data, size_t size);

/* The name of the constant that lies at an address, from the symbol table of the file that it was
 * mapped from. False if the file has none, is another one by now, or has names of more than
 * MAPPED_SYMBOL bytes there. False in a child of fork, as above, and once 256 MiB of tables have
 * been read in the process. Reads the file: for what is recorded, once an image. */
enum { MAPPED_SYMBOL = 256 };
bool mapped_symbol(const void *address, char name[MAPPED_SYMBOL]);

/* Finds the name of the function that an address lies in, and how far behind its begin; as above.
 */
bool mapped_code_symbol(const void *address, char name[MAPPED_SYMBOL], size_t *offset);

#endif
