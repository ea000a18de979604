/* Starts the library at load time, because in this build exported functions do not test whether the
 * library has started (build.py). */
#include "abi/lifecycle.h"

__attribute__((constructor)) static void start(void) {
    runtime_start();
}
