/* What verbs promise when something goes wrong, and of inline data: one case per run. Arguments: case, two devices. */
#include "ends.h"

/* Inline bytes are copied when they are posted, from memory that need not be registered. */
static void inlined(struct end *ends)
{
    enum { GRANTED = 220, MOST = 1024 };
    uint8_t own[GRANTED + 1];
    struct mrc_qp_init_attr attr = {.send_cq = ends[0].sent, .recv_cq = ends[0].arrived, .pd = ends[0].pd,
                                    .cap = {DEPTH, DEPTH, 1, 1, MOST + 1}};
    CHECK(!mrc_create_qp(ends[0].context, &attr) && errno == EINVAL); /* never less than was asked for */
    attr.cap.max_inline_data = GRANTED;
    struct end from = ends[0], to = ends[1];
    from.qp = mrc_create_qp(ends[0].context, &attr);
    to.qp = make_qp(&to, 0);
    CHECK(from.qp && attr.cap.max_inline_data == GRANTED);
    struct ibv_qp_attr found;
    struct mrc_qp_init_attr made;
    CHECK(!mrc_query_qp(from.qp, &found, IBV_QP_CAP, NULL, 0, &made) && found.cap.max_inline_data == GRANTED);
    connect_qp(from.qp, &from, &to, to.qp);
    connect_qp(to.qp, &to, &from, from.qp);

    struct ibv_sge range = {(uintptr_t)own, 0, 0xdead};
    struct ibv_send_wr *bad, wr = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma.rkey = to.mr->rkey};
    for (uint32_t number = 0; number < DEPTH; number++) {
        memset(own, (int)number + 1, sizeof own);
        range.length = number < DEPTH / 2 ? number : GRANTED;
        wr.wr_id = number;
        wr.send_flags = IBV_SEND_INLINE | (number % 3 ? IBV_SEND_SIGNALED : 0);
        wr.wr.rdma.remote_addr = (uintptr_t)to.memory + number * 1000;
        CHECK(!mrc_post_send(from.qp, &wr, &bad));
    }
    memset(own, 0xff, sizeof own);
    for (uint32_t number = 0; number < DEPTH; number++)
        if (number % 3)
            CHECK(next(from.sent).status == IBV_WC_SUCCESS);
    wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED; /* the last one was unsignaled: this tells of its end */
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = htonl(7);
    CHECK(!post_receive(&to, 1) && !mrc_post_send(from.qp, &wr, &bad) && next(from.sent).status == IBV_WC_SUCCESS);
    struct ibv_wc wc = next(to.arrived);
    CHECK(ntohl(wc.imm_data) == 7 && wc.byte_len == GRANTED && to.memory[(DEPTH - 1) * 1000 + GRANTED - 1] == 0xff);
    for (uint32_t number = 0; number < DEPTH - 1; number++)
        for (uint32_t byte = 0; byte < 1000; byte++)
            CHECK(to.memory[number * 1000 + byte] ==
                  (byte < (number < DEPTH / 2 ? number : GRANTED) ? (uint8_t)(number + 1) : 0));

    range.length = GRANTED + 1;
    CHECK(mrc_post_send(from.qp, &wr, &bad) == EINVAL && bad == &wr);
    range.length = 1;
    range.addr = 8; /* not mapped */
    CHECK(mrc_post_send(from.qp, &wr, &bad) == EFAULT && bad == &wr);
    range.addr = (uintptr_t)own;
    CHECK(mrc_post_send(ends[0].qp, &wr, &bad) == EINVAL); /* that queue pair was not granted any */

    /* Built requests: the bytes may change before they are completed; some have ranges. */
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(*(struct ibv_qp **)from.qp);
    from.memory[0] = 99;
    ibv_wr_start(qp);
    for (uint32_t number = 0; number < 20; number++) {
        qp->wr_id = number;
        qp->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(qp, to.mr->rkey, (uintptr_t)to.memory + 4 * number);
        memset(own, (int)number + 50, sizeof own);
        struct ibv_data_buf parts[] = {{own, 1}, {NULL, 0}, {own + 3, 1}};
        if (number % 3 == 0)
            ibv_wr_set_inline_data(qp, own, 1);
        else if (number % 3 == 1)
            ibv_wr_set_inline_data_list(qp, 3, parts);
        else
            ibv_wr_set_sge(qp, from.mr->lkey, (uintptr_t)from.memory, 1);
    }
    CHECK(!ibv_wr_complete(qp));
    for (uint32_t number = 0; number < 20; number++)
        CHECK(next(from.sent).status == IBV_WC_SUCCESS);
    for (uint32_t number = 0; number < 20; number++)
        for (uint32_t byte = 0; byte < 2; byte++)
            if (byte <= (number % 3 == 1))
                CHECK(to.memory[4 * number + byte] == (number % 3 == 2 ? 99 : 50 + number));
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, to.mr->rkey, (uintptr_t)to.memory);
    ibv_wr_set_inline_data(qp, own, GRANTED + 1);
    CHECK(ibv_wr_complete(qp) == EINVAL);
    CHECK(!mrc_destroy_qp(from.qp) && !mrc_destroy_qp(to.qp));
}

/* Memory that is not the program's own: a completion with that error, behind all before it, and a queue pair in ERR that
 * lives again after RESET, as often as it takes. */
static void wrong(struct end *ends)
{
    const struct ibv_mr own = *ends[0].mr;
    const struct ibv_sge ranges[] = {
        {(uintptr_t)ends[0].memory, 64, own.lkey + 1},         {(uintptr_t)ends[0].memory + LENGTH, 1, own.lkey},
        {(uintptr_t)ends[0].memory - 1, 1, own.lkey},          {(uintptr_t)ends[0].memory, LENGTH + 1, own.lkey},
        {UINT64_MAX, 1, own.lkey},                             {(uintptr_t)ends[0].memory, 1, ends[1].mr->lkey ^ 0x55},
    };
    fill(&ends[0], 7);
    for (size_t at = 0; at < sizeof ranges / sizeof *ranges; at++) {
        struct ibv_sge range = ranges[at];
        struct ibv_send_wr *bad, wr = {.wr_id = 3, .sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
        wr.wr.rdma.remote_addr = (uintptr_t)ends[1].memory;
        wr.wr.rdma.rkey = ends[1].mr->rkey;
        for (uint64_t number = 1; number < 3; number++)
            CHECK(!post(&ends[0], &ends[1], number, 0, LENGTH / 2, IBV_SEND_SIGNALED, -1));
        CHECK(!mrc_post_send(ends[0].qp, &wr, &bad)); /* it is not signaled, but it fails */
        CHECK(!post(&ends[0], &ends[1], 4, LENGTH / 2, LENGTH / 2, IBV_SEND_SIGNALED, -1));
        static const enum ibv_wc_status expected[] = {IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR};
        for (uint64_t number = 1; number < 5; number++) {
            struct ibv_wc wc = next(ends[0].sent);
            CHECK(wc.status == expected[number - 1] && (number < 3 || wc.wr_id == number));
        }
        CHECK(!memcmp(ends[0].memory, ends[1].memory, LENGTH / 2) && !ends[1].memory[LENGTH / 2 + 1]);
        struct ibv_qp_attr attr;
        CHECK(!ibv_query_qp(*(struct ibv_qp **)ends[0].qp, &attr, IBV_QP_STATE, &(struct ibv_qp_init_attr){0}) && attr.qp_state == IBV_QPS_ERR);
        for (int end = 0; end < 2; end++)
            CHECK(!step(ends[end].qp, IBV_QPS_RESET));
        connect_ends(ends);
        memset(ends[1].memory, 0, LENGTH);
        CHECK(!post(&ends[0], &ends[1], 9, 0, LENGTH, IBV_SEND_SIGNALED, -1) && next(ends[0].sent).status == IBV_WC_SUCCESS);
        CHECK(!memcmp(ends[0].memory, ends[1].memory, LENGTH));
        memset(ends[1].memory, 0, LENGTH);
    }
}

static struct ibv_qp *plain(struct end *end, struct end *peer, uint32_t peer_qpn, uint32_t peer_psn, struct ibv_qp *qp)
{
    struct ibv_qp_init_attr made = {.send_cq = (struct ibv_cq *)end->sent, .recv_cq = (struct ibv_cq *)end->arrived,
                                    .cap = {DEPTH, DEPTH, 1, 1, 0}, .qp_type = IBV_QPT_DRIVER};
    if (!qp)
        return ibv_create_qp(end->pd, &made);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .rq_psn = peer_psn, .dest_qp_num = peer_qpn};
    attr.ah_attr.is_global = 1;
    CHECK(!ibv_query_gid(peer->verbs, 1, 0, &attr.ah_attr.grh.dgid));
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 3, .rnr_retry = 7, .sq_psn = end->psn};
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN));
    return qp;
}

/* A program that knows verbs only learns that its peer is gone: the peer's queue pair was destroyed, reset or has failed,
 * or its number or PSN was wrong from the beginning. Rounds after the first begin in ERR. */
static void retries(struct end *ends)
{
    struct ibv_qp *from = plain(&ends[0], NULL, 0, 0, NULL), *to = plain(&ends[1], NULL, 0, 0, NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct ibv_qp_init_attr made;
    struct ibv_send_wr *bad;
    CHECK(from && to && from->qp_type == IBV_QPT_DRIVER);
    fill(&ends[0], 8);
    for (int round = 0; round < 5; round++) {
        plain(&ends[0], &ends[1], to->qp_num + (round == 1), ends[1].psn, from);
        plain(&ends[1], &ends[0], from->qp_num, ends[0].psn + 1000 * (round == 2), to);
        CHECK(!ibv_query_qp(from, &attr, IBV_QP_TIMEOUT, &made) && attr.timeout == 14 && attr.retry_cnt == 3);
        struct ibv_sge range = {(uintptr_t)ends[0].memory, 10000, ends[0].mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
        wr.wr.rdma.remote_addr = (uintptr_t)ends[1].memory;
        wr.wr.rdma.rkey = ends[1].mr->rkey;
        if (round == 0 || round > 2) {
            CHECK(!ibv_post_send(from, &wr, &bad) && next(ends[0].sent).status == IBV_WC_SUCCESS);
            CHECK(!memcmp(ends[0].memory, ends[1].memory, 10000));
        }
        attr.qp_state = round == 3 ? IBV_QPS_ERR : IBV_QPS_RESET;
        if (round == 0 || round == 3)
            CHECK(!ibv_modify_qp(to, &attr, IBV_QP_STATE));
        if (round == 4)
            CHECK(!ibv_destroy_qp(to));
        for (wr.wr_id = 5; wr.wr_id < 7; wr.wr_id++)
            CHECK(!ibv_post_send(from, &wr, &bad));
        struct ibv_wc wc = next(ends[0].sent);
        CHECK(wc.status == IBV_WC_RETRY_EXC_ERR && wc.wr_id == 5);
        wc = next(ends[0].sent);
        CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 6);
        CHECK(!ibv_query_qp(from, &attr, IBV_QP_STATE, &made) && attr.qp_state == IBV_QPS_ERR);
        attr.qp_state = IBV_QPS_RESET;
        CHECK(!ibv_modify_qp(from, &attr, IBV_QP_STATE));
        if (round && round < 4)
            CHECK(!ibv_modify_qp(to, &attr, IBV_QP_STATE));
    }
    CHECK(!ibv_destroy_qp(from));
}

/* What happens to a queue pair or the port without a request of the program. */
static void events(struct end *ends)
{
    struct ibv_context *verbs = ends[1].verbs;
    struct pollfd one = {.fd = verbs->async_fd, .events = POLLIN};
    CHECK(poll(&one, 1, 0) == 0);
    for (int round = 0; round < 2; round++) {
        CHECK(!post(&ends[0], &ends[1], 1, LENGTH - 8, 8, IBV_SEND_SIGNALED, -1) && next(ends[0].sent).status == IBV_WC_SUCCESS);
        ends[1].memory += 1;
        CHECK(!post(&ends[0], &ends[1], 1, LENGTH - 8, 8, IBV_SEND_SIGNALED, -1));
        ends[1].memory -= 1;
        CHECK(next(ends[0].sent).status == IBV_WC_REM_ACCESS_ERR);
        CHECK(poll(&one, 1, 20000) == 1);
        if (round) {
            struct mrc_async_event event;
            CHECK(!mrc_get_async_event(ends[1].context, &event) && event.element.qp == ends[1].qp);
            CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
            mrc_ack_async_event(&event);
        } else {
            struct ibv_async_event event;
            CHECK(!ibv_get_async_event(verbs, &event) && event.element.qp == *(struct ibv_qp **)ends[1].qp);
            CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
            ibv_ack_async_event(&event);
        }
        CHECK(poll(&one, 1, 0) == 0);
        for (int end = 0; end < 2; end++)
            CHECK(!step(ends[end].qp, IBV_QPS_RESET));
        connect_ends(ends);
    }
    one.fd = ends[0].verbs->async_fd; /* the requester has a completion that says it all */
    CHECK(poll(&one, 1, 0) == 0);
    for (int on = 0; on < 2; on++) {
        struct mrc_ctl_port_attr port = {on ? MRC_CTL_PORT_ADMIN_ENABLED : MRC_CTL_PORT_ADMIN_DISABLED};
        struct ibv_async_event event;
        for (int number = 1; number <= 4; number++)
            CHECK(!mrc_ctl_modify_port(ends[0].context, number, &port, MRC_CTL_PORT_ADMIN_STATE));
        CHECK(poll(&one, 1, 20000) == 1 && !ibv_get_async_event(ends[0].verbs, &event));
        CHECK(event.event_type == (on ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR) && event.element.port_num == 1);
        CHECK(poll(&one, 1, 0) == 0);
    }
}

/* A queue pair in SQD ends what was posted before, says so once if that was asked for, and begins what it gets in RTS. */
static void drained(struct end *ends)
{
    struct ibv_qp *qp = *(struct ibv_qp **)ends[0].qp;
    struct pollfd one = {.fd = ends[0].verbs->async_fd, .events = POLLIN};
    struct ibv_qp_attr attr;
    struct ibv_wc wc;
    fill(&ends[0], 9);
    for (int round = 0; round < 4; round++) {
        bool told = round % 2;
        memset(ends[1].memory, 0, LENGTH);
        for (uint64_t number = 0; round && number < 8; number++)
            CHECK(!post(&ends[0], &ends[1], number, 0, LENGTH / 2, number % 2 ? IBV_SEND_SIGNALED : 0, -1));
        attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = told};
        CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
        CHECK(!post(&ends[0], &ends[1], 100, LENGTH / 2, LENGTH / 2, IBV_SEND_SIGNALED, -1));
        for (int number = 0; round && number < 4; number++)
            CHECK(next(ends[0].sent).status == IBV_WC_SUCCESS);
        if (told) {
            struct ibv_async_event event;
            CHECK(poll(&one, 1, 20000) == 1 && !ibv_get_async_event(ends[0].verbs, &event));
            CHECK(event.event_type == IBV_EVENT_SQ_DRAINED && event.element.qp == qp);
            ibv_ack_async_event(&event);
        }
        CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &(struct ibv_qp_init_attr){0}));
        CHECK(attr.qp_state == IBV_QPS_SQD && !attr.sq_draining && poll(&one, 1, 100) == 0);
        CHECK(!ibv_poll_cq((struct ibv_cq *)ends[0].sent, 1, &wc) && !ends[1].memory[LENGTH - 1]);
        attr = (struct ibv_qp_attr){.timeout = 15, .retry_cnt = 5};
        CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT)); /* where verbs let them change */
        if (round == 3) {
            CHECK(!step(ends[0].qp, IBV_QPS_ERR));
            wc = next(ends[0].sent);
            CHECK(wc.wr_id == 100 && wc.status == IBV_WC_WR_FLUSH_ERR);
            break;
        }
        attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};
        CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
        wc = next(ends[0].sent);
        CHECK(wc.wr_id == 100 && wc.status == IBV_WC_SUCCESS);
        CHECK(!memcmp(ends[0].memory + LENGTH / 2, ends[1].memory + LENGTH / 2, LENGTH / 2));
    }
}

/* Memory is deregistered under writes that were not sent: the first completion that is no success has the cause. */
static void withdrawn(struct end *ends)
{
    struct end from = ends[0];
    from.mr = ibv_reg_mr(ends[0].pd, ends[0].memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
    CHECK(from.mr);
    for (uint64_t number = 0; number < 40; number++)
        CHECK(!post(&from, &ends[1], number, 0, LENGTH, IBV_SEND_SIGNALED, -1));
    CHECK(!ibv_dereg_mr(from.mr));
    uint64_t number = 0;
    struct ibv_wc wc = next(ends[0].sent);
    for (; number < 40 && wc.status == IBV_WC_SUCCESS; number++, wc = next(ends[0].sent))
        CHECK(wc.wr_id == number);
    CHECK(wc.status == IBV_WC_LOC_PROT_ERR && wc.wr_id == number);
    while (++number < 40)
        CHECK((wc = next(ends[0].sent)).status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == number);
}

/* A queue pair whose peer is on the same host, or is itself. */
static void loopback(struct end *ends)
{
    struct mrc_qp *other = make_qp(&ends[0], 0), *qp = make_qp(&ends[0], 0);
    fill(&ends[0], 3);
    struct end own = ends[0], target = ends[0];
    own.qp = qp;
    target.memory += LENGTH / 2;
    for (int round = 0; round < 2; round++) {
        connect_qp(qp, &ends[0], &ends[0], round ? qp : other);
        if (!round)
            connect_qp(other, &ends[0], &ends[0], qp);
        memset(target.memory, 0, LENGTH / 2);
        CHECK(!post(&own, &target, 5, 0, LENGTH / 2, IBV_SEND_SIGNALED, -1));
        struct ibv_wc wc = next(ends[0].sent);
        CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 5 && !memcmp(ends[0].memory, target.memory, LENGTH / 2));
        CHECK(!step(qp, IBV_QPS_RESET));
    }
    CHECK(!mrc_destroy_qp(qp) && !mrc_destroy_qp(other));
}

/* The largest queue and the largest queue pair together are granted, and neither is larger. The link is 4 x 1 Gb/s. */
static void limits(struct end *ends)
{
    struct ibv_context *verbs = open_named(ends[0].verbs->device->name);
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    CHECK(!ibv_query_device(verbs, &device) && !ibv_query_port(verbs, 1, &port));
    struct ibv_pd *pd = ibv_alloc_pd(verbs);
    struct ibv_cq *cq = ibv_create_cq(verbs, device.max_cqe, NULL, NULL, 0);
    CHECK(cq);
    struct ibv_qp_init_attr made = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    made.cap = (struct ibv_qp_cap){(uint32_t)device.max_qp_wr + 1, 1, 1, 1, 0};
    CHECK(!ibv_create_qp(pd, &made) && errno == EINVAL);
    made.cap = (struct ibv_qp_cap){(uint32_t)device.max_qp_wr, (uint32_t)device.max_qp_wr, 1, 1, 0};
    struct ibv_qp *qp = ibv_create_qp(pd, &made);
    CHECK(qp && made.cap.max_send_wr == (uint32_t)device.max_qp_wr);
    CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_create_cq(verbs, device.max_cqe + 1, NULL, NULL, 0) && errno == EINVAL);
    CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(verbs));
    CHECK(port.active_width == 1 && port.active_speed == 2); /* 5 Gb/s, the nearest to 4 */
}

static void interrupt(int number)
{
    (void)number;
}

static void *interrupter(void *given)
{
    for (int number = 0; number < 100; number++) { /* the first may come before the wait */
        usleep(50000);
        pthread_kill(*(pthread_t *)given, SIGUSR1);
        if (__atomic_load_n((bool *)((pthread_t *)given + 1), __ATOMIC_SEQ_CST))
            break;
    }
    return NULL;
}

/* A signal whose handler does not restart calls ends a wait, as rdma-core's read() has it. A call that works leaves errno
 * alone: a message may ask for the state before it tells the error. */
static void signals(struct end *ends)
{
    struct ibv_qp_attr attr;
    struct mrc_qp_init_attr made;
    struct {
        pthread_t waiter;
        bool done;
    } shared = {.waiter = pthread_self()};
    struct mrc_cq *cq;
    void *context;
    pthread_t thread;
    CHECK(!sigaction(SIGUSR1, &(struct sigaction){.sa_handler = interrupt}, NULL));
    CHECK(!pthread_create(&thread, NULL, interrupter, &shared));
    errno = 0;
    CHECK(mrc_get_cq_event(ends[1].channel, &cq, &context) == -1 && errno == EINTR);
    CHECK(!mrc_query_qp(ends[1].qp, &attr, IBV_QP_STATE, NULL, 0, &made) && errno == EINTR);
    CHECK(mrc_get_async_event(ends[1].context, &(struct mrc_async_event){0}) == -1 && errno == EINTR);
    __atomic_store_n(&shared.done, true, __ATOMIC_SEQ_CST);
    CHECK(!pthread_join(thread, NULL));
}

int main(int count, char **words)
{
    static const struct end_case cases[] = {
        {"inlined", inlined}, {"wrong", wrong}, {"retries", retries}, {"signals", signals}, {"events", events},
        {"drained", drained}, {"withdrawn", withdrawn}, {"loopback", loopback}, {"limits", limits},
    };
    static const uint32_t psns[] = {0x123456, 0xfffffe}; /* PSNs wrap */
    return run_case(cases, sizeof cases / sizeof *cases, count, words, psns);
}
