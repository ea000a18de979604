#include "modules/module_name.h"
#include "process/mapped.h"
#include "proof.h"

#include <stdio.h>
#include <string.h>

/* The affixes that MLIR adds to the name: since LLVM 20, up to 17, and between them. */
static const char *const endings[] = {"_binary", "_gpubin_cst", "_bin_cst"};

static void drop_ending(char *symbol) {
    const size_t length = strlen(symbol);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(symbol + length - ending, endings[i]) == 0) {
            symbol[length - ending] = '\0';
            return;
        }
    }
    PROOF_STEP(constant_is_an_image_of_mlirs, symbol[0] = '\0');
}

void image_module_name(const void *image, char *name, size_t size) {
    char symbol[MAPPED_SYMBOL];
    if (mapped_symbol(image, symbol))
        drop_ending(symbol);
    else
        symbol[0] = '\0';
    snprintf(name, size, "%.*s", (int)size - 1, symbol);
}
