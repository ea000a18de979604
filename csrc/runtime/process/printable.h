/* Prepares names of images, kernels and files for lines on a terminal. */
#ifndef MGPU_RT_PRINTABLE_H
#define MGPU_RT_PRINTABLE_H

/* Returns the size of an ASCII, C1 or bidirectional control character at the start of a text.
 * Returns 0 for any other character, and at the end of the text. */
static inline int control_bytes(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    if (*at && (*at < ' ' || *at == 0x7f))
        return 1;
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
        return 2;
    if (at[0] == 0xe2 && at[1] == 0x80)
        return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae) ? 3 : 0;
    return at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0;
}

/* Returns the byte at `*at`, or '?' for a control character. Moves `*at` past the byte or the
 * control character. */
static inline char next_printable(const char **at) {
    const int hidden = control_bytes(*at);
    const char shown = hidden ? '?' : **at;
    *at += hidden ? hidden : 1;
    return shown;
}

#endif
