#include "process/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void line_print(const char *format, ...) {
    char line[LINE];
    va_list words;
    va_start(words, format);
    vsnprintf(line, sizeof line, format, words);
    va_end(words);
    fputs(line, stderr);
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
