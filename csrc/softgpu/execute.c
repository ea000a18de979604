/* Runs kernels that only end. Every other instruction is a fault that names it. */
#include "device.h"

#include <stdio.h>
#include <string.h>

enum { DESCRIPTOR_SIZE = 64, ENTRY_OFFSET = 16, INSTRUCTION_WORDS = 5 };

/* SOPP, the encoding of instructions without operands in registers. */
enum {
    SOPP = 0x17f,
    S_NOP = 0,
    S_ENDPGM = 1,
    S_BARRIER = 10,
    S_WAITCNT = 12,
    S_SLEEP = 14,
    S_SETPRIO = 15,
    S_ICACHE_INV = 19,
    S_ENDPGM_SAVED = 27
};

struct code {
    uint64_t va;
    const char *bytes;
    uint64_t size;
};

static bool find_code(uint64_t kernel_object, struct code *code) {
    struct softgpu_range range;
    int64_t entry;
    if (!softgpu_find_range(kernel_object, &range) ||
        kernel_object - range.va > range.size - DESCRIPTOR_SIZE)
        return false;
    memcpy(&entry, range.host + (kernel_object - range.va) + ENTRY_OFFSET, sizeof entry);
    code->va = kernel_object + (uint64_t)entry;
    if (!softgpu_find_range(code->va, &range))
        return false;
    code->bytes = range.host + (code->va - range.va);
    code->size = range.size - (code->va - range.va);
    return true;
}

static bool no_code(const struct softgpu_dispatch_packet *packet, struct softgpu_fault *fault) {
    snprintf(fault->text, sizeof fault->text, "no code at kernel object 0x%llx",
             (unsigned long long)packet->kernel_object);
    fault->kind = SOFTGPU_FAULT_MEMORY;
    fault->address = packet->kernel_object;
    return false;
}

static bool unknown(const struct softgpu_context *context,
                    const struct softgpu_dispatch_packet *packet, const struct code *code,
                    uint64_t offset, struct softgpu_fault *fault) {
    uint32_t words[INSTRUCTION_WORDS] = {0};
    char name[256], text[256], bytes[64] = "";
    uint64_t left = code->size - offset;
    unsigned count = left / 4 < INSTRUCTION_WORDS ? (unsigned)(left / 4) : INSTRUCTION_WORDS;
    memcpy(words, code->bytes + offset, 4 * (size_t)count);
    softgpu_kernel_name(packet->kernel_object, name, sizeof name);
    softgpu_disassemble(context->target, words, count, text, sizeof text);
    for (unsigned i = 0; i < 2 && i < count; i++)
        snprintf(bytes + strlen(bytes), sizeof bytes - strlen(bytes), " %08x", words[i]);
    snprintf(fault->text, sizeof fault->text,
             "kernel %s (%s), workgroup (0,0,0): instruction not implemented\n"
             "  at offset 0x%llx of the kernel:%s ...%s%s",
             name, context->target->name, (unsigned long long)offset, bytes, *text ? "  " : "",
             text);
    fault->kind = SOFTGPU_FAULT_ILLEGAL_INSTRUCTION;
    return false;
}

bool softgpu_execute(const struct softgpu_context *context,
                     const struct softgpu_dispatch_packet *packet, struct softgpu_fault *fault) {
    struct code code;
    if (!find_code(packet->kernel_object, &code))
        return no_code(packet, fault);
    for (uint64_t offset = 0; offset + 4 <= code.size; offset += 4) {
        uint32_t word;
        memcpy(&word, code.bytes + offset, sizeof word);
        if (word >> 23 != SOPP)
            return unknown(context, packet, &code, offset, fault);
        switch ((word >> 16) & 0x7f) {
        case S_ENDPGM:
        case S_ENDPGM_SAVED:
            return true;
        case S_NOP:
        case S_BARRIER:
        case S_WAITCNT:
        case S_SLEEP:
        case S_SETPRIO:
        case S_ICACHE_INV:
            break;
        default:
            return unknown(context, packet, &code, offset, fault);
        }
    }
    return no_code(packet, fault);
}
