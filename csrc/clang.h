/* Clang accepts __atomic builtins only on plain objects; gcc accepts them on _Atomic objects too.
 * When clang compiles, this file is included before all other files (csrc/runtime/build.mk). */
#define MGPU_PLAIN(pointer) ((__typeof__(((void)0, *(pointer))) *)(pointer))

#define __atomic_load_n(pointer, order) __atomic_load_n(MGPU_PLAIN(pointer), order)
#define __atomic_store_n(pointer, value, order) __atomic_store_n(MGPU_PLAIN(pointer), value, order)
#define __atomic_exchange_n(pointer, value, order)                                                 \
    __atomic_exchange_n(MGPU_PLAIN(pointer), value, order)
#define __atomic_fetch_add(pointer, value, order)                                                  \
    __atomic_fetch_add(MGPU_PLAIN(pointer), value, order)
#define __atomic_fetch_sub(pointer, value, order)                                                  \
    __atomic_fetch_sub(MGPU_PLAIN(pointer), value, order)
#define __atomic_add_fetch(pointer, value, order)                                                  \
    __atomic_add_fetch(MGPU_PLAIN(pointer), value, order)
#define __atomic_sub_fetch(pointer, value, order)                                                  \
    __atomic_sub_fetch(MGPU_PLAIN(pointer), value, order)
#define __atomic_fetch_or(pointer, value, order)                                                   \
    __atomic_fetch_or(MGPU_PLAIN(pointer), value, order)
#define __atomic_fetch_and(pointer, value, order)                                                  \
    __atomic_fetch_and(MGPU_PLAIN(pointer), value, order)
#define __atomic_compare_exchange_n(pointer, expected, value, weak, success, failure)              \
    __atomic_compare_exchange_n(MGPU_PLAIN(pointer), expected, value, weak, success, failure)
