/* What counts as an event: a frame with data, except the messages with which servers keep a stream alive or end it. */
#include <string.h>

static int is_event(const char *frame, size_t size) {
    static const char *others[] = {"offset-only", "error", "keep-alive", "stream-open", "stream-reset", "stream-error", NULL};
    for (const char *line = frame, *end = frame + size; line < end;) {
        const char *line_end = memchr(line, '\n', end - line);
        if (!line_end) line_end = end;
        if (line_end - line > 5 && !memcmp(line, "data:", 5)) return 1;
        if (line_end - line > 7 && !memcmp(line, "event: ", 7))
            for (const char **other = others; *other; other++)
                if (strlen(*other) == (size_t)(line_end - line - 7) && !memcmp(line + 7, *other, line_end - line - 7)) return 0;
        line = line_end + 1;
    }
    return 0;
}
