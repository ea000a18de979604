#include "telemetry/recording/kernel_label.h"
#include "proof.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns true if two kernels have the same name but different images. Two rows of one image are
 * always different kernels, although long names that were cut off may be equal. */
static bool are_alike(const struct kernel_name *one, const struct kernel_name *other) {
    return one->image && other->image && one->image != other->image &&
           strcmp(one->name, other->name) == 0;
}

static enum apart apart_of(const struct kernel_name names[KERNELS], size_t row) {
    enum apart apart = APART_BY_NAME;
    for (size_t i = 0; i < KERNELS; i++) {
        if (!are_alike(&names[row], &names[i]))
            continue;
        if (!names[row].module[0] ||
            DOUBT(modules_have_one_name, strcmp(names[row].module, names[i].module) == 0))
            return APART_BY_IMAGE;
        apart = APART_BY_MODULE;
    }
    return apart;
}

void kernel_labels(struct kernel_labels *labels, const struct kernel_name names[KERNELS]) {
    labels->names = names;
    for (size_t i = 0; i < KERNELS; i++)
        labels->apart[i] = names[i].image ? (uint8_t)apart_of(names, i) : APART_BY_NAME;
}

const char *kernel_label(const struct kernel_labels *labels, size_t row, struct kernel_text *text) {
    const struct kernel_name *name = &labels->names[row];
    if (labels->apart[row] == APART_BY_NAME)
        return name->name;
    if (labels->apart[row] == APART_BY_MODULE)
        snprintf(text->text, sizeof text->text, "%s::%s", name->module, name->name);
    else
        snprintf(text->text, sizeof text->text, "%08" PRIx32 "::%s", (uint32_t)(name->image >> 32),
                 name->name);
    return text->text;
}
