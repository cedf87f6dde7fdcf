#include "driver/outbox.h"

void outbox_open(struct outbox *o)
{
    *o = (struct outbox){0};
    pthread_mutex_init(&o->mutex, NULL);
    pthread_cond_init(&o->filled, NULL);
}

void outbox_close(struct outbox *o)
{
    pthread_cond_destroy(&o->filled);
    pthread_mutex_destroy(&o->mutex);
}

bool outbox_put(struct outbox *o, struct packet *p, u32 most)
{
    pthread_mutex_lock(&o->mutex);
    bool room = o->count < most && !o->ended;
    if (room) {
        fifo_put(&o->packets, p);
        o->count++;
        pthread_cond_signal(&o->filled);
    }
    pthread_mutex_unlock(&o->mutex);
    return room;
}

struct packet *outbox_take(struct outbox *o)
{
    pthread_mutex_lock(&o->mutex);
    while (!o->packets.first && !o->ended)
        pthread_cond_wait(&o->filled, &o->mutex);
    struct packet *p = fifo_take(&o->packets);
    if (p)
        o->count--;
    pthread_mutex_unlock(&o->mutex);
    return p;
}

void outbox_end(struct outbox *o)
{
    pthread_mutex_lock(&o->mutex);
    o->ended = true;
    pthread_cond_broadcast(&o->filled);
    pthread_mutex_unlock(&o->mutex);
}
