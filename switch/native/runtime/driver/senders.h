/* The sockets that a driver sends with: one for each network namespace, shared by the interfaces in it. */
#ifndef MRCLAB_SENDERS_H
#define MRCLAB_SENDERS_H

#include "driver/wire.h"

struct sender {
    u64 namespace_device, namespace_inode;
    int fd;
    u32 users; /* 0: closed, and free to be another */
};

struct senders {
    struct sender *item;
    u32 count;
};

/* The socket of the namespace that `w` was opened in (at path `netns`), for one more user. -errno with what could not be
 * done in *what. */
int senders_get(struct senders *s, const struct wire *w, const char *netns, const char **what);
/* One user less of the socket `fd`; the last one closes it. */
void senders_release(struct senders *s, int fd);
void senders_close(struct senders *s);

#endif
