/* The frame around a lowered program: its main runs in rounds (rounds.h), and what it prints goes
 * nowhere, since printing is not what is measured. */
#include "rounds.h"

void lowered_main(void); /* the program's main, renamed */

void printI64(int64_t value);
void printF32(float value);
void printF64(double value);
void printNewline(void);
void _mlir_ciface_printMemrefF32(void *memref);
void _mlir_ciface_printMemrefI32(void *memref);

void printI64(int64_t value) {
    (void)value;
}
void printF32(float value) {
    (void)value;
}
void printF64(double value) {
    (void)value;
}
void printNewline(void) {}
void _mlir_ciface_printMemrefF32(void *memref) {
    (void)memref;
}
void _mlir_ciface_printMemrefI32(void *memref) {
    (void)memref;
}

int main(int argc, char **argv) {
    return serve(argc, argv, lowered_main);
}
