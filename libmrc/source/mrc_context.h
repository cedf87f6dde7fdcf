/* What mrc.h and mrc_ctl.h share. */
#pragma once

#include <errno.h>

#include "nic.h"

struct mrc_context {
    struct nic *nic;
};

enum { OP_ENTRIES_MAX = 256 }; /* of an EV profile, in one call */

/* The API has two ways to report an error: errno's value as the result, as verbs have it, or -1 with errno set. One
 * function, mrc_ctl_poll_ev_event, gives -errno. Headers and docs/libmrc.md say which function has which. */
static inline int failed(int error)
{
    if (error)
        errno = error;
    return error ? -1 : 0;
}
