/* Fuzzes the reader of PTX with a string that ends at the last readable byte. */
#include "edge.h"
#include "modules/image/formats.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = edge_text(data, size);
    if (!ptx_has(text, ".global"))
        HOLDS(!strstr(text, "\n.global "));
    free(text);
    return 0;
}
