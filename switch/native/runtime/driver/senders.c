#include "driver/senders.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int senders_get(struct senders *s, const struct wire *w, const char *netns, const char **what)
{
    struct sender *unused = NULL;
    for (u32 i = 0; i < s->count; i++) {
        struct sender *item = &s->item[i];
        if (!item->users)
            unused = item;
        else if (item->namespace_device == w->namespace_device && item->namespace_inode == w->namespace_inode) {
            item->users++;
            return item->fd;
        }
    }
    int fd = wire_open_sender(w, netns, what);
    if (fd < 0)
        return fd;
    if (!unused) {
        struct sender *items = realloc(s->item, (s->count + 1) * sizeof *items);
        if (!items) {
            close(fd);
            *what = "remember the socket";
            return -ENOMEM;
        }
        s->item = items;
        unused = &items[s->count++];
    }
    *unused = (struct sender){w->namespace_device, w->namespace_inode, fd, 1};
    return fd;
}

void senders_release(struct senders *s, int fd)
{
    for (u32 i = 0; i < s->count; i++)
        if (s->item[i].users && s->item[i].fd == fd && --s->item[i].users == 0)
            close(fd);
}

void senders_close(struct senders *s)
{
    for (u32 i = 0; i < s->count; i++)
        if (s->item[i].users)
            close(s->item[i].fd);
    free(s->item);
    *s = (struct senders){0};
}
