#include "modules/image/ptx.h"

#include <ctype.h>
#include <string.h>

static bool is_of_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Returns true if `at` lies in an instruction. An instruction begins with a letter (ld.global.f32),
 * and a directive begins with a point. Directives may follow each other without a space
 * (.visible.global). */
static bool is_instructions(const char *text, const char *at) {
    enum { LONGEST = 256 }; /* no instruction is longer */
    const char *const begin = at - text > LONGEST ? at - LONGEST : text;
    while (at > begin && (is_of_word(at[-1]) || at[-1] == '.'))
        at--;
    return *at != '.' && (at == text || at > begin);
}

bool ptx_has(const char *text, const char *directive) {
    const size_t length = strlen(directive);
    for (const char *at = strstr(text, directive); at; at = strstr(at + length, directive))
        if (!is_of_word(at[length]) && !is_instructions(text, at))
            return true;
    return false;
}
