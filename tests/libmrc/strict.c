/* Calls that a NIC refuses, and the lab takes unless it is strict. Arguments: case, two devices, and "strict" or "lenient". */
#include "ends.h"

static bool strict;

/* A call that hardware refuses with `error`, and the lab takes where it is not strict. */
#define REFUSED(call, error) CHECK((call) == (strict ? (error) : 0))

enum { INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
       RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
       RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC };

static struct ibv_qp_attr attributes(enum ibv_qp_state state, const struct end *own, const struct end *peer, struct ibv_qp *to)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                               .path_mtu = IBV_MTU_1024, .rq_psn = peer->psn, .sq_psn = own->psn, .min_rnr_timer = 12,
                               .max_rd_atomic = 1, .max_dest_rd_atomic = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    attr.dest_qp_num = to->qp_num;
    attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
    CHECK(!ibv_query_gid(peer->verbs, 1, 0, &attr.ah_attr.grh.dgid));
    return attr;
}

static struct ibv_qp *plain(const struct end *end, struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr made = {.send_cq = cq, .recv_cq = (struct ibv_cq *)end->arrived, .cap = {DEPTH, DEPTH, 1, 1, 0},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(pd, &made);
    CHECK(qp);
    return qp;
}

/* RESET to RTS as verbs ask for it, which is never refused. */
static void rise(struct ibv_qp *qp, const struct end *own, const struct end *peer, struct ibv_qp *to, unsigned int access)
{
    struct ibv_qp_attr attr = attributes(IBV_QPS_INIT, own, peer, to);
    attr.qp_access_flags = access;
    CHECK(!ibv_modify_qp(qp, &attr, INIT));
    attr.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(qp, &attr, RTR));
    attr.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(qp, &attr, RTS));
}

/* Each attribute that a step needs, left out; and one that it does not take. */
static void masks(struct end *ends)
{
    const struct {
        enum ibv_qp_state state;
        int mask, odd;
    } steps[] = {{IBV_QPS_INIT, INIT, IBV_QP_SQ_PSN}, {IBV_QPS_RTR, RTR, IBV_QP_TIMEOUT}, {IBV_QPS_RTS, RTS, IBV_QP_PKEY_INDEX}};
    struct ibv_qp *peer = plain(&ends[1], ends[1].pd, (struct ibv_cq *)ends[1].sent);
    for (size_t step = 0; step < 3; step++)
        for (int bit = 0; bit < 20; bit++) {
            bool left_out = steps[step].mask >> bit & 1 && 1 << bit != IBV_QP_STATE;
            if (!left_out && 1 << bit != steps[step].odd)
                continue;
            if (!strict && (1 << bit == IBV_QP_AV || 1 << bit == IBV_QP_DEST_QPN))
                continue; /* the lab cannot do without */
            struct ibv_qp *qp = plain(&ends[0], ends[0].pd, (struct ibv_cq *)ends[0].sent);
            struct ibv_qp_attr attr = attributes(IBV_QPS_INIT, &ends[0], &ends[1], peer);
            for (size_t before = 0; before < step; before++) {
                attr.qp_state = steps[before].state;
                CHECK(!ibv_modify_qp(qp, &attr, steps[before].mask));
            }
            attr.qp_state = steps[step].state;
            REFUSED(ibv_modify_qp(qp, &attr, steps[step].mask ^ 1 << bit), EINVAL);
            CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &(struct ibv_qp_init_attr){0}));
            CHECK(attr.qp_state == (strict ? steps[step].state - 1 : steps[step].state)); /* nothing was modified */
            CHECK(!ibv_destroy_qp(qp));
        }
    struct ibv_qp *qp = plain(&ends[0], ends[0].pd, (struct ibv_cq *)ends[0].sent);
    struct ibv_qp_attr attr = attributes(IBV_QPS_INIT, &ends[0], &ends[1], peer);
    CHECK(!ibv_modify_qp(qp, &attr, INIT));
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.port_num = 0;
    REFUSED(ibv_modify_qp(qp, &attr, RTR), EINVAL);
    attr.qp_state = IBV_QPS_RESET;
    attr.cur_qp_state = strict ? IBV_QPS_INIT : IBV_QPS_RTR; /* where it is */
    REFUSED(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_ERR;
    REFUSED(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
    CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer));
}

/* Steps that verbs have, with each attribute that they take: never refused. */
static void legal(struct end *ends)
{
    struct ibv_qp *qp = plain(&ends[0], ends[0].pd, (struct ibv_cq *)ends[0].sent);
    struct ibv_qp_attr attr = attributes(IBV_QPS_RESET, &ends[0], &ends[1], qp);
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_INIT;
    CHECK(!ibv_modify_qp(qp, &attr, INIT));
    CHECK(!ibv_modify_qp(qp, &attr, INIT) && !ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(qp, &attr, RTR | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX));
    attr.qp_state = IBV_QPS_RTS;
    attr.cur_qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(qp, &attr, RTS | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER));
    attr.cur_qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER));
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_ERR;
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE) && !ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RESET;
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE) && !ibv_modify_qp(qp, &attr, IBV_QP_STATE) && !ibv_destroy_qp(qp));
}

static enum ibv_wc_status written(struct ibv_qp *qp, const struct end *from, const struct end *to, uint32_t lkey, uint32_t rkey,
                                  uint32_t length)
{
    struct ibv_sge range = {(uintptr_t)from->memory, length, lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)to->memory;
    wr.wr.rdma.rkey = rkey;
    CHECK(!ibv_post_send(qp, &wr, &bad));
    return next(from->sent).status;
}

/* A queue pair whose access flags have no REMOTE_WRITE, from the beginning or later: an invalid request of the writer. */
static void access_flags(struct end *ends)
{
    for (int round = 0; round < 4; round++) {
        struct ibv_qp *from = plain(&ends[0], ends[0].pd, (struct ibv_cq *)ends[0].sent);
        struct ibv_qp *to = plain(&ends[1], ends[1].pd, (struct ibv_cq *)ends[1].sent);
        rise(from, &ends[0], &ends[1], to, 0); /* a queue pair that only writes needs no access */
        rise(to, &ends[1], &ends[0], from, round % 2 ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ);
        CHECK(round % 2 == 0 || written(from, &ends[0], &ends[1], ends[0].mr->lkey, ends[1].mr->rkey, 9000) == IBV_WC_SUCCESS);
        struct ibv_qp_attr attr = {.qp_access_flags = 0};
        CHECK(!ibv_modify_qp(to, &attr, IBV_QP_ACCESS_FLAGS));
        enum ibv_wc_status found = written(from, &ends[0], &ends[1], ends[0].mr->lkey, ends[1].mr->rkey, round < 2 ? 9000 : 0);
        CHECK(found == (strict ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS));
        CHECK(!ibv_destroy_qp(from) && !ibv_destroy_qp(to));
    }
}

/* Memory of another protection domain, here and there. */
static void domains(struct end *ends)
{
    struct ibv_pd *others[] = {ibv_alloc_pd(ends[0].verbs), ibv_alloc_pd(ends[1].verbs)};
    for (int side = 0; side < 2; side++) {
        struct ibv_qp *from = plain(&ends[0], ends[0].pd, (struct ibv_cq *)ends[0].sent);
        struct ibv_qp *to = plain(&ends[1], ends[1].pd, (struct ibv_cq *)ends[1].sent);
        struct ibv_mr *mr = ibv_reg_mr(others[side], ends[side].memory, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        CHECK(mr);
        rise(from, &ends[0], &ends[1], to, IBV_ACCESS_REMOTE_WRITE);
        rise(to, &ends[1], &ends[0], from, IBV_ACCESS_REMOTE_WRITE);
        CHECK(written(from, &ends[0], &ends[1], ends[0].mr->lkey, ends[1].mr->rkey, 9000) == IBV_WC_SUCCESS);
        uint32_t lkey = side ? ends[0].mr->lkey : mr->lkey, rkey = side ? mr->rkey : ends[1].mr->rkey;
        enum ibv_wc_status found = written(from, &ends[0], &ends[1], lkey, rkey, 9000);
        CHECK(found == (!strict ? IBV_WC_SUCCESS : side ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR));
        CHECK(!ibv_dereg_mr(mr) && !ibv_destroy_qp(from) && !ibv_destroy_qp(to));
    }
    CHECK(!ibv_dealloc_pd(others[0]) && !ibv_dealloc_pd(others[1]));
}

/* A queue of four places takes four completions that were not polled, and not a fifth. */
static void overrun(struct end *ends)
{
    struct ibv_cq *cq = ibv_create_cq(ends[0].verbs, 4, NULL, NULL, 0);
    struct pollfd one = {.fd = ends[0].verbs->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    struct ibv_wc wc;
    CHECK(cq && cq->cqe >= 4);
    struct ibv_qp *from = plain(&ends[0], ends[0].pd, cq), *to = plain(&ends[1], ends[1].pd, (struct ibv_cq *)ends[1].sent);
    rise(from, &ends[0], &ends[1], to, IBV_ACCESS_REMOTE_WRITE);
    rise(to, &ends[1], &ends[0], from, IBV_ACCESS_REMOTE_WRITE);
    for (int round = 0; round < 3; round++) {
        struct ibv_sge range = {(uintptr_t)ends[0].memory, 100, ends[0].mr->lkey};
        struct ibv_send_wr *bad, wr = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
        wr.wr.rdma.remote_addr = (uintptr_t)ends[1].memory;
        wr.wr.rdma.rkey = ends[1].mr->rkey;
        struct ibv_recv_wr *unfit, receive = {.wr_id = 7};
        uint64_t last = 3 + (round == 2);
        CHECK(!ibv_post_recv(to, &receive, &unfit));
        for (wr.wr_id = 0; wr.wr_id <= last; wr.wr_id++) {
            wr.opcode = wr.wr_id == last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
            CHECK(!ibv_post_send(from, &wr, &bad));
        }
        /* The last one has arrived, so its acknowledgement goes before that of a write of another queue. */
        CHECK(next(ends[1].arrived).wr_id == 7);
        CHECK(!post(&ends[0], &ends[1], 9, 0, 1, IBV_SEND_SIGNALED, -1) && next(ends[0].sent).wr_id == 9);
        for (uint64_t number = 0; number < 4; number++) {
            while (!ibv_poll_cq(cq, 1, &wc))
                ;
            CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == number);
        }
    }
    if (!strict) {
        CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == 4 && poll(&one, 1, 0) == 0);
    } else {
        CHECK(ibv_poll_cq(cq, 1, &wc) == 0 && poll(&one, 1, 20000) == 1 && !ibv_get_async_event(ends[0].verbs, &event));
        CHECK(event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq);
        ibv_ack_async_event(&event);
        struct ibv_qp_attr attr;
        CHECK(!ibv_query_qp(from, &attr, IBV_QP_STATE, &(struct ibv_qp_init_attr){0}) && attr.qp_state == IBV_QPS_ERR);
    }
    CHECK(!ibv_destroy_qp(from) && !ibv_destroy_qp(to) && !ibv_destroy_cq(cq));
}

/* Memory that is not there cannot be pinned. */
static void unmapped(struct end *ends)
{
    uint8_t *mapped = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED && !munmap(mapped + PAGE, PAGE));
    for (int whole = 0; whole < 2; whole++) {
        struct ibv_mr *mr = ibv_reg_mr(ends[0].pd, mapped + 100, whole ? 3 * PAGE : PAGE - 100, IBV_ACCESS_LOCAL_WRITE);
        CHECK(whole && strict ? !mr && errno == EFAULT : mr && !ibv_dereg_mr(mr));
    }
}

/* Of mrc_modify_qp, mrc.h says which of verbs' attributes it does not have; both public programs give some of them. */
static void mrc(struct end *ends)
{
    struct mrc_qp *qp = make_qp(&ends[0], 0), *peer = make_qp(&ends[1], 0);
    struct ibv_qp_attr attr = attributes(IBV_QPS_INIT, &ends[0], &ends[1], *(struct ibv_qp **)peer);
    REFUSED(mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT, NULL, 0), EINVAL);
    CHECK(strict || !step(qp, IBV_QPS_RESET));
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, NULL, 0));
    CHECK(!step(qp, IBV_QPS_RESET) && !mrc_modify_qp(qp, &attr, INIT, NULL, 0));
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.port_num = 0;
    REFUSED(mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU, NULL, 0), EINVAL);
    CHECK(!strict || !mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN, NULL, 0));
    attr.qp_state = IBV_QPS_RTS;
    REFUSED(mrc_modify_qp(qp, &attr, IBV_QP_STATE, NULL, 0), EINVAL);
    CHECK(!strict || !mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
                                    &(struct mrc_qp_attr){.timeout = 18}, MRC_QP_TIMEOUT));
    CHECK(!mrc_destroy_qp(qp) && !mrc_destroy_qp(peer));
}

int main(int count, char **words)
{
    static const struct end_case cases[] = {{"masks", masks},     {"legal", legal},       {"access", access_flags}, {"domains", domains},
                                            {"overrun", overrun}, {"unmapped", unmapped}, {"mrc", mrc}};
    static const uint32_t psns[] = {0x123456, 0xfffffe};
    CHECK(count == 5);
    strict = !strcmp(words[4], "strict");
    return run_case(cases, sizeof cases / sizeof *cases, 4, words, psns);
}
