/* What a program may expect of libmrc: one case per run, with both ends in one process. Arguments: case, two devices. */
#include "ends.h"

/* --- cases ------------------------------------------------------------------------------------------------------ */

/* Whatever the length and the place, the bytes are there when the completion is, and no others are touched. */
static void writes(struct end *ends)
{
    fill(&ends[0], 1);
    for (uint32_t length = 1; length <= LENGTH; length = length * 3 + 1) {
        uint32_t at = length % 7 * (length < LENGTH / 2);
        memset(ends[1].memory, 0, LENGTH);
        CHECK(!post(&ends[0], &ends[1], length, at, length, IBV_SEND_SIGNALED, -1));
        struct ibv_wc wc = next(ends[0].sent);
        CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == length && wc.opcode == IBV_WC_RDMA_WRITE);
        CHECK(wc.qp_num == number_of(ends[0].qp));
        for (uint32_t byte = 0; byte < LENGTH; byte++)
            CHECK(ends[1].memory[byte] == (byte >= at && byte < at + length ? ends[0].memory[byte] : 0));
        check_guards(&ends[1]);
    }
}

/* Two queues: an immediate completes in the receiver's, after all that was posted before it. */
static void immediates(struct end *ends)
{
    struct ibv_wc wc;
    fill(&ends[0], 2);
    for (uint32_t number = 0; number < DEPTH; number++)
        CHECK(!post_receive(&ends[1], 1000 + number));
    CHECK(post_receive(&ends[1], 0) == -1 && errno == ENOMEM);
    for (uint32_t number = 0; number < DEPTH; number++) {
        CHECK(!post(&ends[0], &ends[1], number, 0, LENGTH / DEPTH * (number + 1), 0, 0xfffffff0 + number));
        wc = next(ends[1].arrived);
        CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wr_id == 1000 + number);
        CHECK(wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) == (uint32_t)(0xfffffff0 + number));
        CHECK(wc.byte_len == LENGTH / DEPTH * (number + 1) && !memcmp(ends[1].memory, ends[0].memory, wc.byte_len));
    }
    CHECK(mrc_poll_cq(ends[0].sent, 1, &wc) == 0); /* they were not signaled */
}

/* The completion of a signaled write tells of all before it; a queue has room for as many as it was made for. */
static void unsignaled(struct end *ends)
{
    for (int round = 0; round < 5; round++) {
        for (int number = 0; number < DEPTH; number++)
            CHECK(!post(&ends[0], &ends[1], (uint64_t)number, 0, 5000, number == DEPTH - 1 ? IBV_SEND_SIGNALED : 0, -1));
        struct ibv_wc wc = next(ends[0].sent);
        CHECK(wc.wr_id == DEPTH - 1 && wc.status == IBV_WC_SUCCESS);
    }
    int posted = 0;
    while (!post(&ends[0], &ends[1], 0, 0, LENGTH, IBV_SEND_SIGNALED, -1))
        posted++;
    CHECK(posted >= DEPTH);
    while (posted--)
        CHECK(next(ends[0].sent).status == IBV_WC_SUCCESS);
}

static void channels(struct end *ends)
{
    struct mrc_cq *cq;
    void *context;
    int fd;
    CHECK(!mrc_get_comp_channel_fd(ends[1].channel, &fd));
    struct pollfd one = {.fd = fd, .events = POLLIN};
    for (int number = 0; number < 8; number++)
        CHECK(!post_receive(&ends[1], (uint64_t)number));
    for (int number = 0; number < 8; number++) {
        if (number % 2 == 0) /* it holds until there has been an event */
            CHECK(!mrc_req_notify_cq(ends[1].arrived, 1));
        CHECK(!post(&ends[0], &ends[1], 1, 0, 100, IBV_SEND_SIGNALED | (number % 2 ? IBV_SEND_SOLICITED : 0), number));
        CHECK(next(ends[0].sent).status == IBV_WC_SUCCESS);
        if (number % 2) {
            CHECK(poll(&one, 1, 20000) == 1);
            CHECK(!mrc_get_cq_event(ends[1].channel, &cq, &context) && cq == ends[1].arrived && context == &ends[1]);
            CHECK(mrc_destroy_cq(ends[1].arrived) == EBUSY);
            mrc_ack_cq_events(cq, 1);
        } else {
            CHECK(poll(&one, 1, 0) == 0);
        }
        CHECK(ntohl(next(ends[1].arrived).imm_data) == (uint32_t)number);
    }
}

/* A queue that is destroyed takes its event with it: the next event of the channel is another queue's. */
static void stale(struct end *ends)
{
    struct mrc_cq *cq;
    void *context;
    int fd;
    CHECK(!mrc_get_comp_channel_fd(ends[1].channel, &fd));
    struct pollfd one = {.fd = fd, .events = POLLIN};
    for (int others = 0; others < 2; others++) {
        struct end gone = ends[1];
        gone.sent = gone.arrived = mrc_create_cq(gone.context, DEPTH, NULL, gone.channel, 0);
        CHECK(gone.arrived && !mrc_req_notify_cq(gone.arrived, 0));
        gone.qp = make_qp(&gone, 0);
        connect_qp(gone.qp, &gone, &ends[0], ends[0].qp);
        CHECK(!post_receive(&gone, 1) && !step(gone.qp, IBV_QPS_ERR));
        CHECK(poll(&one, 1, 20000) == 1); /* the receive was flushed, and its event waits */
        CHECK(!mrc_destroy_qp(gone.qp) && !mrc_destroy_cq(gone.arrived));
        if (!others) {
            CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
            CHECK(mrc_get_cq_event(ends[1].channel, &cq, &context) == -1 && errno == EAGAIN);
            CHECK(!fcntl(fd, F_SETFL, 0));
            continue;
        }
        CHECK(!post_receive(&ends[1], 1) && !mrc_req_notify_cq(ends[1].arrived, 0));
        CHECK(!post(&ends[0], &ends[1], 1, 0, 100, IBV_SEND_SIGNALED, 7));
        CHECK(!mrc_get_cq_event(ends[1].channel, &cq, &context) && cq == ends[1].arrived);
        mrc_ack_cq_events(cq, 1);
        CHECK(ntohl(next(ends[1].arrived).imm_data) == 7 && next(ends[0].sent).status == IBV_WC_SUCCESS);
    }
}

/* Outside of the region: an error at the writer, and not a byte. The queue pair lives again after a reset. */
static void outside(struct end *ends)
{
    fill(&ends[0], 3);
    ends[1].memory += 1; /* the last byte would lie behind the region */
    CHECK(!post(&ends[0], &ends[1], 7, 0, LENGTH, IBV_SEND_SIGNALED, -1));
    CHECK(!post(&ends[0], &ends[1], 8, 0, 10, IBV_SEND_SIGNALED, -1));
    ends[1].memory -= 1;
    struct ibv_wc wc = next(ends[0].sent);
    CHECK(wc.wr_id == 7 && wc.status == IBV_WC_REM_ACCESS_ERR);
    CHECK(next(ends[0].sent).status == IBV_WC_WR_FLUSH_ERR);
    check_guards(&ends[1]);
    struct ibv_qp_attr attr;
    CHECK(!mrc_query_qp(ends[0].qp, &attr, IBV_QP_STATE, NULL, 0, NULL) && attr.qp_state == IBV_QPS_ERR);
    for (int end = 0; end < 2; end++) {
        CHECK(!step(ends[end].qp, IBV_QPS_RESET));
        ends[end].psn += 0x400000;
    }
    connect_ends(ends);
    writes(ends);
}

/* A wrong key, a wrong local range, a range that is not mapped any more. */
static void unmapped(struct end *ends)
{
    struct ibv_wc wc;
    uint8_t *other = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct end hole = ends[1], source = ends[0];
    hole.memory = source.memory = other;
    hole.mr = ibv_reg_mr(ends[1].pd, other, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    source.mr = ibv_reg_mr(ends[0].pd, other, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE);
    CHECK(hole.mr && source.mr);
    munmap(other + PAGE, PAGE);
    CHECK(post(&source, &ends[1], 1, 0, 2 * PAGE, IBV_SEND_SIGNALED, -1) == EFAULT);
    CHECK(!post(&ends[0], &ends[1], 1, 0, 1, IBV_SEND_SIGNALED, -1));
    CHECK(next(ends[0].sent).status == IBV_WC_SUCCESS);
    struct ibv_sge range = {(uintptr_t)ends[0].memory, 4 * PAGE, ends[0].mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 2, .sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = (uintptr_t)other;
    wr.wr.rdma.rkey = hole.mr->rkey;
    CHECK(!mrc_post_send(ends[0].qp, &wr, &bad));
    wc = next(ends[0].sent); /* it was not signaled, but it failed */
    CHECK(wc.wr_id == 2 && wc.status == IBV_WC_REM_ACCESS_ERR);
    CHECK(!ibv_dereg_mr(hole.mr) && !ibv_dereg_mr(source.mr));
    munmap(other, PAGE);
    munmap(other + 2 * PAGE, 2 * PAGE);
}

/* A region across two huge pages, from the last bytes of the first on. Status 77: this machine has none to give. */
static void huge(struct end *ends)
{
    enum { HUGE = 2 << 20 };
    uint8_t *mapped = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (mapped == MAP_FAILED)
        exit(77);
    struct end to = ends[1], from = ends[0];
    from.memory = mapped + HUGE - 13; /* written and read in the same pages: to itself, 100 kB further on */
    to.memory = from.memory + 100000;
    from.mr = ibv_reg_mr(ends[0].pd, from.memory, 50001, IBV_ACCESS_LOCAL_WRITE);
    to.mr = ibv_reg_mr(ends[1].pd, to.memory, 50001, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(from.mr && to.mr);
    for (int at = 0; at < 50001; at++)
        from.memory[at] = (uint8_t)(at * 7 + 1);
    CHECK(!post(&from, &to, 1, 0, 50001, IBV_SEND_SIGNALED, -1) && next(ends[0].sent).status == IBV_WC_SUCCESS);
    CHECK(!memcmp(from.memory, to.memory, 50001) && !to.memory[-1] && !to.memory[50001]);
    CHECK(!ibv_dereg_mr(from.mr) && !ibv_dereg_mr(to.mr));
    munmap(mapped, 2 * HUGE);
}

/* A child has no NIC; its parent's goes on, and what arrives is the parent's alone. */
static void forks(struct end *ends)
{
    int status;
    fill(&ends[0], 4);
    pid_t child = fork();
    if (!child) {
        CHECK(post(&ends[0], &ends[1], 1, 0, 10, IBV_SEND_SIGNALED, -1) == EIO);
        CHECK(!ibv_reg_mr(ends[0].pd, ends[0].memory, 10, IBV_ACCESS_LOCAL_WRITE) && errno == EIO);
        usleep(300000);
        CHECK(ends[1].memory[0] == 0 && ends[1].memory[LENGTH - 1] == 0);
        _exit(0);
    }
    CHECK(child > 0 && !post(&ends[0], &ends[1], 1, 0, LENGTH, IBV_SEND_SIGNALED, -1));
    CHECK(next(ends[0].sent).status == IBV_WC_SUCCESS && !memcmp(ends[0].memory, ends[1].memory, LENGTH));
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Writes by the calls of ibv_wr_*. */
static void built(struct end *ends)
{
    /* An MRC queue pair begins with the address of its verbs' one, as in other implementations. */
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(*(struct ibv_qp **)ends[0].qp);
    CHECK(qp);
    fill(&ends[0], 5);
    CHECK(!post_receive(&ends[1], 9));
    ibv_wr_start(qp);
    for (int number = 0; number < 20; number++) {
        qp->wr_id = (uint64_t)number;
        qp->wr_flags = IBV_SEND_SIGNALED;
        uint64_t at = (uint64_t)number * 1000;
        if (number < 19)
            ibv_wr_rdma_write(qp, ends[1].mr->rkey, (uintptr_t)ends[1].memory + at);
        else
            ibv_wr_rdma_write_imm(qp, ends[1].mr->rkey, (uintptr_t)ends[1].memory + at, htonl(77));
        ibv_wr_set_sge(qp, ends[0].mr->lkey, (uintptr_t)ends[0].memory + at, 1000);
    }
    CHECK(!ibv_wr_complete(qp) && ntohl(next(ends[1].arrived).imm_data) == 77);
    CHECK(!memcmp(ends[0].memory, ends[1].memory, 20000) && !ends[1].memory[20000]);
    for (int number = 0; number < 20; number++)
        CHECK(next(ends[0].sent).status == IBV_WC_SUCCESS);
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, ends[1].mr->rkey, (uintptr_t)ends[1].memory);
    ibv_wr_abort(qp);
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, ends[1].mr->rkey, (uintptr_t)ends[1].memory);
    ibv_wr_set_inline_data(qp, ends[0].memory, 8);
    CHECK(ibv_wr_complete(qp) == EINVAL);
}

/* A request without bytes needs no memory, here or there: NCCL posts `num_sge = 0`, and drivers skip ranges of no length. */
static void empty(struct end *ends)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(*(struct ibv_qp **)ends[0].qp);
    struct ibv_sge range = {0xdead, 0, ends[0].mr->lkey + 99};
    struct ibv_send_wr *bad, wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl(70)};
    wr.wr.rdma.remote_addr = UINT64_MAX; /* C9-88: the responder does not look at the key of an empty write */
    wr.wr.rdma.rkey = ends[1].mr->rkey + 99;
    for (uint32_t number = 0; number < 7; number++)
        CHECK(!post_receive(&ends[1], 100 + number));
    CHECK(!mrc_post_send(ends[0].qp, &wr, &bad));
    wr.sg_list = &range;
    wr.num_sge = 1;
    wr.imm_data = htonl(71);
    CHECK(!mrc_post_send(ends[0].qp, &wr, &bad));
    wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SOLICITED;
    wr.imm_data = htonl(72);
    CHECK(!mrc_post_send(ends[0].qp, &wr, &bad));
    ibv_wr_start(qp);
    for (uint32_t number = 3; number < 7; number++) {
        qp->wr_id = number;
        qp->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write_imm(qp, 0, 0, htonl(70 + number));
        if (number == 3)
            ibv_wr_set_sge(qp, range.lkey, range.addr, 0);
        if (number == 4)
            ibv_wr_set_sge_list(qp, 0, NULL);
        if (number == 5)
            ibv_wr_set_inline_data(qp, NULL, 0);
    }
    CHECK(!ibv_wr_complete(qp));
    for (uint32_t number = 0; number < 7; number++) {
        struct ibv_wc wc = next(ends[1].arrived);
        CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wr_id == 100 + number);
        CHECK(ntohl(wc.imm_data) == 70 + number && wc.byte_len == 0);
    }
    for (uint64_t number = 3; number < 7; number++)
        CHECK(next(ends[0].sent).wr_id == number);
    wr = (struct ibv_send_wr){.wr_id = 9, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    CHECK(!mrc_post_send(ends[0].qp, &wr, &bad)); /* without immediate it takes no receive */
    struct ibv_wc wc = next(ends[0].sent);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 9 && wc.opcode == IBV_WC_RDMA_WRITE);
    wr.num_sge = 2;
    wr.sg_list = &range;
    CHECK(mrc_post_send(ends[0].qp, &wr, &bad) == EINVAL && bad == &wr);
    for (uint32_t byte = 0; byte < LENGTH; byte++)
        CHECK(!ends[1].memory[byte]);
}

static void *writer(void *given)
{
    struct end *ends = given;
    for (int number = 0; number < 200; number++)
        while (post(&ends[0], &ends[1], 1, 0, 3000, IBV_SEND_SIGNALED, -1) == ENOMEM)
            sched_yield();
    return NULL;
}

static void *reader(void *given)
{
    for (int number = 0; number < 400; number++)
        CHECK(next(((struct end *)given)[0].sent).status == IBV_WC_SUCCESS);
    return NULL;
}

static void threads(struct end *ends)
{
    void *(*const jobs[])(void *) = {writer, writer, reader};
    pthread_t made[3];
    for (int at = 0; at < 3; at++)
        CHECK(!pthread_create(&made[at], NULL, jobs[at], ends));
    for (int number = 0; number < 20; number++) {
        struct ibv_mr *mr = ibv_reg_mr(ends[0].pd, ends[0].memory, 100, IBV_ACCESS_LOCAL_WRITE);
        CHECK(mr && !ibv_dereg_mr(mr));
    }
    for (int at = 0; at < 3; at++)
        pthread_join(made[at], NULL);
}

/* What is not offered says so. */
static void refusals(struct end *ends)
{
    struct ibv_qp_init_attr attr = {.send_cq = ibv_create_cq(ends[0].verbs, 4, NULL, NULL, 0),
                                    .cap = {4, 4, 1, 1, 0},
                                    .qp_type = IBV_QPT_UD};
    attr.recv_cq = attr.send_cq;
    CHECK(!ibv_create_qp(ends[0].pd, &attr) && errno == EOPNOTSUPP);
    CHECK(!ibv_create_srq(ends[0].pd, &(struct ibv_srq_init_attr){0}) && errno == EOPNOTSUPP);
    struct ibv_qp_init_attr_ex sends = {.send_cq = attr.send_cq, .recv_cq = attr.recv_cq, .cap = attr.cap};
    sends.qp_type = IBV_QPT_RC;
    sends.pd = ends[0].pd;
    sends.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    sends.send_ops_flags = IBV_QP_EX_WITH_SEND;
    CHECK(!ibv_create_qp_ex(ends[0].verbs, &sends) && errno == EOPNOTSUPP);
    sends.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
    struct ibv_qp *qp = ibv_create_qp_ex(ends[0].verbs, &sends);
    CHECK(qp && ibv_qp_to_qp_ex(qp) && !ibv_destroy_qp(qp) && !ibv_destroy_cq(attr.send_cq));
    CHECK(!ibv_reg_mr(ends[0].pd, ends[0].memory, 8, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
    CHECK(!ibv_reg_mr(ends[0].pd, ends[0].memory, (size_t)1 << 40, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
    CHECK(!ibv_reg_mr(ends[0].pd, ends[0].memory, 0, IBV_ACCESS_LOCAL_WRITE) && errno == EINVAL);
    struct ibv_sge range = {(uintptr_t)ends[0].memory, 8, ends[0].mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
    CHECK(mrc_post_send(ends[0].qp, &wr, &bad) == EOPNOTSUPP && bad == &wr);
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_INLINE;
    CHECK(mrc_post_send(ends[0].qp, &wr, &bad) == EINVAL);
    struct mrc_qp_attr mrc = {.timeout = 25};
    CHECK(mrc_modify_qp(ends[0].qp, NULL, 0, &mrc, MRC_QP_TIMEOUT) == EINVAL);
    CHECK(mrc_modify_qp(ends[0].qp, NULL, 0, &mrc, MRC_QP_VENDOR_CFG) == EINVAL);
    CHECK(step(ends[0].qp, IBV_QPS_SQE) == EINVAL);
}

static void attributes(struct end *ends)
{
    struct mrc_qp_attr attr = {.timeout = 17, .retry = {3, 4}}, found;
    struct ibv_qp_attr verbs;
    struct mrc_qp_init_attr made;
    struct mrc_device_attr device;
    int supported = 0;
    CHECK(!mrc_query_device(ends[0].verbs, &device, &supported) && supported && device.wimm_attr.max_wimm == 0xffff);
    CHECK(!mrc_modify_qp(ends[0].qp, NULL, 0, &attr, MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT));
    CHECK(!mrc_query_qp(ends[0].qp, &verbs, IBV_QP_STATE, &found, MRC_QP_TIMEOUT, &made));
    CHECK(verbs.qp_state == IBV_QPS_RTS && verbs.sq_psn == ends[0].psn && verbs.rq_psn == ends[1].psn);
    CHECK(found.timeout == 17 && found.retry.linear_cnt == 3 && found.retry.exp_cnt == 4 && found.wimm.max_wimm);
    CHECK(made.send_cq == ends[0].sent && made.recv_cq == ends[0].arrived && made.pd == ends[0].pd);
    struct mrc_qp_hint *hint = mrc_create_qp_hint(ends[0].context, &(struct mrc_qp_hint_init_attr){{.num_qps_per_peer = 8}});
    struct mrc_qp_hint_attr told;
    CHECK(hint && !mrc_query_qp_hint(hint, &told, 0) && told.num_qps_per_peer == 8);
    told.num_qps_per_peer = 9;
    CHECK(!mrc_modify_qp_hint(hint, &told, MRC_QP_HINT_NUM_QPS_PER_PEER));
    CHECK(!mrc_query_qp_hint(hint, &told, 0) && told.num_qps_per_peer == 9 && !mrc_destroy_qp_hint(hint));
    struct ibv_port_attr port;
    struct ibv_device_attr whole;
    CHECK(!ibv_query_port(ends[0].verbs, 1, &port) && port.state == IBV_PORT_ACTIVE && port.gid_tbl_len == 4);
    CHECK(ibv_query_port(ends[0].verbs, 2, &port) == EINVAL);
    CHECK(!ibv_query_device(ends[0].verbs, &whole) && whole.phys_port_cnt == 1 && whole.max_sge == 1);
}

enum { EVS = 64 };

/* mrc_ctl.h: the array of the NIC's own profile, an explicit one of some of its EVs, and their states. */
static void profiles(struct end *ends)
{
    struct mrc_context *context = ends[0].context;
    static struct mrc_ctl_ev_op_entry entries[EVS], wanted[3];
    struct mrc_ctl_device_attr device;
    int supported = 0;
    CHECK(!mrc_ctl_query_device_ex(ends[0].verbs, context, &device, &supported) && supported);
    CHECK(device.ev.ev_max_width == 32 && device.phy_port_mask == 0x1e && !strcmp(device.cc.algorithms[0], "uet-1.0-nscc"));
    struct mrc_ctl_ev_profile_attr attr = {.ev_op = {MRC_CTL_EV_OP_QUERY_EV_ARRAY, entries, 1}};
    CHECK(mrc_ctl_query_ev_profile(context, 0, &attr, MRC_CTL_EV_PROFILE_EV_OP) == -1 && errno == E2BIG);
    int present = attr.ev_op.entry_count;
    CHECK(present > 3 && present <= EVS);
    CHECK(!mrc_ctl_query_ev_profile(context, 0, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    CHECK(attr.profile_state == MRC_CTL_PROFILE_ONLINE && attr.ev_mode == MRC_CTL_EV_MODE_AUTO);
    CHECK(entries[present - 1].state == MRC_CTL_EV_GOOD && entries[present - 1].ev.port);

    attr = (struct mrc_ctl_ev_profile_attr){MRC_CTL_PROFILE_OFFLINE, .ev_mode = MRC_CTL_EV_MODE_EXP, .ev_count = 3};
    int made = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_COUNT;
    CHECK(!mrc_ctl_modify_ev_profile(context, 7, &attr, made));
    for (int at = 0; at < 3; at++)
        wanted[at] = (struct mrc_ctl_ev_op_entry){.ev = MRC_CTL_EV_UNPOPULATED, .ev_new = entries[at].ev};
    attr.ev_op.entries = wanted;
    attr.ev_op.entry_count = 3;
    attr.ev_op.op = MRC_CTL_EV_OP_REPLACE_EV;
    CHECK(!mrc_ctl_modify_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    attr.profile_state = MRC_CTL_PROFILE_ONLINE;
    CHECK(!mrc_ctl_modify_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_STATE));
    wanted[1] = (struct mrc_ctl_ev_op_entry){.ev = entries[1].ev, .state = MRC_CTL_EV_DENIED};
    attr.ev_op = (typeof(attr.ev_op)){MRC_CTL_EV_OP_MODIFY_EV_STATE, &wanted[1], 1};
    CHECK(!mrc_ctl_modify_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    for (int at = 0; at < 3; at++)
        wanted[at] = (struct mrc_ctl_ev_op_entry){.ev = entries[at].ev};
    attr.ev_op = (typeof(attr.ev_op)){MRC_CTL_EV_OP_QUERY_EV_STATE, wanted, 3};
    CHECK(!mrc_ctl_query_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_EV_OP) && attr.ev_count == 3);
    CHECK(wanted[0].state == MRC_CTL_EV_GOOD && wanted[1].state == MRC_CTL_EV_DENIED && wanted[2].state == MRC_CTL_EV_GOOD);
    wanted[2].ev = entries[3].ev;
    CHECK(mrc_ctl_query_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_EV_OP) == -1 && errno == ENOENT);
    CHECK(mrc_ctl_modify_ev_fmt_profile(context, 0, NULL, 0) == -1 && errno == EOPNOTSUPP);
}

/* A hint or an EV profile that a queue pair has stays, and says that it is busy. */
static void busy(struct end *ends)
{
    struct mrc_context *context = ends[0].context;
    static struct mrc_ctl_ev_op_entry entries[EVS];
    struct mrc_ctl_ev_profile_attr attr = {.ev_op = {MRC_CTL_EV_OP_QUERY_EV_ARRAY, entries, EVS}};
    CHECK(!mrc_ctl_query_ev_profile(context, 0, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    struct mrc_ctl_ev_op_entry only = {.ev = MRC_CTL_EV_UNPOPULATED, .ev_new = entries[0].ev};
    attr = (struct mrc_ctl_ev_profile_attr){MRC_CTL_PROFILE_OFFLINE, .ev_mode = MRC_CTL_EV_MODE_EXP, .ev_count = 1};
    int made = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_COUNT;
    CHECK(!mrc_ctl_modify_ev_profile(context, 7, &attr, made));
    attr.ev_op = (typeof(attr.ev_op)){MRC_CTL_EV_OP_REPLACE_EV, &only, 1};
    CHECK(!mrc_ctl_modify_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    attr.profile_state = MRC_CTL_PROFILE_ONLINE;
    CHECK(!mrc_ctl_modify_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_STATE));
    struct mrc_qp_hint_init_attr eight = {{.num_qps_per_peer = 8}};
    struct mrc_qp_attr mrc = {.qp_hint = mrc_create_qp_hint(context, &eight), .profile = {.ev_profile_id = 7}};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct mrc_qp *qp = make_qp(&ends[0], 1);
    CHECK(mrc.qp_hint && !mrc_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX, &mrc,
                                        MRC_QP_HINT | MRC_QP_EV_PROFILE_ID));
    CHECK(mrc_destroy_qp_hint(mrc.qp_hint) == -1 && errno == EBUSY);
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    CHECK(mrc_ctl_modify_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_STATE) == -1 && errno == EBUSY);
    CHECK(!mrc_destroy_qp(qp) && !mrc_destroy_qp_hint(mrc.qp_hint));
    CHECK(!mrc_ctl_modify_ev_profile(context, 7, &attr, MRC_CTL_EV_PROFILE_STATE));
}

/* Two EVs turn, and their events have the layout of the program's version: with a state from 1.0.1 on. */
static void check_events(struct mrc_context *context, struct mrc_cq *events, struct mrc_ctl_ev_op_entry *entries, bool states)
{
    struct mrc_ctl_ev_profile_attr attr = {.ev_op = {MRC_CTL_EV_OP_MODIFY_EV_STATE, entries, 2}};
    struct mrc_ctl_ev_event told[4];
    for (int state = MRC_CTL_EV_DENIED; state; state = state == MRC_CTL_EV_DENIED ? MRC_CTL_EV_GOOD : 0) {
        entries[0].state = entries[1].state = (enum mrc_ctl_ev_state)state;
        CHECK(!mrc_ctl_modify_ev_profile(context, 0, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    }
    memset(told, 0xaa, sizeof told);
    CHECK(mrc_ctl_poll_ev_event(events, 4, told) == 2);
    size_t size = states ? sizeof *told : offsetof(struct mrc_ctl_ev_event, state);
    const struct mrc_ctl_ev_event *second = (void *)((char *)told + size);
    int first = memcmp(&told[0].ev, &entries[0].ev, sizeof told[0].ev) != 0; /* they come in either order */
    CHECK(!memcmp(&told[0].ev, &entries[first].ev, sizeof told[0].ev) && !told[0].drop_count);
    CHECK(!memcmp(&second->ev, &entries[!first].ev, sizeof second->ev) && *((uint8_t *)told + 2 * size) == 0xaa);
    CHECK(!states || (told[0].state == MRC_CTL_EV_GOOD && second->state == MRC_CTL_EV_GOOD));
}

/* The version that a program has stated holds, whatever it asks the device with. */
static void versions(struct end *ends)
{
    static struct mrc_ctl_ev_op_entry entries[EVS];
    struct mrc_ctl_ev_profile_attr attr = {.ev_op = {MRC_CTL_EV_OP_QUERY_EV_ARRAY, entries, EVS}};
    struct mrc_ctl_device_attr device;
    struct mrc_ctl_ev_event event;
    CHECK(!mrc_ctl_query_ev_profile(ends[0].context, 0, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    struct mrc_cq *events = mrc_ctl_create_ev_event_cq(ends[0].context, 8, NULL, NULL, 0);
    for (uint32_t subminor = 2; subminor--;) {
        struct mrc_context_attr stated = {.mrc_api_version_used = MRC_API_VER(1, 0, subminor)};
        struct mrc_context *made[] = {mrc_create_context(ends[0].verbs, &stated),
                                      mrc_create_context(ends[0].verbs, &(struct mrc_context_attr){0}),
                                      mrc_create_context(ends[0].verbs, NULL)}; /* these two state none */
        CHECK(!mrc_ctl_query_device(ends[0].verbs, &device));
        check_events(ends[0].context, events, entries, subminor);
        for (int at = 0; at < 3; at++)
            CHECK(made[at] && !mrc_destroy_context(made[at]));
    }
    CHECK(mrc_ctl_poll_ev_event(events, 0, &event) == -EINVAL && mrc_ctl_poll_ev_event(ends[0].sent, 1, &event) == -EINVAL);
    CHECK(!mrc_destroy_cq(events));
}

/* Ports, congestion control, probes, and events of EVs with and without a state. */
static void controls(struct end *ends)
{
    struct mrc_context *context = ends[0].context;
    struct mrc_ctl_port_attr port = {MRC_CTL_PORT_ADMIN_DISABLED};
    CHECK(!mrc_ctl_modify_port(context, 2, &port, MRC_CTL_PORT_ADMIN_STATE));
    CHECK(!mrc_ctl_query_port(context, 2, &port, 1) && port.port_admin_state == MRC_CTL_PORT_ADMIN_DISABLED);
    port.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED;
    CHECK(!mrc_ctl_modify_port(context, 2, &port, MRC_CTL_PORT_ADMIN_STATE));
    CHECK(mrc_ctl_query_port(context, 99, &port, 1) == -1 && errno == EINVAL);

    struct mrc_ctl_cc_nscc_cfg found, cfg = {0, 8192, 5000, 20000, 0.5f, 1, 0.25f, 0.8f, 0.5f, 1 << 20, 3, 7000, 9000};
    struct mrc_ctl_cc_profile_attr cc = {.algorithm = "uet-1.0-nscc", .cc_config = &cfg};
    int both = MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG;
    CHECK(!mrc_ctl_modify_cc_profile(context, 3, &cc, both));
    cc = (struct mrc_ctl_cc_profile_attr){.cc_config = &found};
    CHECK(!mrc_ctl_query_cc_profile(context, 3, &cc, both) && !strcmp(cc.algorithm, "uet-1.0-nscc"));
    CHECK(found.adjust_bytes_threshold == 8192 && found.gamma == 0.8f && found.max_cwnd == 1 << 20 && found.qa_gate == 3);
    CHECK(found.target_delay == 9000 && found.eta == 0.5f && !found.disable_qa);

    static struct mrc_ctl_ev_op_entry entries[EVS];
    struct mrc_ctl_ev_profile_attr attr = {.ev_op = {MRC_CTL_EV_OP_QUERY_EV_ARRAY, entries, EVS}};
    CHECK(!mrc_ctl_query_ev_profile(context, 0, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    struct mrc_ctl_ep_req requests[2] = {{.req_id = 11, .req_ev = entries[0].ev}, {.req_id = 12, .req_ev = entries[1].ev}};
    struct mrc_ctl_ep_rsp responses[2];
    int answered;
    for (int at = 0; at < 2; at++)
        CHECK(!ibv_query_gid(ends[1].verbs, 1, 0, &requests[at].dgid));
    CHECK(!mrc_ctl_ep_batch_send_wait(context, 0, MRC_CTL_EP_OP_EV_PROBE, requests, 2, 4000000000u, responses, &answered));
    CHECK(answered == 2 && responses[0].req_id + responses[1].req_id == 23 && responses[0].rtt && responses[0].port);

    struct mrc_cq *events = mrc_ctl_create_ev_event_cq(context, 8, NULL, NULL, 0);
    struct mrc_ctl_ev_event told[4];
    struct mrc_ctl_device_attr device;
    CHECK(events && mrc_ctl_poll_ev_event(events, 4, told) == 0);
    for (int version = 0; version < 2; version++) {
        CHECK(!(version ? mrc_ctl_query_device_ex(ends[0].verbs, context, &device, NULL)
                        : mrc_ctl_query_device(ends[0].verbs, &device)));
        check_events(context, events, entries, version);
    }
    CHECK(mrc_poll_cq(events, 1, &(struct ibv_wc){0}) == -1 && errno == EINVAL && !mrc_destroy_cq(events));
}

/* A parameter that is no finite number is refused, and the profile stays as it was. */
static void parameters(struct end *ends)
{
    struct mrc_ctl_cc_nscc_cfg found, sound = {0, 8192, 5000, 20000, 0.5f, 1, 0.25f, 0.8f, 0.5f, 1 << 20, 3, 7000, 9000};
    struct mrc_ctl_cc_profile_attr asked = {.cc_config = &found};
    int both = MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG;
    for (int at = 0; at < 5; at++) {
        struct mrc_ctl_cc_nscc_cfg odd = sound;
        float *places[] = {&odd.eta, &odd.fi, &odd.fi_scale, &odd.gamma, &odd.max_md_jump};
        struct mrc_ctl_cc_profile_attr cc = {.algorithm = "uet-1.0-nscc", .cc_config = &sound};
        CHECK(!mrc_ctl_modify_cc_profile(ends[0].context, 3, &cc, both));
        *places[at] = at % 2 ? NAN : at ? -INFINITY : INFINITY;
        cc.cc_config = &odd;
        CHECK(mrc_ctl_modify_cc_profile(ends[0].context, 3, &cc, both) == -1 && errno == EINVAL);
        CHECK(!mrc_ctl_query_cc_profile(ends[0].context, 3, &asked, both) && found.gamma == 0.8f && found.eta == 0.5f);
    }
}

/* A program whose locale writes 0,5: the locale "comma", which the test has made. */
static void comma(struct end *ends)
{
    CHECK(setlocale(LC_NUMERIC, "comma") && !strcmp(localeconv()->decimal_point, ","));
    controls(ends);
    CHECK(!strcmp(localeconv()->decimal_point, ",")); /* the program's own numbers stay its own */
}

/* More receives in one list than fit into a message to the agent. */
static void receives(struct end *ends)
{
    enum { MANY = 600 };
    static struct ibv_recv_wr list[MANY];
    struct mrc_qp_init_attr attr = {.send_cq = ends[0].sent, .recv_cq = ends[0].arrived, .pd = ends[0].pd,
                                    .cap = {DEPTH, MANY, 1, 1, 0}};
    struct mrc_qp *qp = mrc_create_qp(ends[0].context, &attr);
    struct ibv_recv_wr *bad = NULL;
    CHECK(qp);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    CHECK(!mrc_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX, NULL, 0));
    for (int at = 0; at < MANY; at++)
        list[at] = (struct ibv_recv_wr){.wr_id = (uint64_t)at, .next = at + 1 < MANY ? &list[at + 1] : NULL};
    CHECK(!mrc_post_recv(qp, list, &bad));
    CHECK(mrc_post_recv(qp, &list[MANY - 1], &bad) && errno == ENOMEM && bad == &list[MANY - 1]);
    CHECK(!mrc_destroy_qp(qp));
}

int main(int count, char **words)
{
    static const struct end_case cases[] = {
        {"writes", writes},         {"immediates", immediates}, {"unsignaled", unsignaled}, {"channels", channels},
        {"outside", outside},       {"unmapped", unmapped},     {"forks", forks},           {"built", built},
        {"threads", threads},       {"refusals", refusals},     {"attributes", attributes},
        {"profiles", profiles},     {"controls", controls},     {"huge", huge},
        {"receives", receives},     {"stale", stale},           {"parameters", parameters}, {"comma", comma},
        {"versions", versions},     {"busy", busy},             {"empty", empty},
    };
    static const uint32_t psns[] = {0x123456, 0xfffffe}; /* PSNs wrap */
    return run_case(cases, sizeof cases / sizeof *cases, count, words, psns);
}
