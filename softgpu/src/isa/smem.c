/* Implements SMEM: scalar loads and stores, cache instructions and clocks. */
#include "smem.h"
#include "../check/hooks.h"
#include "memory.h"
#include "operand.h"

#include <time.h>

static uint64_t nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t offset_of(const struct wave *w, const struct inst *i) {
    uint32_t offset = i->imm_en ? (uint32_t)i->imm : 0;
    return offset + (i->src[2].kind == O_SGPR ? w->s[i->src[2].reg] : 0);
}

/* Returns how many bytes of an access lie within a buffer's bound; bytes beyond the bound read as
 * 0. */
static unsigned within(const struct wave *w, const struct inst *i, uint32_t offset,
                       unsigned bytes) {
    const uint32_t *s = &w->s[i->src[0].reg];
    uint64_t stride = s[1] >> 16 & 0x3fff, size = (stride ? stride : 1) * s[2];
    if (offset >= size)
        return 0;
    return size - offset < bytes ? (unsigned)(size - offset) & ~3u : bytes;
}

static void move(struct wave *w, const struct inst *i, bool buffer, bool store) {
    unsigned bytes = 4 * softgpu_type_dwords(i->row->dst), have = bytes;
    uint64_t base = sgpr64(w, i->src[0].reg);
    uint32_t offset = offset_of(w, i);
    if (buffer) {
        base &= 0xffffffffffff;
        have = within(w, i, offset, bytes);
    }
    /* An immediate offset is signed, except in buffer instructions. */
    uint64_t va = base + (buffer ? offset : (uint64_t)(int64_t)(int32_t)offset);
    if (!buffer && i->src[2].kind == O_SGPR)
        va = base + w->s[i->src[2].reg] + (uint64_t)(i->imm_en ? (int64_t)i->imm : 0);
    va &= ~3ull;
    if (!CHECKED_ACCESS(w, i, -1, va, have))
        have = 0;
    char *host = have ? softgpu_host_address(w, va, have) : NULL;
    if (have && !host) {
        softgpu_memory_fault(w, i, -1, "scalar access outside mapped memory", va, have);
        return;
    }
    uint32_t *s = &w->s[i->dst.reg];
    if (store) {
        if (have)
            memcpy(host, s, have);
        return;
    }
    memset(s, 0, bytes);
    if (have)
        memcpy(s, host, have);
}

void softgpu_run_smem(struct wave *w, const struct inst *i) {
    switch (i->row->info) {
    case SM_LOAD:
    case SM_BUFFER_LOAD:
        move(w, i, i->row->info == SM_BUFFER_LOAD, false);
        break;
    case SM_STORE:
    case SM_BUFFER_STORE:
        move(w, i, i->row->info == SM_BUFFER_STORE, true);
        break;
    case SM_MEMTIME: /* ticks of a 1 GHz clock */
        set_sgpr64(w, i->dst.reg, nanoseconds());
        break;
    case SM_MEMREALTIME: /* ticks of a 100 MHz clock, as on gfx9 hardware */
        set_sgpr64(w, i->dst.reg, nanoseconds() / 10);
        break;
    case SM_CACHE:
    case SM_DISCARD:
    case SM_PROBE:
        break;
    default:
        softgpu_run_unknown(w, i);
    }
}

static const struct row rows[] = {
#define ROW(op_, name_, data_, info_) INFO_ROW(op_, name_, ALL, data_, NONE, NONE, NONE, info_)
#include "smem.def"
#undef ROW
};

const struct rows softgpu_rows_smem = FAMILY(rows);
