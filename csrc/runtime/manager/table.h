/* The memory that this library shares with its manager, a separate Python process.
 *
 * The library and the manager take turns. In its turn the library lists the caches' objects; in its
 * turn the manager writes decisions. The two do not trust each other: the library looks up each
 * handle and checks each number. The package contains this file's declarations as the cffi module
 * mgpu_rt._manager, and both are of one version. */
#ifndef MGPU_RT_TABLE_H
#define MGPU_RT_TABLE_H

#include "process/own_thread.h"

/* ---- declarations for the C compiler and cffi ---- */

enum {
    TABLE_FD = 3, /* the file descriptor of the memory in the manager's process */
    TABLE_VERSION = 32,
    TABLE_TEXT = 2016,
    TABLE_KINDS = 3, /* modules, streams, blocks: enum table_kind */
    TABLE_OBJECTS = 16384,
    TABLE_DECISIONS = 49152,
    TABLE_DEVICES = 64
};
enum table_kind { KIND_MODULE, KIND_STREAM, KIND_BLOCK };
enum table_action { ACTION_EVICT, ACTION_PIN };

struct table_object { /* struct cached of shared/caches.h */
    uint64_t handle, bytes, uses;
    int32_t device, held;
};

struct table_decision {
    int32_t action, kind;
    uint64_t handle, value;
};

struct table {
    char version[TABLE_VERSION]; /* the library's */
    char text[TABLE_TEXT];       /* the manager's lines for the program's stderr */
    uint32_t turn;               /* odd: the manager's turn; 0: not set up yet */
    uint32_t doorbell;           /* the word on which the library's thread waits */
    int32_t verbose;             /* MGPU_RT_VERBOSE is set */
    pthread_mutex_t program;     /* robust: held until the library's thread ends, even by exec */
    uint64_t module_bytes, streams, memory_bytes[TABLE_DEVICES]; /* the limits */
    uint32_t counts[TABLE_KINDS], decided;
    struct table_object objects[TABLE_KINDS][TABLE_OBJECTS];
    struct table_decision decisions[TABLE_DECISIONS];
};

/* ---- functions ---- */

/* Waits for the manager's turn, at most `milliseconds`. Returns whether it is the manager's. */
static inline int table_await(struct table *table, uint64_t milliseconds) {
    const uint32_t turn = __atomic_load_n(&table->turn, __ATOMIC_ACQUIRE);
    if (turn % 2 == 0)
        word_wait(&table->turn, turn, milliseconds);
    return __atomic_load_n(&table->turn, __ATOMIC_ACQUIRE) % 2 != 0;
}

/* Ends the manager's turn. */
static inline void table_answer(struct table *table) {
    word_wake(&table->turn);
    word_wake(&table->doorbell);
}

/* Ends the manager's process once the library's thread has ended. cffi calls the function without
 * the GIL, so the process ends even if a policy never returns. */
static inline void table_watch(struct table *table) {
    pthread_mutex_lock(&table->program);
    _exit(0);
}

#endif
