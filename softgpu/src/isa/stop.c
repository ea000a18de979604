/* Stops a wave with a fault, and executes jumps. */
#include "exec.h"
#include "families.h"
#include "memory.h"

#include <stdarg.h>
#include <stdio.h>

/* Executes an indirect jump, or a direct jump that leaves the function. */
void softgpu_wave_jump(struct wave *w, const struct inst *i, uint64_t pc) {
    struct dispatch *d = w->group->dispatch;
    const struct inst *to = d->code_at(d, pc, &w->code);
    if (to)
        w->next = to;
    else
        softgpu_wave_fault(w, i, -1, "jump to 0x%llx, where no code is", (unsigned long long)pc);
}

/* Writes a fault's message. The message names the kernel, the location and the instruction, unlike
 * the message of a real GPU. */
static void describe(const struct wave *w, const struct inst *i, int lane, const char *what,
                     struct softgpu_fault *fault) {
    const struct dispatch *d = w->group->dispatch;
    char kernel[256], place[32] = "", words[40] = "", text[256] = "";
    softgpu_kernel_name(d->packet->kernel_object, kernel, sizeof kernel);
    if (lane >= 0)
        snprintf(place, sizeof place, ", lane %d", lane);
    int used = snprintf(fault->text, sizeof fault->text,
                        "kernel %s (%s), workgroup (%u,%u,%u), wave %u%s: %s", kernel,
                        d->context->target->name, w->group->id[0], w->group->id[1], w->group->id[2],
                        w->index, place, what);
    if (!i || !w->code || used < 0 || (size_t)used >= sizeof fault->text)
        return;
    uint64_t pc = w->code->va + i->offset;
    for (unsigned n = 0; n < i->size; n++)
        snprintf(words + 9 * n, sizeof words - 9 * n, " %08x", i->words[n]);
    if (i->row)
        softgpu_print(d->target, i, pc, text, sizeof text);
    else
        softgpu_disassemble(d->context->target, i->words, i->size, text, sizeof text);
    snprintf(fault->text + used, sizeof fault->text - (size_t)used,
             "\n  at offset 0x%llx of the kernel:%s  %s", (unsigned long long)(pc - d->entry),
             words, text);
}

/* Reports only the first fault of a dispatch. */
static void fault_with(struct wave *w, const struct inst *i, int lane, const char *what,
                       enum softgpu_fault_kind kind, uint64_t address) {
    struct dispatch *d = w->group->dispatch;
    w->stop = FAULTED;
    pthread_mutex_lock(&d->lock);
    if (!d->failed) {
        describe(w, i, lane, what, d->fault);
        d->fault->kind = kind;
        d->fault->address = address;
        __atomic_store_n(&d->failed, true, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&d->lock);
}

void softgpu_wave_fault(struct wave *w, const struct inst *i, int lane, const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    fault_with(w, i, lane, what, SOFTGPU_FAULT_EXCEPTION, 0);
}

/* Returns false, because tests without a thunk register no memory. */
__attribute__((weak)) bool softgpu_registered_address(uint64_t va, uint64_t *known_as) {
    (void)va, (void)known_as;
    return false;
}
__attribute__((weak)) bool softgpu_is_host_memory(uint64_t va) {
    (void)va;
    return false;
}

void softgpu_memory_fault(struct wave *w, const struct inst *i, int lane, const char *what,
                          uint64_t va, unsigned size) {
    char text[320];
    uint64_t known_as;
    int used = snprintf(text, sizeof text, "%s at 0x%llx, %u byte%s", what, (unsigned long long)va,
                        size, size == 1 ? "" : "s");
    if (used > 0 && softgpu_registered_address(va, &known_as))
        snprintf(text + used, sizeof text - (size_t)used,
                 ": the host's address of memory that was registered, which the device knows at "
                 "0x%llx (hipHostGetDevicePointer, mgpuMemGetDeviceMemRef1dFloat)",
                 (unsigned long long)known_as);
    else if (used > 0 && softgpu_is_host_memory(va))
        snprintf(
            text + used, sizeof text - (size_t)used,
            ": memory of the host that is not registered (gpu.host_register, hipHostRegister)");
    fault_with(w, i, lane, text, SOFTGPU_FAULT_MEMORY, va);
}

void softgpu_offset_fault(struct wave *w, const struct inst *i, int lane, const char *what,
                          uint32_t offset, unsigned size) {
    softgpu_wave_fault(w, i, lane, "%s at 0x%x, %u byte%s", what, offset, size,
                       size == 1 ? "" : "s");
}

void softgpu_run_unknown(struct wave *w, const struct inst *i) {
    fault_with(w, i, -1,
               i->row ? "instruction not implemented" : "not an instruction of this target",
               SOFTGPU_FAULT_ILLEGAL_INSTRUCTION, 0);
}
