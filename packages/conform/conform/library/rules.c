/* Rules of mrc.h and verbs, tried at any library: rules CASE DEVICE DEVICE SEED SECONDS.
 *
 * Both ends of the connection are in this process. Each rule is a line: id, pass, fail or choice, and what was seen. No call
 * waits for longer than SECONDS, unless the library hangs. */
#include "ends.h"

static void device(struct end *ends)
{
    struct mrc_device_attr attr;
    struct mrc_context *context;
    uint32_t current = 0, oldest = 1, vendor, vendor_oldest;
    int supported = 0;
    RULE("LIB-001", !mrc_query_device(ends[0].verbs, &attr, &supported) && supported);
    mrc_query_version(&current, &oldest, &vendor, &vendor_oldest);
    RULE("LIB-002", current && current >= oldest);
    RULE("LIB-003", attr.mpr_attr.max_mpr >= 8 && attr.wimm_attr.max_wimm >= 32);
    context = mrc_create_context(ends[0].verbs, &(struct mrc_context_attr){0});
    RULE("LIB-004", context && !mrc_destroy_context(context));
}

static void limits(struct end *ends)
{
    struct ibv_device_attr device;
    NEED(!ibv_query_device(ends[0].verbs, &device));
    struct mrc_cq *cq = mrc_create_cq(ends[0].context, device.max_cqe, NULL, NULL, 0);
    RULE("LIB-005", cq && !mrc_destroy_cq(cq));
    errno = 0;
    RULE("LIB-006", !mrc_create_cq(ends[0].context, device.max_cqe + 1, NULL, NULL, 0) && errno == EINVAL);
    errno = 0;
    RULE("LIB-007", !mrc_create_cq(ends[0].context, 0, NULL, NULL, 0) && errno == EINVAL);
    struct mrc_qp_init_attr attr = {.send_cq = ends[0].sent, .recv_cq = ends[0].arrived, .pd = ends[0].pd,
                                    .cap = {(uint32_t)device.max_qp_wr + 1, 1, 1, 1, 0}};
    errno = 0;
    RULE("LIB-008", !mrc_create_qp(ends[0].context, &attr) && errno);
}

static void completions(struct end *ends)
{
    struct ibv_wc wc;
    uint32_t qpn = 0;
    bool ordered = true, whole = true;
    NEED(!mrc_get_qpn(ends[0].qp, &qpn));
    RULE("LIB-009", mrc_poll_cq(ends[0].sent, 1, &wc) == 0);
    for (uint64_t number = 0; number < DEPTH / 2; number++)
        NEED(!post(&ends[0], &ends[1], 100 + number, 0, 1 + (uint32_t)rand() % (8 * MTU), IBV_SEND_SIGNALED, -1));
    for (uint64_t number = 0; number < DEPTH / 2; number++) {
        wc = next(ends[0].sent);
        ordered &= wc.wr_id == 100 + number;
        whole &= wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE && wc.qp_num == qpn;
    }
    printf("LIB-010\tchoice\t%s\n", ordered ? "in the order of posting" : "as they are acknowledged");
    RULE("LIB-011", whole);
    for (uint64_t number = 0; number < 8; number++)
        NEED(!post(&ends[0], &ends[1], number, 0, 3 * MTU, number == 7 ? IBV_SEND_SIGNALED : 0, -1));
    wc = next(ends[0].sent);
    RULE("LIB-012", wc.status == IBV_WC_SUCCESS && wc.wr_id == 7);
    RULE("LIB-013", mrc_poll_cq(ends[0].sent, 1, &wc) == 0);
}

static void lengths(struct end *ends)
{
    static const uint32_t of_interest[] = {1, MTU - 1, MTU, MTU + 1, 65 * MTU, LENGTH};
    bool right = true;
    for (int round = 0; round < 10; round++) {
        uint32_t length = round < 6 ? of_interest[round] : 1 + (uint32_t)rand() % (LENGTH - 1);
        uint32_t at = length < LENGTH ? (uint32_t)rand() % (uint32_t)(LENGTH - length) : 0;
        fill(ends);
        NEED(!post(&ends[0], &ends[1], 1, at, length, IBV_SEND_SIGNALED, -1));
        right &= next(ends[0].sent).status == IBV_WC_SUCCESS && arrived(ends, at, length);
    }
    RULE("LIB-015", right);
}

static void immediates(struct end *ends)
{
    bool ordered = true, whole = true, placed = true;
    struct ibv_wc wc;
    fill(ends);
    for (uint64_t number = 0; number < 16; number++)
        NEED(!receive(&ends[1], 500 + number));
    for (int number = 0; number < 16; number++) /* the first are the longest */
        NEED(!post(&ends[0], &ends[1], 1, 0, (uint32_t)(16 - number) * 3 * MTU, 0, 0x7fff0000 + number));
    for (uint32_t number = 0; number < 16; number++) {
        wc = next(ends[1].arrived);
        ordered &= wc.wr_id == 500 + number && ntohl(wc.imm_data) == 0x7fff0000 + number;
        whole &= wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wc_flags & IBV_WC_WITH_IMM;
        whole &= wc.byte_len == (16 - number) * 3 * MTU;
        placed &= wc.status == IBV_WC_SUCCESS && !memcmp(ends[0].memory, ends[1].memory, wc.byte_len);
    }
    RULE("LIB-016", ordered);
    RULE("LIB-017", whole);
    RULE("LIB-018", placed);
}

static void empty(struct end *ends)
{
    struct ibv_send_wr *bad, wr = {.wr_id = 3, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl(9)};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.rkey = ends[1].mr->rkey;
    wr.wr.rdma.remote_addr = (uintptr_t)ends[1].memory;
    for (int round = 0; round < 2; round++) {
        const char *rule = round ? "LIB-020" : "LIB-019";
        NEED(!receive(&ends[1], 1));
        RULE(rule, !mrc_post_send(ends[0].qp, &wr, &bad));
        RULE(rule, next(ends[0].sent).status == IBV_WC_SUCCESS);
        struct ibv_wc wc = next(ends[1].arrived);
        RULE(rule, wc.status == IBV_WC_SUCCESS && wc.byte_len == 0 && ntohl(wc.imm_data) == 9);
        wr.wr.rdma.rkey += 99; /* a write of no bytes has no key */
        wr.wr.rdma.remote_addr = UINT64_MAX;
    }
}

static void inlined(struct end *ends)
{
    uint8_t bytes[65];
    struct end from = ends[0], to = ends[1];
    from.qp = make_qp(&from, 64);
    RULE("LIB-021", from.qp);
    NEED(from.qp && (to.qp = make_qp(&to, 0)));
    connect_qp(from.qp, &from, &to, to.qp);
    connect_qp(to.qp, &to, &from, from.qp);
    memset(bytes, 7, sizeof bytes);
    struct ibv_sge range = {(uintptr_t)bytes, 64, 0};
    struct ibv_send_wr *bad = NULL, wr = request(&to, 1, 0, &range, IBV_SEND_INLINE | IBV_SEND_SIGNALED, -1);
    NEED(!mrc_post_send(from.qp, &wr, &bad));
    memset(bytes, 8, sizeof bytes);
    RULE("LIB-022", next(from.sent).status == IBV_WC_SUCCESS && to.memory[0] == 7 && to.memory[63] == 7);
    range.length = LENGTH;
    range.addr = (uintptr_t)from.memory;
    RULE("LIB-023", mrc_post_send(from.qp, &wr, &bad) > 0 && bad == &wr);
}

static void refused(struct end *ends)
{
    static const enum ibv_wr_opcode others[] = {IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct ibv_sge range = {(uintptr_t)ends[0].memory, 8, ends[0].mr->lkey};
    struct ibv_send_wr *bad, list[3];
    for (int at = 0; at < 3; at++) {
        list[0] = request(&ends[1], 1, 0, &range, IBV_SEND_SIGNALED, -1);
        list[0].opcode = others[at];
        bad = NULL;
        RULE("LIB-024", mrc_post_send(ends[0].qp, list, &bad) > 0 && bad == list);
    }
    for (uint64_t at = 0; at < 3; at++) {
        list[at] = request(&ends[1], at, 0, &range, IBV_SEND_SIGNALED, -1);
        list[at].next = at < 2 ? &list[at + 1] : NULL;
    }
    list[1].opcode = IBV_WR_SEND;
    RULE("LIB-025", mrc_post_send(ends[0].qp, list, &bad) > 0 && bad == &list[1]);
    struct ibv_wc wc = next(ends[0].sent);
    RULE("LIB-025", wc.status == IBV_WC_SUCCESS && wc.wr_id == 0 && mrc_poll_cq(ends[0].sent, 1, &wc) == 0);
}

static void full(struct end *ends)
{
    int posted = 0, failure = 0, received = 0;
    while (posted < 100 * DEPTH && !(failure = post(&ends[0], &ends[1], 1, 0, LENGTH, IBV_SEND_SIGNALED, -1)))
        posted++;
    RULE("LIB-026", posted >= DEPTH);
    RULE("LIB-027", failure == ENOMEM);
    while (posted-- && next(ends[0].sent).status == IBV_WC_SUCCESS)
        ;
    RULE("LIB-026", posted == -1);
    while (received < 100 * DEPTH && !receive(&ends[1], 1))
        received++;
    RULE("LIB-028", received >= DEPTH && received < 100 * DEPTH);
}

static void states(struct end *ends)
{
    struct end fresh = ends[0];
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    struct mrc_qp_init_attr made;
    struct mrc_qp_attr mrc;
    uint32_t qpn = 0;
    NEED((fresh.qp = make_qp(&fresh, 0)));
    RULE("LIB-029", state_of(fresh.qp) == IBV_QPS_RESET);
    RULE("LIB-030", mrc_modify_qp(fresh.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0) == EINVAL);
    RULE("LIB-030", state_of(fresh.qp) == IBV_QPS_RESET);
    RULE("LIB-031", post(&fresh, &ends[1], 1, 0, 8, 0, -1) > 0);
    RULE("LIB-032", !begin(fresh.qp) && state_of(fresh.qp) == IBV_QPS_INIT && !receive(&fresh, 1));
    RULE("LIB-031", post(&fresh, &ends[1], 1, 0, 8, 0, -1) > 0);
    RULE("LIB-030", mrc_modify_qp(fresh.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0) == EINVAL);
    RULE("LIB-033", !mrc_destroy_qp(fresh.qp));
    NEED(!mrc_get_qpn(ends[1].qp, &qpn) && !mrc_query_qp(ends[0].qp, &attr, 0x1fffff, &mrc, 0, &made));
    RULE("LIB-034", attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == qpn && attr.path_mtu == IBV_MTU_1024);
    RULE("LIB-034", attr.sq_psn == ends[0].psn && attr.rq_psn == ends[1].psn && made.send_cq == ends[0].sent);
}

static void flushed(struct end *ends)
{
    bool all = true;
    struct ibv_wc wc;
    for (uint64_t number = 0; number < 4; number++)
        NEED(!receive(&ends[0], number));
    NEED(!step(ends[0].qp, IBV_QPS_ERR));
    for (uint64_t number = 0; number < 4; number++) {
        wc = next(ends[0].arrived);
        all &= wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == number;
    }
    RULE("LIB-035", all && state_of(ends[0].qp) == IBV_QPS_ERR);
    int refused = post(&ends[0], &ends[1], 6, 0, 8, 0, -1);
    RULE("LIB-036", refused || next(ends[0].sent).status == IBV_WC_WR_FLUSH_ERR);
    reconnect(ends);
    fill(ends);
    NEED(!post(&ends[0], &ends[1], 7, 0, 5 * MTU, IBV_SEND_SIGNALED, -1));
    wc = next(ends[0].sent);
    RULE("LIB-037", wc.wr_id == 7 && wc.status == IBV_WC_SUCCESS && arrived(ends, 0, 5 * MTU));
    for (uint64_t number = 0; number < 8; number++)
        NEED(!post(&ends[0], &ends[1], 50 + number, 0, LENGTH, IBV_SEND_SIGNALED, -1));
    reconnect(ends);
    while (mrc_poll_cq(ends[0].sent, 1, &wc) > 0)
        ; /* what had completed before the reset */
    NEED(!post(&ends[0], &ends[1], 9, 0, 8, IBV_SEND_SIGNALED, -1));
    wc = next(ends[0].sent);
    RULE("LIB-038", wc.wr_id == 9 && wc.status == IBV_WC_SUCCESS);
}

static void remote(struct end *ends)
{
    struct ibv_async_event event;
    struct ibv_mr key = *ends[1].mr;
    struct end to = ends[1];
    fill(ends);
    key.rkey ^= 0x5a5a;
    to.mr = &key;
    NEED(!post(&ends[0], &to, 1, 0, 8, 0, -1) && !post(&ends[0], &ends[1], 2, 0, 8, IBV_SEND_SIGNALED, -1));
    struct ibv_wc wc = next(ends[0].sent);
    RULE("LIB-039", wc.wr_id == 1 && wc.status == IBV_WC_REM_ACCESS_ERR);
    wc = next(ends[0].sent);
    RULE("LIB-040", wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR && state_of(ends[0].qp) == IBV_QPS_ERR);
    bool told = readable(ends[1].verbs->async_fd, patience_ms) && !ibv_get_async_event(ends[1].verbs, &event);
    RULE("LIB-041", told && (event.event_type == IBV_EVENT_QP_ACCESS_ERR || event.event_type == IBV_EVENT_QP_REQ_ERR ||
                             event.event_type == IBV_EVENT_QP_FATAL));
    if (told)
        ibv_ack_async_event(&event);
    reconnect(ends);
    ends[1].memory += 16; /* the last bytes would be behind the region */
    NEED(!post(&ends[0], &ends[1], 1, 0, LENGTH, IBV_SEND_SIGNALED, -1));
    ends[1].memory -= 16;
    RULE("LIB-042", next(ends[0].sent).status == IBV_WC_REM_ACCESS_ERR);
    for (int byte = 0; byte < GUARD; byte++)
        RULE("LIB-042", !ends[1].memory[LENGTH + byte]);
}

static void local(struct end *ends)
{
    const struct ibv_sge wrong[] = {{(uintptr_t)ends[0].memory, 8, ends[0].mr->lkey ^ 0x5a5a},
                                    {(uintptr_t)ends[0].memory + LENGTH - 4, 8, ends[0].mr->lkey}};
    for (int at = 0; at < 2; at++) {
        struct ibv_sge range = wrong[at];
        struct ibv_send_wr *bad, wr = request(&ends[1], 2, 0, &range, 0, -1);
        NEED(!post(&ends[0], &ends[1], 1, 0, 9 * MTU, IBV_SEND_SIGNALED, -1));
        int failure = mrc_post_send(ends[0].qp, &wr, &bad);
        RULE("LIB-044", next(ends[0].sent).status == IBV_WC_SUCCESS);
        RULE("LIB-043", failure > 0 || next(ends[0].sent).status == IBV_WC_LOC_PROT_ERR);
        reconnect(ends);
    }
}

static void destroyed(struct end *ends)
{
    struct end *end = &ends[0];
    RULE("LIB-045", ibv_dealloc_pd(end->pd) == EBUSY);
    RULE("LIB-046", mrc_destroy_cq(end->sent) == EBUSY && mrc_destroy_cq(end->arrived) == EBUSY);
    RULE("LIB-047", mrc_destroy_comp_channel(end->channel) == EBUSY);
    RULE("LIB-048", !mrc_destroy_qp(end->qp) && !mrc_destroy_cq(end->sent) && !mrc_destroy_cq(end->arrived));
    RULE("LIB-048", !mrc_destroy_comp_channel(end->channel) && !ibv_dereg_mr(end->mr) && !ibv_dealloc_pd(end->pd));
    RULE("LIB-048", !mrc_destroy_context(end->context) && !ibv_close_device(end->verbs));
}

static void channels(struct end *ends)
{
    struct mrc_cq *cq = NULL;
    void *context = NULL;
    int fd = -1;
    NEED(!mrc_get_comp_channel_fd(ends[1].channel, &fd));
    for (int round = 0; round < 3; round++) { /* not armed; solicited events only; any event */
        int solicited = round == 1 ? IBV_SEND_SOLICITED : 0;
        NEED(!round || !mrc_req_notify_cq(ends[1].arrived, round == 1));
        for (int flags = 0; flags <= solicited; flags += IBV_SEND_SOLICITED) {
            NEED(!receive(&ends[1], 1) && !post(&ends[0], &ends[1], 1, 0, 8, IBV_SEND_SIGNALED | flags, 1));
            NEED(next(ends[0].sent).status == IBV_WC_SUCCESS && next(ends[1].arrived).status == IBV_WC_SUCCESS);
            if (round == 0)
                RULE("LIB-049", !readable(fd, 0));
            else if (round == 1)
                RULE("LIB-050", readable(fd, flags ? patience_ms : 0) == !!flags);
        }
        if (!round)
            continue;
        RULE("LIB-051", readable(fd, patience_ms) && !mrc_get_cq_event(ends[1].channel, &cq, &context));
        RULE("LIB-051", cq == ends[1].arrived && context == &ends[1]);
        mrc_ack_cq_events(ends[1].arrived, 1);
    }
    NEED(!fcntl(fd, F_SETFL, O_NONBLOCK));
    errno = 0;
    RULE("LIB-052", mrc_get_cq_event(ends[1].channel, &cq, &context) == -1 && errno == EAGAIN);
}

static void interrupt(int number)
{
    (void)number;
}

static void signals(struct end *ends)
{
    struct mrc_cq *cq;
    void *context;
    struct itimerspec often = {{0, 50000000}, {0, 50000000}};
    timer_t timer;
    NEED(!sigaction(SIGUSR1, &(struct sigaction){.sa_handler = interrupt}, NULL));
    NEED(!timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1}, &timer));
    NEED(!timer_settime(timer, 0, &often, NULL));
    errno = 0;
    RULE("LIB-053", mrc_get_cq_event(ends[1].channel, &cq, &context) == -1 && errno == EINTR);
    errno = 0;
    RULE("LIB-053", mrc_get_async_event(ends[1].context, &(struct mrc_async_event){0}) == -1 && errno == EINTR);
}

enum { EACH = 100, WRITERS = 3 };
static uint8_t completed[WRITERS * EACH];

static void *writer(void *given)
{
    static uint64_t number;
    struct end *ends = given;
    for (int count = 0; count < EACH; count++) {
        uint64_t mine = __atomic_fetch_add(&number, 1, __ATOMIC_SEQ_CST);
        while (post(&ends[0], &ends[1], mine, 0, 2 * MTU, IBV_SEND_SIGNALED, -1) == ENOMEM)
            sched_yield();
    }
    return NULL;
}

static void threads(struct end *ends)
{
    pthread_t made[WRITERS];
    bool once = true;
    for (int at = 0; at < WRITERS; at++)
        NEED(!pthread_create(&made[at], NULL, writer, ends));
    for (int count = 0; count < WRITERS * EACH; count++) {
        struct ibv_wc wc = next(ends[0].sent);
        once &= wc.status == IBV_WC_SUCCESS && wc.wr_id < WRITERS * EACH && !completed[wc.wr_id % (WRITERS * EACH)]++;
    }
    RULE("LIB-054", once);
}

static void attributes(struct end *ends)
{
    struct mrc_qp_attr attr = {.timeout = 24, .retry = {7, 25}}, found = {0};
    struct ibv_qp_attr verbs;
    struct mrc_qp_init_attr made;
    int mask = MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT;
    RULE("LIB-055", !mrc_modify_qp(ends[0].qp, NULL, 0, &attr, mask));
    NEED(!mrc_query_qp(ends[0].qp, &verbs, 0, &found, mask, &made));
    RULE("LIB-055", found.timeout == 24 && found.retry.linear_cnt == 7 && found.retry.exp_cnt == 25);
    attr.timeout = 25;
    RULE("LIB-056", mrc_modify_qp(ends[0].qp, NULL, 0, &attr, MRC_QP_TIMEOUT) == EINVAL);
    attr.retry.linear_cnt = 8;
    RULE("LIB-057", mrc_modify_qp(ends[0].qp, NULL, 0, &attr, MRC_QP_RETRY_CNT) == EINVAL);
    attr.retry.linear_cnt = 0;
    attr.retry.exp_cnt = 26;
    RULE("LIB-057", mrc_modify_qp(ends[0].qp, NULL, 0, &attr, MRC_QP_RETRY_CNT) == EINVAL);
    struct mrc_qp_hint_attr told = {0};
    struct mrc_qp_hint_init_attr eight = {{.num_qps_per_peer = 8}};
    struct mrc_qp_hint *hint = mrc_create_qp_hint(ends[0].context, &eight);
    RULE("LIB-058", hint && !mrc_query_qp_hint(hint, &told, MRC_QP_HINT_NUM_QPS_PER_PEER) && told.num_qps_per_peer == 8);
    RULE("LIB-058", !mrc_destroy_qp_hint(hint));
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(struct end *);
} CASES[] = {CASE(device), CASE(limits), CASE(completions), CASE(lengths), CASE(immediates), CASE(empty),
             CASE(inlined), CASE(refused), CASE(full), CASE(states), CASE(flushed), CASE(remote), CASE(local),
             CASE(destroyed), CASE(channels), CASE(signals), CASE(threads), CASE(attributes)};

int main(int count, char **words)
{
    static struct end ends[2];
    NEED(count == 6);
    srand((unsigned int)atoi(words[4]));
    patience_ms = 1000 * atoi(words[5]);
    for (size_t at = 0; at < sizeof CASES / sizeof *CASES; at++)
        if (!strcmp(words[1], CASES[at].name)) {
            for (int side = 0; side < 2; side++)
                open_end(&ends[side], words[2 + side]);
            connect_ends(ends);
            CASES[at].run(ends);
            puts("end");
            return 0;
        }
    return 2;
}
