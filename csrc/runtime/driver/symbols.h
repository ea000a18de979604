/* Keeps HIP's compiler apart from the LLVM of the program.
 *
 * HIP loads a compiler, libamd_comgr. Debian's libamd_comgr is linked with a shared LLVM 15. A JIT
 * such as mlir-runner has an LLVM of its own, whose C++ symbols are global; libMLIR's symbols have
 * no versions. The loader binds HIP's compiler to the program's LLVM symbols, and the process
 * crashes when the program creates its first stream. RTLD_LOCAL does not help: it hides HIP's
 * symbols from the program, but does not hide the program's symbols from HIP. Opening only HIP with
 * RTLD_DEEPBIND does not help either: HIP opens its compiler later, without that flag. So this
 * library opens the compiler before HIP does, with RTLD_DEEPBIND.
 *
 * A separate namespace (dlmopen) would also keep the symbols apart, but has disadvantages. A
 * namespace has a second libc, whose buffered output (printf of kernels) is lost at exit and whose
 * locks break in a forked child. Threads of the program would lack that libc's locale tables, and
 * the process would have two HIPs if the program itself opens HIP.
 *
 * RTLD_DEEPBIND also has a disadvantage. A library that is bound with RTLD_DEEPBIND uses libc's
 * allocator, although the program may use another allocator. The library may then pass memory of
 * the program's allocator, such as a result of strdup, to libc's free. So RTLD_DEEPBIND is used
 * only if an LLVM is present and the program's allocator is libc's. */
#ifndef MGPU_RT_SYMBOLS_H
#define MGPU_RT_SYMBOLS_H

#include <stdbool.h>

/* Returns true if HIP's symbols must be bound within HIP: if the program has an LLVM or MLIR whose
 * symbols are global. The caller must call this function before HIP is opened. The function may
 * print advice. */
bool symbols_own(void);

/* Opens the compiler that HIP will load, and binds the compiler's symbols within the compiler. The
 * caller must first have opened HIP, or found HIP in the process. Does nothing if HIP has already
 * loaded a compiler, or uses no compiler. */
void symbols_open_compiler(void *library);

#endif
