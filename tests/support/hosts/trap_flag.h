/* The processor's trap flag sends a SIGTRAP after each instruction. */
#ifndef TESTS_TRAP_FLAG_H
#define TESTS_TRAP_FLAG_H

#include <stdbool.h>

/* Leaves the 128 bytes below the stack pointer alone: the compiler may use them. */
static inline void set_trap_flag(bool on) {
    if (on)
        __asm__ volatile("subq $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; addq $128, %%rsp" ::
                             : "memory", "cc");
    else
        __asm__ volatile(
            "subq $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; addq $128, %%rsp" ::
                : "memory", "cc");
}

#endif
