#include "shared/sites.h"
#include "atomics.h"
#include "process/mapped.h"
#include "process/state.h"
#include "telemetry/call.h"
#include "telemetry/counters.h"
#include "telemetry/keys.h"

#include <dlfcn.h>
#include <stdio.h>

enum { BLOCKS = 8192, DEVICE_SHIFT = 56 };

static uint64_t blocks[BLOCKS]; /* addresses of the blocks that the program holds */
static uint16_t rows[BLOCKS];   /* the places in the program that allocated the blocks */

/* Looks the name up in the file's symbol table, because programs seldom export their functions, and
 * dladdr finds only exported functions. */
static void name_site(struct site_counter *site, const void *address) {
    char symbol[MAPPED_SYMBOL];
    size_t offset;
    Dl_info found;
    site->offset = (uintptr_t)address;
    if (runtime_forked || !dladdr(address, &found) || !found.dli_fname)
        return;
    site->offset -= (uintptr_t)found.dli_fbase;
    snprintf(site->file, sizeof site->file, "%s", found.dli_fname);
    if (mapped_code_symbol(address, symbol, &offset))
        snprintf(site->symbol, sizeof site->symbol, "%.128s+0x%zx", symbol, offset);
}

/* Records the memory of each place at the peak. Called when a free is about to reduce the program's
 * memory after a new peak. */
static void note_peak(int device) {
    for (size_t i = 0; i <= SITES; i++) {
        struct site_counter *site = &counts.sites[i];
        if (i < SITES && counts.site_devices[i] != (uint64_t)device)
            continue;
        store_relaxed(&site->peak_bytes, load_relaxed(&site->bytes));
        store_relaxed(&site->peak_blocks, load_relaxed(&site->blocks));
    }
}

static size_t row_of_site(const void *address, int device) {
    const uint64_t key = (uintptr_t)address | (uint64_t)(device + 1) << DEVICE_SHIFT;
    bool fresh = false;
    const size_t row = address ? key_enter(counts.site_keys, SITES, key, &fresh) : SITES;
    if (fresh) {
        counts.site_devices[row] = (uint64_t)device;
        name_site(&counts.sites[row], address);
    }
    return row;
}

void sites_count(const void *address, int device, ptrdiff_t change) {
    if (!runtime_counting() || device >= MOST_DEVICES || !change)
        return;
    if (change > 0) {
        const uint64_t bytes = (uint64_t)change;
        bool fresh;
        const size_t row = row_of_site(call_now.site, device);
        const size_t place = key_enter(blocks, BLOCKS, (uintptr_t)address, &fresh);
        struct site_counter *site = &counts.sites[place < BLOCKS ? row : SITES];
        if (place < BLOCKS)
            store_relaxed(&rows[place], (uint16_t)row);
        fetch_add_relaxed(&site->bytes, bytes);
        fetch_add_relaxed(&site->blocks, 1);
        if (add_fetch_relaxed(&counts.site_held[device], bytes) > counts.site_peaks[device]) {
            store_relaxed(&counts.site_peaks[device], counts.site_held[device]);
            store_relaxed(&counts.site_grows[device], 1);
        }
        return;
    }
    const uint64_t bytes = (uint64_t)-change;
    const size_t place = key_find(blocks, BLOCKS, (uintptr_t)address);
    struct site_counter *site = &counts.sites[place < BLOCKS ? load_relaxed(&rows[place]) : SITES];
    if (load_relaxed(&site->bytes) < bytes || load_relaxed(&counts.site_held[device]) < bytes)
        return; /* the program got the block before statistics began, as in a forked child */
    if (exchange_relaxed(&counts.site_grows[device], 0))
        note_peak(device);
    fetch_sub_relaxed(&site->bytes, bytes);
    fetch_sub_relaxed(&site->blocks, 1);
    fetch_sub_relaxed(&counts.site_held[device], bytes);
}
