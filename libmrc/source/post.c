/* Work requests: lists of them by ibv_post_send, or built call by call (ibv_wr_*). */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"

/* Work requests on their way into one message. */
struct batch {
    struct head head;
    struct request_row rows[ROWS_MAX];
};

static int flush(struct nic *nic, struct batch *batch, uint32_t id)
{
    if (!batch->head.rows)
        return 0;
    batch->head.kind = KIND_POST;
    batch->head.id = id;
    int error = uverbs_send(nic, batch, sizeof batch->head + batch->head.rows * sizeof *batch->rows);
    batch->head.rows = 0;
    return error;
}

/* The bytes of a write of one range or none. A write of no bytes has no memory: its range and keys are not checked. */
static uint32_t length_of(const struct ibv_send_wr *wr)
{
    return wr->num_sge ? wr->sg_list->length : 0;
}

static bool is_inline(const struct ibv_send_wr *wr)
{
    return wr->send_flags & IBV_SEND_INLINE && length_of(wr);
}

/* Whether a request can be posted after `ahead` others that are not counted yet; copies its bytes for the agent if so. */
static int prepare_send(struct nic *nic, const struct mrc_qp *qp, const struct ibv_send_wr *wr, unsigned int ahead)
{
    if (qp->verbs.state != IBV_QPS_RTS && qp->verbs.state != IBV_QPS_SQD && qp->verbs.state != IBV_QPS_ERR)
        return refuse(EINVAL, "a write on a queue pair in state %d: writes can be posted in RTS and SQD only", qp->verbs.state);
    if (wr->opcode != IBV_WR_RDMA_WRITE && wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
        return refuse(EOPNOTSUPP, "opcode %d of a work request: MRC carries RDMA writes, with and without immediate", wr->opcode);
    if (wr->num_sge != 0 && wr->num_sge != 1)
        return refuse(EINVAL, "a write takes one range or none (%d ranges given)", wr->num_sge);
    if (wr->send_flags & ~(unsigned int)(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE))
        return refuse(EINVAL, "send flags %#x: SIGNALED, SOLICITED and INLINE are offered (no FENCE)", wr->send_flags);
    if (is_inline(wr) && length_of(wr) > qp->made.cap.max_inline_data)
        return refuse(EINVAL, "%u bytes of inline data; the queue pair was made for %u (max_inline_data)", length_of(wr),
                      qp->made.cap.max_inline_data);
    if (qp->sends + ahead >= qp->made.cap.max_send_wr)
        return ENOMEM;
    if (!length_of(wr))
        return 0;
    if (wr->wr.rdma.remote_addr + (wr->sg_list->length - 1) < wr->wr.rdma.remote_addr)
        return refuse(EINVAL, "remote address and length do not fit 64 bits");
    if (is_inline(wr))
        return 0;
    struct region *region = region_of(nic, wr->sg_list); /* none: its completion will say so */
    if (!region)
        log_line(LOG_WARN, "%u bytes from %#lx on are in no region with lkey %#x: a local protection error", length_of(wr),
                 (unsigned long)wr->sg_list->addr, wr->sg_list->lkey);
    else if (region->mr.pd != qp->verbs.pd &&
             strictly(EINVAL, "lkey %#x is of another protection domain than the queue pair", wr->sg_list->lkey))
        return 0;
    return !region ? 0 : region_load(region, wr->sg_list->addr, wr->sg_list->length);
}

static void add_send(struct nic *nic, struct mrc_qp *qp, const struct ibv_send_wr *wr, struct batch *batch)
{
    bool signaled = wr->send_flags & IBV_SEND_SIGNALED || qp->made.sq_sig_all;
    bool immediate = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    bool ranged = length_of(wr) && !is_inline(wr);
    const struct region *region = ranged ? region_of(nic, wr->sg_list) : NULL;
    if (region && region->mr.pd != qp->verbs.pd && strict_mode())
        region = NULL;
    batch->rows[batch->head.rows++] = (struct request_row){
        .wr_id = wr->wr_id,
        .offset = region ? wr->sg_list->addr - region->iova : 0,
        .remote_addr = wr->wr.rdma.remote_addr,
        .qpn = qp->verbs.qp_num,
        .length = length_of(wr),
        .lkey = region ? region->mr.lkey : 0,
        .rkey = wr->wr.rdma.rkey,
        .imm_data = immediate ? ntohl(wr->imm_data) : 0,
        .opcode = immediate ? OP_WRITE_WITH_IMM : OP_WRITE,
        .flags = (uint8_t)((signaled ? 0 : FLAG_UNSIGNALED) | (ranged && !region ? FLAG_WRONG : 0) |
                           (immediate && wr->send_flags & IBV_SEND_SOLICITED ? FLAG_SOLICITED : 0)),
    };
    qp->sends++;
}

/* An inline write is a message by itself, with its bytes behind the row: they are of no region, and are the program's
 * again when this returns. `lost` is the errno of a connection that is. */
static int send_inline(struct nic *nic, struct mrc_qp *qp, const struct ibv_send_wr *wr, struct batch *batch, int *lost)
{
    uint32_t length = length_of(wr);
    int error = own_read(&batch->rows[1], (const void *)(uintptr_t)wr->sg_list->addr, length);
    if (error)
        return refuse(error, "%u bytes of inline data at %#lx cannot be read", length, (unsigned long)wr->sg_list->addr);
    add_send(nic, qp, wr, batch);
    batch->head.kind = KIND_INLINE;
    batch->head.id = 0;
    *lost = uverbs_send(nic, batch, sizeof batch->head + sizeof *batch->rows + length);
    batch->head.rows = 0;
    return 0;
}

/* Posts a list up to its first wrong request, or with `whole` all of it or nothing. */
static int post_send(struct mrc_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, bool whole)
{
    struct nic *nic = nic_of(qp->verbs.context);
    struct batch batch; /* rows are written one by one: to clear them all costs more than all else here */
    batch.head = (struct head){0};
    struct ibv_send_wr *unsent = wr; /* the first that the agent has not got */
    unsigned int ahead = 0;
    pthread_mutex_lock(&nic->lock);
    int error = nic->fd < 0 ? EIO : 0, lost = 0;
    for (const struct ibv_send_wr *one = whole ? wr : NULL; one && !error; one = one->next)
        error = prepare_send(nic, qp, one, ahead++);
    for (; wr && !error && !lost; wr = wr->next) {
        if (!whole && (error = prepare_send(nic, qp, wr, 0)))
            break;
        bool alone = is_inline(wr);
        if (alone && !(lost = flush(nic, &batch, 0))) {
            unsent = wr;
            if ((error = send_inline(nic, qp, wr, &batch, &lost)))
                break;
        } else if (!alone) {
            add_send(nic, qp, wr, &batch);
            if (batch.head.rows == ROWS_MAX)
                lost = flush(nic, &batch, 0);
        }
        if (!lost && !batch.head.rows)
            unsent = wr->next;
    }
    if (!lost)
        lost = flush(nic, &batch, 0);
    pthread_mutex_unlock(&nic->lock);
    if (bad && (error || lost))
        *bad = lost ? unsent : wr;
    return lost ? lost : error;
}

int pair_post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    return post_send(pair_of(verbs), wr, bad, false);
}

/* One batch at a time waits for its answer: the answer of another one would be none that was asked for. */
static int flush_and_wait(struct nic *nic, struct batch *batch)
{
    uint32_t id = uverbs_id(nic);
    int error = flush(nic, batch, id);
    return error ? error : uverbs_await(nic, id, "post_recv");
}

/* MRC has no RNR: a receive must be in force before the peer is told that it may write, so this waits until it is. */
int pair_post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct nic *nic = nic_of(verbs->context);
    struct mrc_qp *qp = pair_of(verbs);
    struct batch batch;
    batch.head = (struct head){0};
    struct ibv_recv_wr *unsent = wr; /* the first that the agent has not got */
    int error = 0, lost = 0;
    pthread_mutex_lock(&nic->lock);
    if (nic->fd < 0)
        error = EIO;
    else if (qp->verbs.state == IBV_QPS_RESET)
        error = refuse(EINVAL, "a receive on a queue pair in RESET: it can be posted from INIT on");
    for (; wr && !error && !lost; wr = wr->next) {
        if (qp->receives >= qp->made.cap.max_recv_wr) {
            error = ENOMEM;
            break;
        }
        batch.rows[batch.head.rows++] = (struct request_row){.wr_id = wr->wr_id, .qpn = verbs->qp_num, .opcode = OP_RECV};
        qp->receives++;
        if (batch.head.rows == ROWS_MAX && !(lost = flush_and_wait(nic, &batch)))
            unsent = wr->next;
    }
    if (!lost && batch.head.rows)
        lost = flush_and_wait(nic, &batch);
    pthread_mutex_unlock(&nic->lock);
    if (bad && (error || lost))
        *bad = lost ? unsent : wr;
    return lost ? lost : error;
}

/* --- the requests that ibv_wr_* build: kept until ibv_wr_complete posts them ------------------------------------- */

static void start(struct ibv_qp_ex *extended)
{
    struct mrc_qp *qp = pair_of(&extended->qp_base);
    pthread_mutex_lock(&qp->verbs.mutex); /* until it is completed or aborted */
    qp->built_count = 0;
    qp->built_error = 0;
}

static void leave(struct ibv_qp_ex *extended)
{
    pthread_mutex_unlock(&extended->qp_base.mutex);
}

static void build(struct ibv_qp_ex *extended, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
    struct mrc_qp *qp = pair_of(&extended->qp_base);
    if (qp->built_count == qp->built_room) {
        unsigned int room = qp->built_room ? 2 * qp->built_room : 16;
        struct ibv_send_wr *wrs = realloc(qp->built_wrs, room * sizeof *wrs);
        if (wrs)
            qp->built_wrs = wrs;
        struct ibv_sge *sges = wrs ? realloc(qp->built_sges, room * sizeof *sges) : NULL;
        if (sges)
            qp->built_sges = sges;
        uint8_t *bytes = sges ? realloc(qp->built_bytes, room * qp->made.cap.max_inline_data + 1) : NULL;
        if (bytes)
            qp->built_bytes = bytes;
        if (!bytes) {
            qp->built_error = ENOMEM;
            return;
        }
        qp->built_room = room;
    }
    qp->built_sges[qp->built_count] = (struct ibv_sge){0};
    qp->built_wrs[qp->built_count++] = (struct ibv_send_wr){
        .wr_id = extended->wr_id,
        .opcode = opcode,
        .send_flags = extended->wr_flags,
        .imm_data = imm,
        .wr.rdma = {remote_addr, rkey},
    };
}

static void build_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
    build(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void build_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
    build(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm);
}

static void set_sge(struct ibv_qp_ex *extended, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct mrc_qp *qp = pair_of(&extended->qp_base);
    if (qp->built_count && !qp->built_error)
        qp->built_sges[qp->built_count - 1] = (struct ibv_sge){addr, length, lkey};
}

static void set_sge_list(struct ibv_qp_ex *extended, size_t count, const struct ibv_sge *list)
{
    if (count == 1)
        set_sge(extended, list->lkey, list->addr, list->length);
    else if (count)
        pair_of(&extended->qp_base)->built_error = refuse(EINVAL, "a write takes one range or none (%zu given)", count);
}

static void set_inline_list(struct ibv_qp_ex *extended, size_t count, const struct ibv_data_buf *list)
{
    struct mrc_qp *qp = pair_of(&extended->qp_base);
    uint32_t room = qp->made.cap.max_inline_data, length = 0;
    if (!qp->built_count || qp->built_error)
        return;
    struct ibv_send_wr *wr = &qp->built_wrs[qp->built_count - 1];
    uint8_t *bytes = qp->built_bytes + (size_t)(qp->built_count - 1) * room;
    for (; count; count--, list++) {
        if (list->length > room - length) {
            qp->built_error = refuse(EINVAL, "inline data; the queue pair was made for %u bytes (max_inline_data)", room);
            return;
        }
        if (list->length)
            memcpy(bytes + length, list->addr, list->length);
        length += (uint32_t)list->length;
    }
    wr->send_flags |= IBV_SEND_INLINE;
    qp->built_sges[qp->built_count - 1] = (struct ibv_sge){.length = length};
}

static void set_inline(struct ibv_qp_ex *extended, void *addr, size_t length)
{
    set_inline_list(extended, 1, &(struct ibv_data_buf){addr, length});
}

static int complete(struct ibv_qp_ex *extended)
{
    struct mrc_qp *qp = pair_of(&extended->qp_base);
    for (unsigned int at = 0; at < qp->built_count; at++) {
        qp->built_wrs[at].sg_list = &qp->built_sges[at];
        qp->built_wrs[at].num_sge = 1;
        if (qp->built_wrs[at].send_flags & IBV_SEND_INLINE && !qp->built_sges[at].addr)
            qp->built_sges[at].addr = (uintptr_t)qp->built_bytes + (uint64_t)at * qp->made.cap.max_inline_data;
        qp->built_wrs[at].next = at + 1 < qp->built_count ? &qp->built_wrs[at + 1] : NULL;
    }
    int error = qp->built_error;
    if (!error && qp->built_count)
        error = post_send(qp, qp->built_wrs, NULL, true);
    leave(extended);
    return error;
}

void pair_extend(struct mrc_qp *qp, uint64_t send_ops_flags)
{
    struct ibv_qp_ex *extended = &qp->extended;
    extended->wr_start = start;
    extended->wr_complete = complete;
    extended->wr_abort = leave;
    extended->wr_set_sge = set_sge;
    extended->wr_set_sge_list = set_sge_list;
    extended->wr_set_inline_data = set_inline;
    extended->wr_set_inline_data_list = set_inline_list;
    if (send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE)
        extended->wr_rdma_write = build_write;
    if (send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
        extended->wr_rdma_write_imm = build_write_imm;
}
