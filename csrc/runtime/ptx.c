#include "ptx.h"

#include <ctype.h>
#include <string.h>

static bool is_space(char c) {
    return isspace((unsigned char)c) != 0;
}

/* A directive stands alone; `ld.global` and the like hold its letters within a word. */
static const char *find_directive(const char *text, const char *directive) {
    const size_t length = strlen(directive);
    for (const char *at = strstr(text, directive); at; at = strstr(at + length, directive))
        if ((at == text || is_space(at[-1]) || at[-1] == ';' || at[-1] == '}') &&
            is_space(at[length]))
            return at;
    return NULL;
}

bool ptx_has_globals(const char *text) {
    return find_directive(text, ".global") != NULL;
}

const char *ptx_next_kernel(const char **position, int *length) {
    const char *name = find_directive(*position, ".entry");
    if (!name)
        return NULL;
    name += strlen(".entry");
    while (is_space(*name))
        name++;
    const size_t count = strcspn(name, " \t\r\n(;{");
    *length = (int)count;
    *position = name + count;
    return name;
}
