/* Completion queues and their channels. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic.h"

struct mrc_cq *cq_by_number(struct nic *nic, uint32_t number)
{
    struct mrc_cq *cq = nic->cqs;
    while (cq && cq->number != number)
        cq = cq->next;
    return cq;
}

static struct ibv_wc *cq_slot(struct mrc_cq *cq)
{
    if (cq->count == cq->room) {
        unsigned int room = cq->room ? cq->room * 2 : 64;
        struct ibv_wc *ring = malloc(room * sizeof *ring);
        if (!ring)
            return NULL;
        for (unsigned int at = 0; at < cq->count; at++)
            ring[at] = cq->ring[(cq->first + at) % cq->room];
        free(cq->ring);
        cq->ring = ring;
        cq->room = room;
        cq->first = 0;
    }
    return &cq->ring[(cq->first + cq->count++) % cq->room];
}

/* A completion belongs to a request that was posted; so a queue never holds more than was. */
int cq_push(struct nic *nic, const struct completion_row *row)
{
    static const enum ibv_wc_status statuses[] = {IBV_WC_SUCCESS,         IBV_WC_WR_FLUSH_ERR, IBV_WC_RETRY_EXC_ERR,
                                                  IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,   IBV_WC_LOC_PROT_ERR,
                                                  IBV_WC_REM_INV_REQ_ERR};
    struct mrc_qp *qp = pair_by_number(nic, row->qpn);
    bool receive = row->opcode == DONE_RECV_WITH_IMM;
    if (!qp)
        return 0; /* it was destroyed meanwhile */
    if (row->opcode > DONE_SILENT || row->status >= sizeof statuses / sizeof *statuses)
        return EPROTO;
    unsigned int *posted = receive ? &qp->receives : &qp->sends;
    unsigned int done = row->opcode == DONE_SILENT ? row->byte_len : 1;
    if (done > *posted)
        return EPROTO;
    *posted -= done;
    if (row->opcode == DONE_SILENT)
        return 0;
    struct mrc_cq *cq = receive ? qp->recv_cq : qp->send_cq;
    if (cq->count >= (unsigned int)cq->cq.cqe)
        cq->overrun |= strictly(ENOMEM, "a completion queue of %d places with completions that were not polled gets one more",
                                cq->cq.cqe) != 0;
    if (cq->overrun)
        return 0;
    struct ibv_wc *wc = cq_slot(cq);
    if (!wc)
        return ENOMEM;
    memset(wc, 0, sizeof *wc);
    wc->wr_id = row->wr_id;
    wc->status = statuses[row->status];
    wc->opcode = receive ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RDMA_WRITE;
    wc->byte_len = row->byte_len;
    wc->qp_num = row->qpn;
    if (receive && wc->status == IBV_WC_SUCCESS) {
        wc->wc_flags = IBV_WC_WITH_IMM;
        wc->imm_data = htonl(row->imm_data);
    }
    if (wc->status != IBV_WC_SUCCESS)
        qp->verbs.state = IBV_QPS_ERR;
    cq->seen++;
    return 0;
}

void cq_forget(struct mrc_cq *cq, uint32_t qpn)
{
    unsigned int kept = 0;
    for (unsigned int at = 0; at < cq->count; at++) {
        struct ibv_wc wc = cq->ring[(cq->first + at) % cq->room];
        if (wc.qp_num != qpn)
            cq->ring[(cq->first + kept++) % cq->room] = wc;
    }
    cq->count = kept;
}

static int take(struct mrc_cq *cq, int count, struct ibv_wc *wc)
{
    int taken = 0;
    for (; taken < count && cq->count; taken++) {
        wc[taken] = cq->ring[cq->first];
        cq->first = (cq->first + 1) % cq->room;
        cq->count--;
    }
    return taken;
}

/* A program that polls in a circle would take the processor from the agent that it waits for, so an empty poll sleeps
 * until the agent says something, or a millisecond has passed. */
int cq_poll(struct ibv_cq *verbs, int count, struct ibv_wc *wc)
{
    struct nic *nic = nic_of(verbs->context);
    struct mrc_cq *cq = (struct mrc_cq *)verbs;
    for (int round = 0;; round++) {
        pthread_mutex_lock(&nic->lock);
        int taken = take(cq, count, wc);
        int error = taken ? 0 : uverbs_take(nic);
        if (!taken)
            taken = take(cq, count, wc);
        if (cq->overrun && !cq->told_overrun && !error) {
            cq->told_overrun = true;
            error = uverbs_call(nic, "overrun_cq", ",\"cq\":%u", cq->number);
        }
        bool again = !taken && !error && !round && count > 0;
        if (again && nic->stepped)
            error = stepped_wait(nic, EMPTY_WAIT_MS * NS_PER_MS);
        struct pollfd one = {.fd = nic->fd, .events = POLLIN};
        pthread_mutex_unlock(&nic->lock);
        if (!again || error)
            return taken || !error ? taken : -error;
        if (!nic->stepped)
            poll(&one, 1, EMPTY_WAIT_MS);
    }
}

int cq_arm(struct ibv_cq *verbs, int solicited_only)
{
    struct nic *nic = nic_of(verbs->context);
    struct mrc_cq *cq = (struct mrc_cq *)verbs;
    struct {
        uint8_t kind, solicited, pad[2];
        uint32_t cq;
        uint64_t seen;
    } message = {.kind = KIND_ARM, .solicited = !!solicited_only, .cq = cq->number};
    pthread_mutex_lock(&nic->lock);
    message.seen = cq->of_events ? 0 : cq->seen;
    int error = uverbs_send(nic, &message, sizeof message);
    pthread_mutex_unlock(&nic->lock);
    return error;
}

struct mrc_cq *cq_make(struct nic *nic, const char *op, int cqe, void *context, struct ibv_comp_channel *channel)
{
    struct mrc_comp_channel *given = (struct mrc_comp_channel *)channel;
    if (cqe > (int)max_cqe(nic)) {
        refuse(EINVAL, "%d places of a completion queue: %u are the most (max_cqe)", cqe, max_cqe(nic));
        return NULL;
    }
    struct mrc_cq *cq = calloc(1, sizeof *cq);
    uint64_t number = 0;
    char with[48] = "";
    if (!cq)
        return NULL;
    if (given)
        snprintf(with, sizeof with, ",\"channel\":%u", given->number);
    cq->cq = (struct ibv_cq){.context = &nic->verbs.context, .channel = channel, .cq_context = context, .cqe = cqe};
    pthread_mutex_init(&cq->cq.mutex, NULL);
    pthread_cond_init(&cq->cq.cond, NULL);
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, op, ",\"cqe\":%d%s", cqe, with);
    if (!error && !text_integer(text_find(nic->answer, "result.cq"), &number))
        error = EPROTO;
    if (!error) {
        cq->number = cq->cq.handle = (uint32_t)number;
        cq->of_events = !strcmp(op, "create_ev_event_cq");
        cq->next = nic->cqs;
        nic->cqs = cq;
        if (channel)
            channel->refcnt++;
    }
    pthread_mutex_unlock(&nic->lock);
    if (error) {
        free(cq);
        errno = error;
        return NULL;
    }
    return cq;
}

PUBLIC struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector)
{
    (void)vector;
    struct mrc_cq *cq = cq_make(nic_of(context), "create_cq", cqe, cq_context, channel);
    return cq ? &cq->cq : NULL;
}

PUBLIC int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    (void)cq;
    return refuse(EOPNOTSUPP, "ibv_resize_cq to %d: a queue has places for all that its queue pairs may post", cqe);
}

PUBLIC int ibv_destroy_cq(struct ibv_cq *verbs)
{
    struct nic *nic = nic_of(verbs->context);
    struct mrc_cq *cq = (struct mrc_cq *)verbs;
    int error = 0;
    pthread_mutex_lock(&nic->lock);
    if (cq->users || cq->unacknowledged)
        error = refuse(EBUSY, "a completion queue with %u queue pairs and %u unacknowledged events stays", cq->users,
                       cq->unacknowledged);
    else if (nic->fd >= 0)
        error = uverbs_call(nic, "destroy_cq", ",\"cq\":%u", cq->number);
    if (error == EIO)
        error = 0; /* the agent is gone, and the queue with it */
    if (!error) {
        struct mrc_cq **at = &nic->cqs;
        while (*at != cq)
            at = &(*at)->next;
        *at = cq->next;
        if (verbs->channel)
            verbs->channel->refcnt--;
    }
    pthread_mutex_unlock(&nic->lock);
    if (!error) {
        free(cq->ring);
        free(cq);
    }
    return error;
}

PUBLIC struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct nic *nic = nic_of(context);
    struct mrc_comp_channel *made = calloc(1, sizeof *made);
    uint64_t number = 0;
    if (!made)
        return NULL;
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "create_comp_channel", "%s", "");
    if (!error && !text_integer(text_find(nic->answer, "result.channel"), &number))
        error = EPROTO;
    if (!error && nic->answer_fd < 0) {
        uverbs_call(nic, "destroy_comp_channel", ",\"channel\":%u", (uint32_t)number);
        error = refuse(EMFILE, "ibv_create_comp_channel: this process must have a free descriptor (RLIMIT_NOFILE)");
    }
    if (!error) {
        *made = (struct mrc_comp_channel){{context, nic->answer_fd, 0}, (uint32_t)number};
        nic->answer_fd = -1;
    }
    pthread_mutex_unlock(&nic->lock);
    if (error) {
        free(made);
        errno = error;
        return NULL;
    }
    return &made->channel;
}

PUBLIC int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct nic *nic = nic_of(channel->context);
    int error = 0;
    pthread_mutex_lock(&nic->lock);
    if (channel->refcnt)
        error = refuse(EBUSY, "a completion channel that %d queues have stays", channel->refcnt);
    else if (nic->fd >= 0)
        error = uverbs_call(nic, "destroy_comp_channel", ",\"channel\":%u", ((struct mrc_comp_channel *)channel)->number);
    pthread_mutex_unlock(&nic->lock);
    if (error && error != EIO)
        return error;
    close(channel->fd);
    free(channel);
    return 0;
}

/* Without a turn, other threads move virtual time. A channel that was set to not block is asked once. */
ssize_t channel_read(struct nic *nic, int fd, bool takes_turn, uint32_t *number)
{
    if (!nic->stepped || !takes_turn || fcntl(fd, F_GETFL) & O_NONBLOCK)
        return recv(fd, number, sizeof *number, 0);
    pthread_mutex_lock(&nic->lock);
    ssize_t size;
    while ((size = recv(fd, number, sizeof *number, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
        if (stepped_wait(nic, FOR_EVER)) {
            size = 0;
            break;
        }
    pthread_mutex_unlock(&nic->lock);
    return size;
}

/* An event of a queue that was destroyed meanwhile is dropped. */
PUBLIC int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **found, void **cq_context)
{
    struct nic *nic = nic_of(channel->context);
    struct mrc_cq *cq;
    do {
        uint32_t number;
        ssize_t size = channel_read(nic, channel->fd, true, &number); /* a signal ends it, with EINTR */
        if (size != sizeof number) {
            errno = size < 0 ? errno : EIO;
            return -1;
        }
        pthread_mutex_lock(&nic->lock);
        cq = cq_by_number(nic, number);
        if (cq)
            cq->unacknowledged++;
        pthread_mutex_unlock(&nic->lock);
    } while (!cq);
    *found = &cq->cq;
    *cq_context = cq->cq.cq_context;
    return 0;
}

PUBLIC void ibv_ack_cq_events(struct ibv_cq *verbs, unsigned int count)
{
    struct nic *nic = nic_of(verbs->context);
    struct mrc_cq *cq = (struct mrc_cq *)verbs;
    pthread_mutex_lock(&nic->lock);
    if (count > cq->unacknowledged)
        log_line(LOG_WARN, "%u events acknowledged of %u that were got", count, cq->unacknowledged);
    cq->unacknowledged -= count < cq->unacknowledged ? count : cq->unacknowledged;
    pthread_mutex_unlock(&nic->lock);
}
