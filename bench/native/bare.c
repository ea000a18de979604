/* Starts the library at load time, because the exported functions of this build do not test whether
 * the library has started (build.py). */
#include "abi/lifecycle.h"

__attribute__((constructor)) static void start(void) {
    runtime_start();
}
