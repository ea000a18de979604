#include "telemetry/recording/json.h"
#include "atomics.h"

#include <inttypes.h>
#include <stddef.h>

static bool continues(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

/* Returns the number of bytes of the character that begins here; 0 if no character begins here. The
 * second byte reveals encodings that are too long, halves of a surrogate pair, and values beyond
 * Unicode. */
static size_t utf8_length(const unsigned char *at) {
    const unsigned char low = at[0] == 0xE0 ? 0xA0 : at[0] == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = at[0] == 0xED ? 0x9F : at[0] == 0xF4 ? 0x8F : 0xBF;
    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xC2 || at[0] > 0xF4 || at[1] < low || at[1] > high)
        return 0;
    if (at[0] < 0xE0)
        return 2;
    if (!continues(at[2]))
        return 0;
    if (at[0] < 0xF0)
        return 3;
    return continues(at[3]) ? 4 : 0;
}

void json_text(FILE *out, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', out);
    while (*at) {
        const size_t length = utf8_length(at);
        if (length == 0)
            fputc('?', out);
        else if (*at < ' ' || *at == 0x7F)
            fprintf(out, "\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else
            fwrite(at, 1, length, out);
        at += length ? length : 1;
    }
    fputc('"', out);
}

const char *json_separator(bool *first) {
    const char *text = *first ? "" : ", ";
    *first = false;
    return text;
}

void json_counts(FILE *out, const char *const names[], const uint64_t *values) {
    for (size_t i = 0; names[i]; i++)
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "{", names[i], load_relaxed(&values[i]));
    fputs("}", out);
}
