/* Keeps HIP's compiler apart from the LLVM of the program.
 *
 * HIP brings a compiler, libamd_comgr, and Debian's is linked with a shared LLVM 15. A JIT such as
 * mlir-runner has an LLVM of its own whose C++ names are global, unversioned in libMLIR's case. The
 * loader gives those names to HIP's compiler, too: a crash at the first stream. RTLD_LOCAL does not
 * help: it hides HIP's names from the program, not the program's from HIP. RTLD_DEEPBIND on HIP
 * only does not help either: HIP opens its compiler by itself, later and without that flag. So this
 * library opens the compiler before HIP does, and with the flag.
 *
 * A namespace of its own (dlmopen) would keep them apart too, at a price. A namespace has a second
 * libc, whose buffered output (printf of kernels) is lost at exit and whose locks break in a child
 * of fork. Threads of the program would lack that libc's locale tables, and a second HIP would lie
 * beside one that the program uses.
 *
 * RTLD_DEEPBIND has a price. A library that is bound so uses libc's allocator although the program
 * may have another one. A library that is bound so then frees memory that the program's allocator
 * has handed out: strdup's results, for instance. So the flag is used only where an LLVM is present
 * and the allocator is libc's. */
#ifndef MGPU_RT_SYMBOLS_H
#define MGPU_RT_SYMBOLS_H

#include <stdbool.h>

/* Returns true if HIP's names are to be bound within HIP: if the program has an LLVM or MLIR whose
 * names are global. The caller calls this before HIP is opened; it may print advice. */
bool symbols_own(void);

/* Returns the flags for opening HIP. */
int symbols_flags(bool own);

/* Opens the compiler that HIP will ask for, bound within itself, after HIP was opened or found in
 * the process. Does nothing if HIP has it already, or has none. */
void symbols_open_compiler(void *library);

#endif
