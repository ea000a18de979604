/* Nanoseconds of each call of a lowered program's main.
 *
 *     rounds PROGRAM ROUNDS    PROGRAM is a shared object; JSON: a list of ns
 *
 * What is done once in a process, HIP's initialisation above all, falls into a call before the
 * first round, which is not printed. */
#include "native.h"

int main(int argc, char **argv) {
    if (argc != 3)
        fail("usage", "rounds PROGRAM ROUNDS");
    const long rounds = atol(argv[2]);
    void (*program)(void);
    *(void **)&program = symbol(open_library(argv[1]), "main");
    program();
    printf("[");
    for (long round = 0; round < rounds; round++) {
        const uint64_t begin = now_ns();
        program();
        printf("%s%llu", round ? ", " : "", (unsigned long long)(now_ns() - begin));
    }
    printf("]\n");
    return 0;
}
