/* Starts the library whose exported functions do not test whether it has started (build.py). */
#include "abi/lifecycle.h"

__attribute__((constructor)) static void start(void) {
    runtime_start();
}
