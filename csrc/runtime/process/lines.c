#include "process/lines.h"

#include <stdarg.h>
#include <stdio.h>

void line_print(const char *format, ...) {
    char line[LINE];
    va_list words;
    va_start(words, format);
    vsnprintf(line, sizeof line, format, words);
    va_end(words);
    fputs(line, stderr);
}
