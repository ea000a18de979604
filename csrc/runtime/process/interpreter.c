#include "process/interpreter.h"
#include "process/mapped.h"
#include "process/options.h"

#include <stdio.h>
#include <string.h>

static bool read_line(FILE *file, char line[PATH_MAX]) {
    if (!fgets(line, PATH_MAX, file))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static bool read_note(char path[PATH_MAX]) {
    char note[PATH_MAX];
    FILE *file = mapped_beside("mgpu_rt.python", note, sizeof note) ? fopen(note, "re") : NULL;
    const bool read = file && read_line(file, path);
    if (file)
        fclose(file);
    return read;
}

/* Reads PYTHON from a script, which begins with #!PYTHON. If PYTHON is long or contains a space,
 * the script begins with #!/bin/sh. Its second line is then '''exec' "PYTHON" "$0" "$@", with or
 * without quotes. */
static bool parse_script(FILE *file, char path[PATH_MAX]) {
    static const char shell[] = "#!/bin/sh", exec[] = "'''exec' ";
    char line[PATH_MAX];
    if (!read_line(file, line) || strncmp(line, "#!", 2) != 0)
        return false;
    const char *begin = line + 2;
    size_t length = strlen(begin);
    if (strcmp(line, shell) == 0) {
        if (!read_line(file, line) || strncmp(line, exec, sizeof exec - 1) != 0)
            return false;
        begin = line + sizeof exec - 1;
        const bool quoted = *begin == '"' || *begin == '\'';
        length = strcspn(begin + quoted, quoted ? (char[]){*begin, '\0'} : " ");
        begin += quoted;
    }
    snprintf(path, PATH_MAX, "%.*s", (int)length, begin);
    return length > 0;
}

/* pip installs the command into PREFIX/bin, and the package into PREFIX/lib/python3.X/... */
static bool read_script(char path[PATH_MAX]) {
    char home[PATH_MAX], script[PATH_MAX + 32];
    if (!mapped_home(home))
        return false;
    snprintf(script, sizeof script, "%s/../../../bin/mgpu-rt", home);
    FILE *file = fopen(script, "re");
    const bool read = file && parse_script(file, path);
    if (file)
        fclose(file);
    return read;
}

bool interpreter_find(char path[PATH_MAX]) {
    if (options.python[0])
        snprintf(path, PATH_MAX, "%s", options.python);
    return options.python[0] || read_note(path) || read_script(path);
}
