/* Devices and their attributes.
 *
 * A host has one device, mrc_HOST, with one port: a queue pair sprays over all planes, so a program has no plane to
 * choose. The planes' ports are those of mrc_ctl.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nic.h"

enum {
    DEVICES_MAX = 16,
    DRIVERS_PART = 256, /* bytes behind a device, where libmlx5 looks for its own mark: it must find none */
};
static const char device_prefix[] = "mrc_";

PUBLIC struct ibv_device **ibv_get_device_list(int *num_devices)
{
    char hosts[DEVICES_MAX][HOST_MAX];
    const char *place = stepped_place();
    int count = 0;
    if (!stepped_process())
        count = uverbs_hosts(hosts, DEVICES_MAX);
    else if (*place)
        strcpy(hosts[count++], place);
    if (!count && !stepped_process())
        log_line(LOG_WARN, "no NIC in this network namespace: run inside a host (./lab exec h0 -- ...), whose agent runs");
    struct ibv_device **list = calloc((size_t)count + 1, sizeof *list);
    for (int at = 0; list && at < count; at++) {
        if (!(list[at] = calloc(1, sizeof **list + DRIVERS_PART)))
            break;
        list[at]->node_type = IBV_NODE_CA;
        list[at]->transport_type = IBV_TRANSPORT_IB;
        snprintf(list[at]->name, sizeof list[at]->name, "%s%.*s", device_prefix, 59, hosts[at]);
        snprintf(list[at]->dev_name, sizeof list[at]->dev_name, "uverbs%d", at);
    }
    if (num_devices)
        *num_devices = list ? count : 0;
    return list;
}

/* The list goes, but not a device that was opened from it: that one belongs to its context. */
PUBLIC void ibv_free_device_list(struct ibv_device **list)
{
    for (struct ibv_device **at = list; at && *at; at++)
        free(*at);
    free(list);
}

PUBLIC const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

static uint64_t guid_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

PUBLIC __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return guid_of(device->name);
}

PUBLIC int ibv_get_device_index(struct ibv_device *device)
{
    return atoi(device->dev_name + strlen("uverbs"));
}

/* What is told of the NIC; locked, with the answer to `open` or `query_device`. */
static int learn(struct nic *nic)
{
    char text[65];
    uint64_t rate;
    if (!text_string(text_find(nic->answer, "result.address"), text, sizeof text) ||
        inet_pton(AF_INET6, text, nic->gid.raw) != 1 || !text_integer(text_find(nic->answer, "result.pmtu"), &nic->pmtu) ||
        !text_string(text_find(nic->answer, "result.transport"), nic->transport, sizeof nic->transport))
        return EPROTO;
    nic->planes = 0; /* at most 31 are counted: they are bits of a mask */
    nic->rate_bps = 0;
    nic->up = false;
    const char *port = text_first(text_find(nic->answer, "result.ports"));
    for (; port && nic->planes < 31; port = text_next(port)) {
        nic->planes++;
        nic->up |= text_true(text_find(port, "up"));
        if (text_integer(text_find(port, "rate_bps"), &rate))
            nic->rate_bps += rate;
    }
    return 0;
}

static int learn_limits(struct nic *nic)
{
    char hex[2 * SECRET_MAX + 1] = "";
    if (!text_integer(text_find(nic->answer, "result.limits.qps"), &nic->max_qp) ||
        !text_integer(text_find(nic->answer, "result.limits.cqs"), &nic->max_cq) ||
        !text_integer(text_find(nic->answer, "result.limits.cqe"), &nic->places) ||
        !text_integer(text_find(nic->answer, "result.limits.regions"), &nic->max_mr) ||
        !text_integer(text_find(nic->answer, "result.limits.memory_bytes"), &nic->max_memory))
        return EPROTO;
    text_string(text_find(nic->answer, "result.secret"), hex, sizeof hex);
    for (size_t at = 0; hex[2 * at] && hex[2 * at + 1]; at++) {
        unsigned int byte;
        if (sscanf(hex + 2 * at, "%2x", &byte) != 1)
            return EPROTO;
        nic->secret[at] = (char)byte;
    }
    return 0;
}

/* Lanes and their speed whose product is next to all planes together: 1X of 2.5 Gb/s is the least that the fields say. */
static void speed_of(uint64_t rate_bps, struct ibv_port_attr *attr)
{
    static const struct {
        uint8_t code;
        uint64_t factor;
    } widths[] = {{2, 4}, {1, 1}, {16, 2}, {4, 8}, {8, 12}},
      speeds[] = {{1, 25}, {2, 50}, {4, 100}, {16, 140}, {32, 250}, {64, 500}, {128, 1000}}; /* 0.1 Gb/s */
    uint64_t rate = rate_bps / 100000000, nearest = UINT64_MAX;
    for (size_t width = 0; width < sizeof widths / sizeof *widths; width++)
        for (size_t speed = 0; speed < sizeof speeds / sizeof *speeds; speed++) {
            uint64_t product = widths[width].factor * speeds[speed].factor;
            uint64_t away = product > rate ? product - rate : rate - product;
            if (away < nearest) {
                nearest = away;
                attr->active_width = widths[width].code;
                attr->active_speed = speeds[speed].code;
            }
        }
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    struct nic *nic = nic_of(context);
    struct ibv_port_attr found = {.max_mtu = IBV_MTU_4096, .gid_tbl_len = GIDS, .pkey_tbl_len = 1};
    if (port != PORT)
        return refuse(EINVAL, "port %u: a device has one, port %d, for all planes", port, PORT);
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "query_device", "%s", "");
    if (!error)
        error = learn(nic);
    pthread_mutex_unlock(&nic->lock);
    if (error)
        return error;
    found.active_mtu = IBV_MTU_256;
    while (found.active_mtu < IBV_MTU_4096 && 256u << found.active_mtu <= nic->pmtu)
        found.active_mtu++;
    found.state = nic->up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    found.phys_state = nic->up ? 5 : 3; /* LinkUp, Disabled */
    found.max_msg_sz = UINT32_MAX;
    speed_of(nic->rate_bps, &found);
    found.link_layer = IBV_LINK_LAYER_ETHERNET;
    memset(attr, 0, size);
    memcpy(attr, &found, size < sizeof found ? size : sizeof found);
    return 0;
}

#undef ibv_query_port
PUBLIC int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return query_port(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    (void)input;
    memset(attr, 0, size);
    return ibv_query_device(context, &attr->orig_attr);
}

PUBLIC int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    struct nic *nic = nic_of(context);
    *attr = (struct ibv_device_attr){
        .fw_ver = "mrclab",
        .node_guid = guid_of(context->device->name),
        .sys_image_guid = guid_of(context->device->name),
        .max_mr_size = nic->max_memory,
        .page_size_cap = 4096,
        .max_qp = (int)nic->max_qp,
        .max_qp_wr = (int)max_qp_wr(nic),
        .max_sge = 1,
        .max_cq = (int)nic->max_cq,
        .max_cqe = (int)max_cqe(nic),
        .max_mr = (int)nic->max_mr,
        .max_pd = (int)nic->max_qp,
        .max_pkeys = 1,
        .phys_port_cnt = 1,
    };
    return 0;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp_init_attr plain;
    uint64_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    uint64_t operations = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
    if (attr->comp_mask & ~known || !(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
        refuse(EOPNOTSUPP, "a queue pair with the attributes %#x: only PD, which it needs, and SEND_OPS_FLAGS are offered",
               attr->comp_mask);
        return NULL;
    }
    if (operations & ~writes) {
        refuse(EOPNOTSUPP, "a queue pair with the operations %#lx: MRC carries RDMA writes, with and without immediate;"
                           " SEND, READ and atomics are not in the protocol", (unsigned long)(operations & ~writes));
        return NULL;
    }
    memcpy(&plain, attr, sizeof plain); /* the extended structure begins with the plain one */
    struct mrc_qp *qp = pair_make(nic_of(context), attr->pd, &plain);
    if (!qp)
        return NULL;
    attr->cap = plain.cap;
    pair_extend(qp, operations);
    return &qp->verbs;
}

static void fill_context(struct nic *nic, struct ibv_device *device)
{
    struct ibv_context *context = &nic->verbs.context;
    nic->verbs.sz = sizeof nic->verbs;
    nic->verbs.query_port = query_port;
    nic->verbs.query_device_ex = query_device_ex;
    nic->verbs.create_qp_ex = create_qp_ex;
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->device = device;
    context->cmd_fd = nic->fd;
    context->num_comp_vectors = 1;
    context->ops.poll_cq = cq_poll;
    context->ops.req_notify_cq = cq_arm;
    context->ops.post_send = pair_post_send;
    context->ops.post_recv = pair_post_recv;
    pthread_mutex_init(&context->mutex, NULL);
}

PUBLIC struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct nic *nic = calloc(1, sizeof *nic);
    struct ibv_device *kept = calloc(1, sizeof *kept + DRIVERS_PART);
    int error = nic && kept ? 0 : ENOMEM;
    if (!error) {
        *kept = *device;
        pthread_mutex_init(&nic->lock, NULL);
        error = uverbs_open(nic, device->name + strlen(device_prefix));
    }
    if (!error) {
        error = learn(nic);
        if (!error)
            error = learn_limits(nic);
        if (!error) {
            nic->verbs.context.async_fd = nic->answer_fd;
            nic->answer_fd = -1;
            if (nic->verbs.context.async_fd < 0)
                log_line(LOG_WARN, "no asynchronous events: this process must have a free descriptor (RLIMIT_NOFILE)");
        }
        if (error)
            uverbs_close(nic);
    }
    if (error) {
        free(nic);
        free(kept);
        errno = error;
        return NULL;
    }
    fill_context(nic, kept);
    return &nic->verbs.context;
}

/* The agent takes back all that the program had. Objects that were not destroyed before stay readable, as with verbs. */
PUBLIC int ibv_close_device(struct ibv_context *context)
{
    struct nic *nic = nic_of(context);
    uverbs_close(nic);
    close(context->async_fd);
    free(context->device);
    free(nic);
    return 0;
}

PUBLIC int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                             uint32_t flags, size_t size)
{
    struct ibv_gid_entry found = {nic_of(context)->gid, index, PORT, IBV_GID_TYPE_ROCE_V2, 0};
    (void)flags;
    if (port != PORT || index >= GIDS)
        return refuse(EINVAL, "GID %u of port %u: port %d has %d", index, port, PORT, GIDS);
    memcpy(entry, &found, size < sizeof found ? size : sizeof found);
    return 0;
}

/* Of libibverbs' inner part, but ibv_devinfo asks. The type as sysfs has it: 1 is RoCE v2. */
PUBLIC int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
    struct ibv_gid_entry entry;
    int error = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof entry);
    *type = 1;
    return error ? -1 : 0;
}

PUBLIC ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t room,
                                    uint32_t flags, size_t size)
{
    uint32_t count = room < GIDS ? (uint32_t)room : GIDS;
    for (uint32_t index = 0; index < count; index++)
        _ibv_query_gid_ex(context, PORT, index, (struct ibv_gid_entry *)((char *)entries + index * size), flags, size);
    return count;
}

PUBLIC int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;
    if (index < 0 || _ibv_query_gid_ex(context, port, (uint32_t)index, &entry, 0, sizeof entry))
        return -1;
    *gid = entry.gid;
    return 0;
}

PUBLIC int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void)context;
    if (port != PORT || index)
        return refuse(EINVAL, "partition key %d of port %u: port %d has one, number 0", index, port, PORT), -1;
    *pkey = htons(0xffff);
    return 0;
}

enum { EVENT_SHIFT = 24 };

/* Threads that wait take turns in virtual time, and an event may never come: a program's thread for events takes none. */
static bool has_threads(void)
{
    struct stat found; /* a link for each thread, and two for the folder */
    return !stat("/proc/self/task", &found) && found.st_nlink > 3;
}

/* An event of a queue pair that was destroyed meanwhile is dropped. */
PUBLIC int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct nic *nic = nic_of(context);
    for (;;) {
        uint32_t told;
        ssize_t size = channel_read(nic, context->async_fd, !has_threads(), &told); /* a signal ends it, with EINTR */
        if (!size && !nic->told_gone) {
            nic->told_gone = true;
            *event = (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL};
            return 0;
        }
        if (size != sizeof told) {
            errno = size < 0 ? errno : EIO;
            return -1;
        }
        *event = (struct ibv_async_event){.event_type = (enum ibv_event_type)(told >> EVENT_SHIFT)};
        event->element.port_num = PORT;
        if (event->event_type == IBV_EVENT_PORT_ACTIVE || event->event_type == IBV_EVENT_PORT_ERR)
            return 0;
        pthread_mutex_lock(&nic->lock);
        uint32_t number = told & ((1u << EVENT_SHIFT) - 1);
        bool of_queue = event->event_type == IBV_EVENT_CQ_ERR;
        struct mrc_cq *cq = of_queue ? cq_by_number(nic, number) : NULL;
        struct mrc_qp *qp = of_queue ? NULL : pair_by_number(nic, number);
        if (qp && event->event_type != IBV_EVENT_SQ_DRAINED)
            qp->verbs.state = IBV_QPS_ERR;
        pthread_mutex_unlock(&nic->lock);
        if (cq) {
            event->element.cq = &cq->cq;
            return 0;
        }
        if (qp) {
            event->element.qp = &qp->verbs;
            return 0;
        }
    }
}

PUBLIC void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}
