/* A fair lock: the thread that asks first goes first. A plain mutex would let a busy driver thread starve control calls. */
#pragma once

#include <pthread.h>

#include "program/bits.h"

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t turn;
    u64 tickets;
    u64 serving;
};

static inline void gate_open(struct gate *g)
{
    pthread_mutex_init(&g->mutex, NULL);
    pthread_cond_init(&g->turn, NULL);
    g->tickets = 0;
    g->serving = 0;
}

static inline void gate_close(struct gate *g)
{
    pthread_cond_destroy(&g->turn);
    pthread_mutex_destroy(&g->mutex);
}

static inline void gate_enter(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    u64 ticket = g->tickets++;
    while (g->serving != ticket)
        pthread_cond_wait(&g->turn, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static inline void gate_leave(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->serving++;
    if (g->serving != g->tickets)
        pthread_cond_broadcast(&g->turn);
    pthread_mutex_unlock(&g->mutex);
}
