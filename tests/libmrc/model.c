/* Random programs of verbs beside a model of what verbs promise. Arguments: seed, operations, two devices,
 * whether a NAK may be lost.
 *
 * Each of some connections writes from the first device to the second. The model knows of each request how it may end:
 * once, by success with its bytes in place, or by the first error's own status, or flushed behind that. Every wait has a
 * bound, and a signal comes every few milliseconds. */
#include "ends.h"

#include <sys/time.h>
#include <time.h>

enum { CONNECTIONS = 3, PLACES = 16, SLOT = 3000, BOUND_S = 60, INLINE = 200 };
enum fault { NONE, OWN_ERROR, PEER_ERROR, PEER_RESET, PEER_GONE, BAD_LKEY, BAD_RKEY, FAULTS };

struct request {
    bool posted, signaled, waits; /* in SQD: it must not end */
    uint64_t number;
    uint32_t length;
    uint8_t seed;
};

struct connection {
    struct ibv_qp *from, *to;
    enum fault fault;
    uint64_t guilty; /* the request that a bad key belongs to */
    bool failed, sqd;
    struct request requests[PLACES];
    uint64_t next, arrived; /* immediates */
    unsigned int receives, immediates;
    uint32_t psn;
};

static uint64_t chance;
static unsigned int draw(unsigned int below)
{
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    return (unsigned int)(chance >> 20) % below;
}

static struct end ends[2];
static struct connection connections[CONNECTIONS];
static uint64_t numbers;
static bool nak_may_be_lost; /* over RoCE, whose queue pairs in ERR say nothing again; those of MRC do */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void interrupt(int number)
{
    (void)number;
}

static struct ibv_qp *make(struct end *end)
{
    struct ibv_qp_init_attr made = {.send_cq = (struct ibv_cq *)end->sent, .recv_cq = (struct ibv_cq *)end->arrived,
                                    .cap = {PLACES, PLACES, 1, 1, INLINE}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(end->pd, &made);
    CHECK(qp);
    return qp;
}

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    return ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = state}, IBV_QP_STATE);
}

static void rise(struct ibv_qp *qp, const struct ibv_qp *peer, struct end *there, uint32_t psn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                               .path_mtu = IBV_MTU_1024, .rq_psn = psn, .sq_psn = psn, .timeout = 10, .retry_cnt = 2,
                               .rnr_retry = 7, .min_rnr_timer = 12, .dest_qp_num = peer->qp_num};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE};
    attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
    CHECK(!ibv_query_gid(there->verbs, 1, 0, &attr.ah_attr.grh.dgid));
    CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL); /* in RESET, INIT and RTR nothing is sent */
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL && to_state(qp, IBV_QPS_RTS) == EINVAL);
    attr.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL);
    attr.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                        IBV_QP_MAX_QP_RD_ATOMIC));
}

static uint8_t *slot(int end, const struct connection *one, size_t place)
{
    return ends[end].memory + ((size_t)(one - connections) * PLACES + place) * SLOT;
}

static unsigned int outstanding(const struct connection *one)
{
    unsigned int count = 0;
    for (int place = 0; place < PLACES; place++)
        count += one->requests[place].posted;
    return count;
}

/* The status that the first error may have. */
static bool fits(const struct connection *one, uint64_t number, enum ibv_wc_status status)
{
    switch (one->fault) {
    case OWN_ERROR:
        return status == IBV_WC_WR_FLUSH_ERR;
    case PEER_ERROR:
    case PEER_RESET:
    case PEER_GONE:
        return status == IBV_WC_RETRY_EXC_ERR;
    case BAD_LKEY:
        return status == IBV_WC_LOC_PROT_ERR && number == one->guilty;
    case BAD_RKEY:
        return (status == IBV_WC_REM_ACCESS_ERR || (status == IBV_WC_RETRY_EXC_ERR && nak_may_be_lost)) && number == one->guilty;
    default:
        return false;
    }
}

static void check_sent(const struct ibv_wc *wc)
{
    struct connection *one = &connections[wc->wr_id >> 56];
    size_t place = wc->wr_id >> 48 & 0xff;
    struct request *request = &one->requests[place];
    uint64_t number = wc->wr_id & 0xffffffffffff;
    CHECK(one->from->qp_num == wc->qp_num && request->posted && request->number == number && !request->waits);
    request->posted = false;
    for (int other = 0; other < PLACES; other++) /* unsignaled ones before it of which nothing came have ended well */
        if (one->requests[other].posted && !one->requests[other].signaled && one->requests[other].number < number)
            one->requests[other].posted = false;
    if (wc->status == IBV_WC_SUCCESS) {
        CHECK(request->signaled && !one->failed);
        for (uint32_t at = 0; at < request->length; at++)
            CHECK(slot(1, one, place)[at] == (uint8_t)(request->seed + at));
        return;
    }
    if (!(one->failed ? wc->status == IBV_WC_WR_FLUSH_ERR : fits(one, number, wc->status)))
        fprintf(stderr, "fault %d, failed %d, request %lu, guilty %lu: %s\n", (int)one->fault, one->failed, (unsigned long)number,
                (unsigned long)one->guilty, ibv_wc_status_str(wc->status));
    CHECK(one->failed ? wc->status == IBV_WC_WR_FLUSH_ERR : fits(one, number, wc->status));
    one->failed = true;
}

static void check_arrived(const struct ibv_wc *wc)
{
    struct connection *one = &connections[wc->wr_id];
    CHECK(one->receives);
    one->receives--;
    if (wc->status == IBV_WC_SUCCESS) {
        CHECK(wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(wc->imm_data) == one->arrived++ && one->immediates);
        one->immediates--;
    } else {
        CHECK(wc->status == IBV_WC_WR_FLUSH_ERR && (one->fault == PEER_ERROR || one->fault == BAD_RKEY));
    }
}

static void poll_both(void)
{
    struct ibv_wc wc[8];
    int count = ibv_poll_cq((struct ibv_cq *)ends[1].arrived, 8, wc);
    for (int at = 0; at < count; at++)
        check_arrived(&wc[at]);
    CHECK(count >= 0 && (count = ibv_poll_cq((struct ibv_cq *)ends[0].sent, 8, wc)) >= 0);
    for (int at = 0; at < count; at++)
        check_sent(&wc[at]);
}

static void write_one(struct connection *one, bool signaled)
{
    unsigned int place = 0, busy = outstanding(one);
    while (place < PLACES && one->requests[place].posted)
        place++;
    if (place == PLACES)
        return;
    bool live = one->fault == NONE, inlined = draw(4) == 0;
    signaled |= busy == PLACES - 1; /* or nothing would tell of the others */
    struct request request = {true, signaled, one->sqd && live, ++numbers, draw(inlined ? INLINE : SLOT), (uint8_t)draw(256)};
    struct ibv_sge range = {(uintptr_t)slot(0, one, place), request.length, ends[0].mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.wr_id = (uint64_t)(one - connections) << 56 | (uint64_t)place << 48 | numbers;
    wr.send_flags = (signaled ? IBV_SEND_SIGNALED : 0) | (inlined ? IBV_SEND_INLINE : 0);
    wr.wr.rdma.remote_addr = (uintptr_t)slot(1, one, place);
    wr.wr.rdma.rkey = ends[1].mr->rkey;
    if (live && one->immediates < one->receives && draw(3) == 0) { /* MRC has no RNR */
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.imm_data = htonl((uint32_t)one->next++);
        one->immediates++;
    } else if (live && !one->sqd && draw(60) == 0 && request.length) {
        one->fault = inlined || draw(2) ? BAD_RKEY : BAD_LKEY;
        one->guilty = numbers;
        range.lkey ^= one->fault == BAD_LKEY;
        wr.wr.rdma.rkey ^= one->fault == BAD_RKEY;
    }
    for (uint32_t at = 0; at < request.length; at++)
        slot(0, one, place)[at] = (uint8_t)(request.seed + at);
    memset(slot(1, one, place), ~request.seed, SLOT);
    int error = ibv_post_send(one->from, &wr, &bad);
    CHECK(!error && busy < PLACES);
    one->requests[place] = request;
}

static void receive_one(struct connection *one)
{
    struct ibv_recv_wr *bad, wr = {.wr_id = (uint64_t)(one - connections)};
    if (one->fault != NONE)
        return;
    int error = ibv_post_recv(one->to, &wr, &bad);
    CHECK(error == (one->receives < PLACES ? 0 : error) && (one->receives < PLACES || error));
    one->receives += !error;
}

static void wait_no_more(struct connection *one)
{
    for (int place = 0; place < PLACES; place++)
        one->requests[place].waits = false;
}

static void break_one(struct connection *one)
{
    one->fault = OWN_ERROR + draw(PEER_GONE - OWN_ERROR + 1);
    wait_no_more(one); /* they are flushed with those before them */
    if (one->fault == OWN_ERROR) {
        CHECK(!to_state(one->from, IBV_QPS_ERR));
    } else if (one->fault == PEER_ERROR) {
        CHECK(!to_state(one->to, IBV_QPS_ERR));
    } else {
        CHECK(one->fault == PEER_RESET ? !to_state(one->to, IBV_QPS_RESET) : !ibv_destroy_qp(one->to));
        one->receives = one->immediates = 0; /* with no completions */
    }
}

/* All that is posted ends within the bound, whatever has happened. */
static void settle(struct connection *one)
{
    double until_s = now_s() + BOUND_S;
    if (one->sqd) /* which one that has failed is in no more */
        CHECK(!to_state(one->from, IBV_QPS_RTS) || one->fault != NONE);
    one->sqd = false;
    wait_no_more(one);
    if (outstanding(one) < PLACES)
        write_one(one, true); /* a peer that is gone is noticed by a write; it says of unsignaled ones as well */
    while (outstanding(one) || (one->fault == NONE && one->immediates) ||
           ((one->fault == PEER_ERROR || one->fault == BAD_RKEY) && one->receives)) {
        poll_both();
        if (now_s() > until_s) {
            fprintf(stderr, "fault %d: %u requests, %u receives, %u immediates\n", one->fault, outstanding(one), one->receives,
                    one->immediates);
            CHECK(!"all has ended");
        }
    }
    CHECK(one->failed == (one->fault != NONE));
}

static void renew(struct connection *one)
{
    bool again = draw(2);
    settle(one);
    CHECK(!to_state(one->from, IBV_QPS_RESET));
    if (one->fault == PEER_GONE)
        one->to = make(&ends[1]);
    else
        CHECK(!to_state(one->to, IBV_QPS_RESET));
    if (again) {
        CHECK(!ibv_destroy_qp(one->from));
        one->from = make(&ends[0]);
    }
    *one = (struct connection){.from = one->from, .to = one->to, .psn = draw(1 << 24)};
    rise(one->to, one->from, &ends[0], one->psn);
    rise(one->from, one->to, &ends[1], one->psn);
}

static void sqd(struct connection *one)
{
    CHECK(!to_state(one->from, one->sqd ? IBV_QPS_RTS : IBV_QPS_SQD));
    one->sqd = !one->sqd;
    if (!one->sqd)
        wait_no_more(one);
}

int main(int count, char **words)
{
    CHECK(count == 6 && (chance = strtoull(words[1], NULL, 10) * 2654435761u + 1));
    nak_may_be_lost = atoi(words[5]);
    open_end(&ends[0], words[3], 1);
    open_end(&ends[1], words[4], 1);
    CHECK(!sigaction(SIGALRM, &(struct sigaction){.sa_handler = interrupt}, NULL));
    CHECK(!setitimer(ITIMER_REAL, &(struct itimerval){{0, 7000}, {0, 7000}}, NULL));
    for (int number = 0; number < CONNECTIONS; number++) {
        struct connection *one = &connections[number];
        *one = (struct connection){.from = make(&ends[0]), .to = make(&ends[1]), .psn = draw(1 << 24)};
        rise(one->to, one->from, &ends[0], one->psn);
        rise(one->from, one->to, &ends[1], one->psn);
    }
    for (int operation = atoi(words[2]); operation--;) {
        struct connection *one = &connections[draw(CONNECTIONS)];
        unsigned int kind = draw(100);
        if (kind < 45)
            write_one(one, draw(3));
        else if (kind < 60)
            receive_one(one);
        else if (kind < 90)
            poll_both();
        else if (kind < 93 && one->fault == NONE)
            sqd(one);
        else if (kind < 95 && one->fault == NONE)
            break_one(one);
        else if (kind >= 98 || (kind >= 95 && one->fault != NONE))
            renew(one);
    }
    for (int number = 0; number < CONNECTIONS; number++) {
        struct connection *one = &connections[number];
        settle(one);
        CHECK(!ibv_destroy_qp(one->from) && (one->fault == PEER_GONE || !ibv_destroy_qp(one->to)));
    }
    CHECK(!setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL));
    check_guards(&ends[0]);
    check_guards(&ends[1]);
    close_end(&ends[0]);
    close_end(&ends[1]);
    return 0;
}
