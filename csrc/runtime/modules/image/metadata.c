/* The metadata of a code object are a map in MessagePack. Only messages and the question whether a
 * refused launch had too much memory need them. So this file searches the image's bytes for the
 * keys, and has no reader of MessagePack. LLVM sorts the keys of each map. */
#include "modules/image/metadata.h"
#include "process/lines.h"

#include <stdio.h>
#include <string.h>

/* Moves `rest` behind the next occurrence of a word. Returns false if there is none. */
static bool find_word(struct rest *rest, const char *word) {
    const size_t length = strlen(word);
    const unsigned char *found = memmem(rest->at, rest->size, word, length);
    if (!found)
        return false;
    rest->size -= (size_t)(found + length - rest->at);
    rest->at = found + length;
    return true;
}

struct rest metadata_in(const struct image *image) {
    const bool has_metadata = image->kind == IMAGE_ELF && image->machine == MACHINE_AMDGPU;
    return (struct rest){image->bytes, has_metadata ? image->size : 0};
}

bool metadata_may_print(const struct image *image) {
    static const char *const words[] = {"hostcall", "printf"};
    bool silent = !image->opaque;
    for (size_t i = 0; i < sizeof words / sizeof *words && silent; i++)
        silent = PROOF(kernels_do_not_print,
                       !memmem(image->bytes, image->size, words[i], strlen(words[i])));
    return !silent;
}

/* The first bytes of a text are its length. */
enum { SHORT_TEXT = 0xa0, TEXT_8 = 0xd9, TEXT_16 = 0xda };

/* Reads an unsigned number; 0: no number. */
static uint64_t number_at(struct rest rest) {
    enum { SMALL = 0x80, NUMBER_8 = 0xcc, NUMBER_64 = 0xcf };
    const unsigned first = rest.size ? rest.at[0] : 0;
    const size_t bytes =
        first >= NUMBER_8 && first <= NUMBER_64 ? (size_t)1 << (first - NUMBER_8) : 0;
    uint64_t number = first < SMALL ? first : 0;
    for (size_t i = 1; i <= bytes && bytes < rest.size; i++)
        number = number << 8 | rest.at[i];
    return number;
}

/* Reads the position and the length of a text; returns NULL if there is no text. */
static const char *text_at(struct rest rest, size_t *length) {
    const unsigned first = rest.size > 2 ? rest.at[0] : 0;
    const size_t wide = first == TEXT_16 ? 2 : first == TEXT_8;
    if (!wide && (first & ~31u) != SHORT_TEXT)
        return NULL;
    *length = wide == 2 ? (size_t)rest.at[1] << 8 | rest.at[2] : wide ? rest.at[1] : first & 31;
    return *length <= rest.size - 1 - wide ? (const char *)rest.at + 1 + wide : NULL;
}

/* Reads the arguments in a kernel's map. The compiler appends arguments whose kind begins with
 * `hidden_`, which a launch does not pass. */
static uint64_t words_in(struct rest kernel) {
    static const char hidden[] = "hidden_";
    uint64_t words = 0;
    size_t length;
    for (unsigned i = 0; i < 64 && find_word(&kernel, ".size"); i++) {
        const uint64_t size = number_at(kernel);
        const char *kind = find_word(&kernel, ".value_kind") ? text_at(kernel, &length) : NULL;
        if (!kind || (length >= strlen(hidden) && memcmp(kind, hidden, strlen(hidden)) == 0))
            break;
        if (size == sizeof(void *))
            words |= UINT64_C(1) << i;
    }
    return words;
}

/* Returns the last number of this key; 0: unknown. */
static uint64_t number_of(struct rest kernel, const char *key) {
    uint64_t number = 0;
    while (find_word(&kernel, key))
        number = number_at(kernel);
    return number;
}

/* The key ".symbol", whose value is the kernel's name and ".kd", follows the kernel's other keys.
 */
bool metadata_next_kernel(struct rest *rest, struct metadata_kernel *out) {
    struct rest kernel = *rest;
    size_t length = 0;
    const char *name = NULL;
    while (!name || length <= strlen(".kd")) {
        kernel.at = rest->at;
        if (!find_word(rest, ".symbol"))
            return false;
        name = text_at(*rest, &length);
    }
    kernel.size = (size_t)(rest->at - kernel.at);
    *out = (struct metadata_kernel){.name = name,
                                    .length = length - strlen(".kd"),
                                    .words = words_in(kernel),
                                    .most_threads = number_of(kernel, ".max_flat_workgroup_size")};
    return true;
}

/* A target is a triple with an empty environment, and then the chip:
 * "amdgcn-amd-amdhsa--gfx9-generic". A bundle's table contains a target for each entry. */
void metadata_targets(const struct image *image, char *text, size_t size) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789:+-";
    struct rest rest = {image->bytes, image->size};
    char target[64];
    text[0] = '\0';
    while (find_word(&rest, "amdhsa--")) {
        size_t length = 0;
        while (length < rest.size && memchr(letters, rest.at[length], sizeof letters - 1))
            length++;
        snprintf(target, sizeof target, "%.*s", (int)length, (const char *)rest.at);
        if (!strstr(text, target))
            (void)text_append(text, size, "%s%s", text[0] ? ", " : "", target);
    }
}
