#include "process/lines.h"

#include <stdio.h>
#include <string.h>

/* Returns the size of an ASCII, C1 or bidirectional control character at the start of a text.
 * Returns 0 for any other character, and at the end of the text. */
static int control_bytes(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    if (*at && (*at < ' ' || *at == 0x7f))
        return 1;
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
        return 2;
    if (at[0] == 0xe2 && at[1] == 0x80)
        return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae) ? 3 : 0;
    return at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0;
}

void line_clean(char *text) {
    char *end = text;
    while (*text) {
        const int hidden = control_bytes(text);
        *end++ = hidden ? '?' : *text;
        text += hidden ? hidden : 1;
    }
    *end = '\0';
}

void line_write(const char *prefix, const char *format, va_list words) {
    char line[LINE];
    const int head = snprintf(line, LINE, "%s", prefix);
    vsnprintf(line + head, LINE - (size_t)head - 1, format, words);
    line_clean(line);
    strcat(line, "\n");
    fputs(line, stderr);
}

void line_print(const char *format, ...) {
    va_list words;
    va_start(words, format);
    line_write("mgpu_rt: ", format, words);
    va_end(words);
}

bool text_append(char *text, size_t size, const char *format, ...) {
    const size_t used = strlen(text);
    va_list words;
    va_start(words, format);
    const int added = vsnprintf(text + used, size - used, format, words);
    va_end(words);
    const bool fits = added >= 0 && (size_t)added < size - used;
    if (!fits)
        text[used] = '\0';
    return fits;
}
