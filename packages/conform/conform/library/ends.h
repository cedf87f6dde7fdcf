/* Two ends of a connection in this process, and how a case says what it saw. */
#include <mrc.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RULE(rule, what) judge(rule, (what), #what, __LINE__)
/* What a case needs and another one judges. */
#define NEED(what) (void)((what) || (printf("stopped\t%s (line %d, errno %d)\n", #what, __LINE__, errno), exit(3), 0))

enum { LENGTH = 1 << 18, GUARD = 64, DEPTH = 64, MTU = 1024, NOTHING = 255 };

struct end {
    struct ibv_context *verbs;
    struct mrc_context *context;
    struct ibv_pd *pd;
    struct mrc_comp_channel *channel;
    struct mrc_cq *sent, *arrived;
    struct mrc_qp *qp;
    uint8_t *memory; /* with guards on either side */
    struct ibv_mr *mr;
    uint32_t psn;
};

static int patience_ms;

static void judge(const char *rule, bool right, const char *what, int line)
{
    printf("%s\t%s\t%s (line %d, errno %d)\n", rule, right ? "pass" : "fail", what, line, errno);
    fflush(stdout);
}

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The next completion; one of status NOTHING if none comes. */
static struct ibv_wc next(struct mrc_cq *cq)
{
    struct ibv_wc wc;
    long until = now_ms() + patience_ms;
    while (now_ms() < until) {
        int found = mrc_poll_cq(cq, 1, &wc);
        if (found == 1)
            return wc;
        if (found < 0)
            break;
    }
    return (struct ibv_wc){.status = (enum ibv_wc_status)NOTHING};
}

static bool readable(int fd, int wait_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, wait_ms) == 1;
}

static struct mrc_qp *make_qp(struct end *end, uint32_t inlined)
{
    struct mrc_qp_init_attr attr = {.send_cq = end->sent, .recv_cq = end->arrived, .pd = end->pd,
                                    .cap = {DEPTH, DEPTH, 1, 1, inlined}};
    struct mrc_qp *qp = mrc_create_qp(end->context, &attr);
    return qp && attr.cap.max_inline_data >= inlined ? qp : NULL;
}

static void open_end(struct end *end, const char *name)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int at = 0; at < count; at++)
        if (!strcmp(ibv_get_device_name(list[at]), name))
            end->verbs = ibv_open_device(list[at]);
    ibv_free_device_list(list);
    NEED(end->verbs);
    NEED((end->context = mrc_create_context(end->verbs, &(struct mrc_context_attr){0})));
    NEED((end->pd = ibv_alloc_pd(end->verbs)) && !mrc_create_comp_channel(end->context, &end->channel));
    NEED((end->sent = mrc_create_cq(end->context, 2 * DEPTH, NULL, NULL, 0)));
    NEED((end->arrived = mrc_create_cq(end->context, 2 * DEPTH, end, end->channel, 0)));
    NEED((end->qp = make_qp(end, 0)));
    NEED((end->memory = calloc(1, LENGTH + 2 * GUARD)));
    end->memory += GUARD;
    NEED((end->mr = ibv_reg_mr(end->pd, end->memory, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
    end->psn = (uint32_t)rand() & 0xffffff;
}

static int step(struct mrc_qp *qp, enum ibv_qp_state state)
{
    return mrc_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = state}, IBV_QP_STATE, NULL, 0);
}

static enum ibv_qp_state state_of(struct mrc_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_UNKNOWN};
    struct mrc_qp_init_attr made;
    struct mrc_qp_attr mrc;
    return mrc_query_qp(qp, &attr, IBV_QP_STATE, &mrc, 0, &made) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

static int begin(struct mrc_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    return mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, NULL, 0);
}

static void connect_qp(struct mrc_qp *qp, const struct end *own, const struct end *peer, struct mrc_qp *other)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .rq_psn = peer->psn};
    NEED(!begin(qp) && !mrc_get_qpn(other, &attr.dest_qp_num));
    attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
    NEED(!ibv_query_gid(peer->verbs, 1, 0, &attr.ah_attr.grh.dgid));
    NEED(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU, NULL, 0));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = own->psn};
    NEED(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0));
}

static void connect_ends(struct end *ends)
{
    connect_qp(ends[0].qp, &ends[0], &ends[1], ends[1].qp);
    connect_qp(ends[1].qp, &ends[1], &ends[0], ends[0].qp);
}

static void reconnect(struct end *ends)
{
    for (int side = 0; side < 2; side++) {
        NEED(!step(ends[side].qp, IBV_QPS_RESET));
        ends[side].psn = (ends[side].psn + 0x400000) & 0xffffff;
    }
    connect_ends(ends);
}

/* A write from one end's memory to the same place of the other's; `imm` below 0: without immediate. */
static struct ibv_send_wr request(const struct end *to, uint64_t wr_id, uint64_t at, struct ibv_sge *range, int flags, int imm)
{
    struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = range, .num_sge = 1, .send_flags = (unsigned int)flags};
    wr.opcode = imm < 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = htonl((uint32_t)imm);
    wr.wr.rdma.remote_addr = (uintptr_t)to->memory + at;
    wr.wr.rdma.rkey = to->mr->rkey;
    return wr;
}

static int post(struct end *from, const struct end *to, uint64_t wr_id, uint64_t at, uint32_t length, int flags, int imm)
{
    struct ibv_sge range = {(uintptr_t)from->memory + at, length, from->mr->lkey};
    struct ibv_send_wr *bad, wr = request(to, wr_id, at, &range, flags, imm);
    return mrc_post_send(from->qp, &wr, &bad);
}

static int receive(struct end *end, uint64_t wr_id)
{
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id};
    return mrc_post_recv(end->qp, &wr, &bad);
}

static void fill(struct end *ends)
{
    for (int at = 0; at < LENGTH; at++)
        ends[0].memory[at] = (uint8_t)rand() | 1;
    memset(ends[1].memory - GUARD, 0, LENGTH + 2 * GUARD);
}

/* Whether the second end has exactly these bytes of the first. */
static bool arrived(const struct end *ends, uint32_t at, uint32_t length)
{
    for (int byte = -GUARD; byte < LENGTH + GUARD; byte++) {
        bool written = byte >= (int)at && byte < (int)(at + length);
        if (ends[1].memory[byte] != (written ? ends[0].memory[byte] : 0))
            return false;
    }
    return true;
}
