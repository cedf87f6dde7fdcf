/* The path of a device in sysfs, which the lab's NICs do not have: they are no devices of the kernel.
 *
 * Programs such as NCCL's plugins ask where /sys/class/infiniband/NAME/device leads, to tell ports of one card from two
 * cards, and give a device up that leads nowhere. No two NICs of the lab share a card. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"

static const char before[] = "/sys/class/infiniband/mrc_", behind[] = "/device";

/* The host's name in such a path; its length, or 0 for any other path. */
static size_t host_in(const char *path, const char **host)
{
    size_t length = path ? strlen(path) : 0, around = sizeof before - 1 + sizeof behind - 1;
    if (length <= around || strncmp(path, before, sizeof before - 1) || strcmp(path + length - (sizeof behind - 1), behind))
        return 0;
    *host = path + sizeof before - 1;
    length -= around;
    return memchr(*host, '/', length) ? 0 : length;
}

PUBLIC char *realpath(const char *path, char *resolved)
{
    const char *host;
    size_t length = host_in(path, &host);
    if (length) {
        char *found = resolved ? resolved : malloc(PATH_MAX);
        if (found)
            snprintf(found, PATH_MAX, "/sys/devices/virtual/mrclab/mrc_%.*s", (int)length, host);
        return found;
    }
    char *(*real)(const char *, char *) = (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");
    if (!real) {
        errno = ENOSYS;
        return NULL;
    }
    return real(path, resolved);
}
