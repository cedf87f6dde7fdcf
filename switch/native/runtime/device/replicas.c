#include <stdlib.h>

#include "device/traffic.h"

struct replica_list *traffic_replicas(struct replication *r, u32 id)
{
    for (u32 i = 0; i < r->count; i++)
        if (r->list[i].id == id)
            return &r->list[i];
    return NULL;
}

int device_set_replicas(struct device *d, bool session, u32 id, const u32 *ports, const u32 *rids, u32 count,
                        u32 truncate_bytes, u32 priority)
{
    struct replication *r = session ? &d->sessions : &d->multicast;
    struct replica *replicas = malloc((count + 1) * sizeof *replicas);
    if (!replicas)
        return -1;
    for (u32 i = 0; i < count; i++)
        replicas[i] = (struct replica){(u16)ports[i], (u16)rids[i]};
    struct replica_list *list = traffic_replicas(r, id);
    if (!list) {
        struct replica_list *lists = realloc(r->list, (r->count + 1) * sizeof *lists);
        if (!lists) {
            free(replicas);
            return -1;
        }
        r->list = lists;
        list = &lists[r->count++];
        *list = (struct replica_list){.id = id};
    }
    free(list->replica);
    list->replica = replicas;
    list->count = count;
    list->truncate_bytes = truncate_bytes;
    list->priority = priority;
    return 0;
}

void device_delete_replicas(struct device *d, bool session, u32 id)
{
    struct replication *r = session ? &d->sessions : &d->multicast;
    struct replica_list *list = traffic_replicas(r, id);
    if (!list)
        return;
    free(list->replica);
    *list = r->list[--r->count];
}
