/* Packets that wait for another thread to take them. */
#pragma once

#include <pthread.h>

#include "program/packet.h"

enum { OUTBOX_MAX = 4096 };

struct outbox {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct fifo packets;
    u32 count;
    bool ended;
};

void outbox_open(struct outbox *o);
void outbox_close(struct outbox *o);
/* False when `most` packets are in the outbox, or it has ended: the packet stays the caller's. */
bool outbox_put(struct outbox *o, struct packet *p, u32 most);
/* Waits for a packet; NULL once the outbox has ended and is empty. */
struct packet *outbox_take(struct outbox *o);
/* Nothing more is put; a waiting thread is woken. */
void outbox_end(struct outbox *o);
