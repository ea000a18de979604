/* Functions that a program in mlir-runner calls to run in rounds (rounds.h). */
#include "rounds.h"

void bench_serve(void (*program)(void));
void bench_serve(void (*program)(void)) {
    char name[] = "hosted", *arguments[] = {name, NULL};
    serve(1, arguments, program);
}
