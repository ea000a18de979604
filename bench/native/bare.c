/* Starts this library, whose exported functions in this build do not test whether it has started
 * (build.py). */
#include "abi/lifecycle.h"

__attribute__((constructor)) static void start(void) {
    runtime_start();
}
