#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static int chosen_level(void)
{
    static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG"};
    const char *said = getenv("MRC_LOG_LEVEL");
    if (said && said[0] >= '0' && said[0] <= '3' && !said[1])
        return said[0] - '0';
    for (int level = LOG_ERROR; said && level <= LOG_DEBUG; level++)
        if (!strcasecmp(said, names[level]))
            return level;
    return LOG_WARN;
}

static void say(int level, const char *format, va_list arguments)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    char line[1024];
    if (level > chosen_level())
        return;
    vsnprintf(line, sizeof line, format, arguments);
    fprintf(stderr, "libmrc: %s: %s\n", words[level], line);
}

void log_line(int level, const char *format, ...)
{
    va_list arguments;
    int before = errno;
    va_start(arguments, format);
    say(level, format, arguments);
    va_end(arguments);
    errno = before;
}

int refuse(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(LOG_WARN, format, arguments);
    va_end(arguments);
    errno = error;
    return error;
}
