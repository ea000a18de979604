#include "memory/page_changes.h"
#include "atomics.h"

/* ---- changes ----
 *
 * A ring. `noted` and `applied` count changes, and change i is at place i % CHANGES. The thread of
 * events never waits for a free place. If a reader finds that places were overwritten, the reader
 * assumes that all pages have changed. */

enum { CHANGES = 256 };

static struct {
    uintptr_t begin, end;
} changes[CHANGES];
static uint64_t noted, applied;

void page_changes_note(uintptr_t begin, uintptr_t end) {
    const uint64_t now = load_relaxed(&noted);
    store_seq_cst(&changes[now % CHANGES].begin, begin);
    store_seq_cst(&changes[now % CHANGES].end, end);
    store_seq_cst(&noted, now + 1);
}

bool page_changes_are_applied(void) {
    return load_seq_cst(&applied) == load_seq_cst(&noted);
}

void page_changes_apply(void (*apply)(uintptr_t begin, uintptr_t end)) {
    const uint64_t last = load_seq_cst(&noted);
    for (uint64_t i = load_relaxed(&applied); i != last; i++) {
        const uintptr_t begin = load_seq_cst(&changes[i % CHANGES].begin);
        const uintptr_t end = load_seq_cst(&changes[i % CHANGES].end);
        if (load_seq_cst(&noted) - i >= CHANGES) { /* the thread of events may have overwritten
                                                    * this place */
            apply(0, UINTPTR_MAX);
            break;
        }
        apply(begin, end);
    }
    store_seq_cst(&applied, last);
}

/* ---- drops ----
 *
 * One bit for each chunk of memory that had a drop. Chunks whose numbers differ by a multiple of
 * CHUNKS share a bit. A bit is never cleared, because nothing tells when a drop has ended. */

enum { CHUNK = 64 << 10, CHUNKS = 1 << 18, WORD = 64 };

static uint64_t dropped[CHUNKS / WORD];

/* Returns the number of chunks to look at: the chunks of these bytes, but at most all bits. */
static uintptr_t count_chunks(uintptr_t begin, uintptr_t end) {
    const uintptr_t count = (end - 1) / CHUNK - begin / CHUNK + 1;
    return count < CHUNKS ? count : CHUNKS;
}

void page_changes_note_drop(uintptr_t begin, uintptr_t end) {
    const uintptr_t first = begin / CHUNK, count = count_chunks(begin, end);
    for (uintptr_t i = first; i < first + count; i++)
        (void)fetch_or_relaxed(&dropped[i % CHUNKS / WORD], UINT64_C(1) << (i % WORD));
    page_changes_note(begin, end);
}

bool page_changes_had_drop(const void *address, size_t bytes) {
    const uintptr_t begin = (uintptr_t)address, first = begin / CHUNK;
    const uintptr_t count = count_chunks(begin, begin + bytes);
    for (uintptr_t i = first; i < first + count; i++)
        if (load_relaxed(&dropped[i % CHUNKS / WORD]) >> (i % WORD) & 1)
            return true;
    return false;
}
