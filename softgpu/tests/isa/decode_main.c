/* `isa-decode TARGET FILE`: prints the decoded instructions of a file, one on each line. */
#include "../../src/isa/isa.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    static const struct softgpu_target targets[] = {
        {"gfx906", 9, 0, 6}, {"gfx908", 9, 0, 8}, {"gfx90a", 9, 0, 10}, {"gfx942", 9, 4, 2}};
    enum target_mask mask = 0;
    for (unsigned n = 0; argc == 3 && n < sizeof targets / sizeof *targets; n++)
        if (!strcmp(argv[1], targets[n].name))
            mask = softgpu_target_mask(&targets[n]);
    FILE *file = mask ? fopen(argv[2], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: isa-decode gfx906|gfx908|gfx90a|gfx942 FILE\n");
        return 2;
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint32_t *words = malloc((size_t)size + 4);
    size_t count = words ? fread(words, 4, (size_t)size / 4, file) : 0;
    for (size_t n = 0; n < count;) {
        struct inst i;
        char text[256] = "";
        if (softgpu_decode(mask, words + n, count - n, &i))
            softgpu_print(mask, &i, 4 * n, text, sizeof text);
        printf("%zx\t%s\n", 4 * n, text);
        n += i.size;
    }
    free(words);
    fclose(file);
    return 0;
}
