/* What the library says, on standard error: by MRC_LOG_LEVEL, as OCP's programs have it (ERROR, WARN, INFO, DEBUG; or
 * 0 to 3). Refusals are WARN, which is also the default. */
#pragma once

enum { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

__attribute__((format(printf, 2, 3))) void log_line(int level, const char *format, ...);

/* Logs why something is not offered, sets errno and returns it. */
__attribute__((format(printf, 2, 3))) int refuse(int error, const char *format, ...);
