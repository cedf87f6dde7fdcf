/* Programs that mean harm, or have no luck: what they do costs only themselves. Arguments: mode, two devices, number.
 *
 *   careful   calls drawn from the number as a seed, with wrong sizes, states and keys
 *   random    the same, and with handles that are gone
 *   state     goes to the state of this number, says "ready" and waits to be killed
 *   pairs     so many queue pairs, which all write at once
 *   posts     so many writes, posted as fast as the queue takes them
 *   neighbour writes and compares until its standard input ends; prints how often */
#include "ends.h"

#include <signal.h>
#include <sys/prctl.h>

static uint64_t seed;
static bool reckless; /* handles are used after they are gone */

static uint32_t draw(uint32_t below)
{
    seed ^= seed << 13; /* xorshift64 (Marsaglia) */
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 11) % below;
}

/* A number that a program may get wrong: near a limit, or anything. */
static uint32_t odd(void)
{
    static const uint32_t some[] = {0, 1, 2, 4095, 4096, 65535, 65536, 1u << 24, 0x7fffffff, 0x80000000, 0xffffffff};
    return draw(3) ? some[draw(sizeof some / sizeof *some)] : (uint32_t)(seed >> 7);
}

enum { KEPT = 8, CALLS = 400 };

static struct ibv_mr *mrs[KEPT];
static struct mrc_cq *cqs[KEPT];
static struct mrc_qp *qps[KEPT];
static struct mrc_qp_hint *hints[KEPT];
static struct mrc_comp_channel *channels[KEPT];

static void random_memory(struct end *end)
{
    struct ibv_mr **kept = &mrs[draw(KEPT)];
    if (!*kept)
        *kept = ibv_reg_mr(end->pd, end->memory + draw(LENGTH), odd(), (int)draw(16));
    else if (draw(2) && !ibv_dereg_mr(*kept) && !(reckless && draw(4) == 0))
        *kept = NULL;
}

static void random_queues(struct end *end)
{
    struct mrc_comp_channel **channel = &channels[draw(KEPT)];
    struct mrc_cq **cq = &cqs[draw(KEPT)];
    if (!*channel && mrc_create_comp_channel(end->context, channel))
        *channel = NULL;
    if (!*cq)
        *cq = draw(4) ? mrc_create_cq(end->context, (int)draw(300), NULL, *channel, 0)
                      : mrc_ctl_create_ev_event_cq(end->context, (int)odd(), NULL, *channel, 0);
    else if (draw(3) == 0 && !mrc_destroy_cq(*cq))
        *cq = NULL;
    else
        mrc_req_notify_cq(*cq, (int)draw(2));
    if (*channel && draw(4) == 0 && !mrc_destroy_comp_channel(*channel))
        *channel = NULL;
}

static void random_pair(struct end *end)
{
    struct mrc_qp **qp = &qps[draw(KEPT)];
    struct mrc_cq *sent = cqs[draw(KEPT)], *arrived = cqs[draw(KEPT)];
    struct mrc_qp_init_attr attr = {.send_cq = sent ? sent : end->sent, .recv_cq = arrived ? arrived : end->arrived};
    attr.pd = end->pd;
    attr.cap = (struct ibv_qp_cap){draw(2) ? odd() : draw(64), draw(64), draw(3), draw(3), draw(2)};
    attr.send_ops_flags = draw(8) ? 0 : odd();
    if (!*qp)
        *qp = mrc_create_qp(end->context, &attr);
    else if (draw(3) == 0 && !mrc_destroy_qp(*qp) && !(reckless && draw(4) == 0))
        *qp = NULL;
}

static void random_change(struct end *end)
{
    struct mrc_qp *qp = draw(4) && qps[0] ? qps[draw(KEPT)] : end->qp;
    struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)draw(8), .cur_qp_state = (enum ibv_qp_state)odd()};
    struct mrc_qp_attr mrc = {.timeout = (uint8_t)odd(), .retry = {(uint8_t)draw(9), (uint8_t)draw(27)}};
    attr.dest_qp_num = odd();
    attr.rq_psn = attr.sq_psn = odd();
    attr.path_mtu = (enum ibv_mtu)draw(8);
    attr.port_num = (uint8_t)draw(3);
    attr.ah_attr.is_global = (uint8_t)draw(4);
    attr.ah_attr.grh.dgid.raw[draw(16)] = (uint8_t)odd();
    mrc.cap = odd();
    mrc.profile.ev_profile_id = draw(300);
    mrc.profile.cc_profile_id = odd();
    mrc.wimm.max_wimm = (uint16_t)odd();
    mrc.mpr.mpr_dest = (uint8_t)odd();
    mrc.qp_hint = hints[draw(KEPT)];
    if (!qp)
        return;
    if (draw(2))
        mrc_modify_qp(qp, &attr, (int)(odd() & 0x1fffff), &mrc, draw(2) ? (int)odd() : 0);
    else
        mrc_query_qp(qp, &attr, 0, &mrc, 0, NULL);
}

static void random_post(struct end *end)
{
    struct mrc_qp *qp = draw(3) && qps[0] ? qps[draw(KEPT)] : end->qp;
    struct ibv_mr *mr = draw(3) && mrs[0] ? mrs[draw(KEPT)] : end->mr;
    struct ibv_sge range = {(uintptr_t)end->memory + (draw(3) ? draw(LENGTH) : odd()), odd(), mr ? mr->lkey : odd()};
    struct ibv_send_wr *bad, wr = {.wr_id = odd(), .sg_list = &range, .num_sge = draw(9) ? 1 : 0};
    struct ibv_recv_wr *bad_recv, recv = {.wr_id = odd()};
    if (draw(3))
        range.length = 1 + draw(5000);
    wr.opcode = draw(4) ? (enum ibv_wr_opcode)draw(2) : (enum ibv_wr_opcode)draw(12);
    wr.send_flags = draw(8) ? IBV_SEND_SIGNALED * draw(2) : odd();
    wr.wr.rdma.remote_addr = draw(2) ? (uintptr_t)end->memory + draw(LENGTH) : (uint64_t)odd() << draw(33);
    wr.wr.rdma.rkey = draw(2) ? end->mr->rkey : odd();
    if (!qp)
        return;
    if (draw(3))
        mrc_post_send(qp, &wr, &bad);
    else
        mrc_post_recv(qp, &recv, &bad_recv);
}

static void random_rest(struct end *end)
{
    struct mrc_qp_hint **hint = &hints[draw(KEPT)];
    struct mrc_qp_hint_init_attr attr = {.attr = {.num_qps_per_peer = (int)odd(), .num_send_peers = (int)odd()}};
    struct ibv_wc wc[16];
    struct mrc_cq *cq = cqs[draw(KEPT)];
    struct mrc_ctl_ev_event events[8];
    if (!*hint)
        *hint = mrc_create_qp_hint(end->context, &attr);
    else if (draw(3) == 0 && !mrc_destroy_qp_hint(*hint))
        *hint = NULL;
    mrc_poll_cq(cq ? cq : end->sent, (int)draw(17), wc);
    if (cq && draw(4) == 0)
        mrc_ctl_poll_ev_event(cq, (int)draw(9), events);
}

static void random_calls(struct end *ends, int calls)
{
    void (*const kinds[])(struct end *) = {random_memory, random_queues, random_pair, random_change, random_change,
                                           random_post,   random_post,   random_post, random_rest};
    for (int number = 0; number < calls; number++) {
        kinds[draw(sizeof kinds / sizeof *kinds)](&ends[draw(2)]);
        if (draw(150) == 0 && !fork()) { /* in the middle: the child goes on with what it has */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            random_calls(ends, 10);
            _exit(0);
        }
    }
}

static void wait_to_be_killed(void)
{
    printf("ready\n");
    fflush(stdout);
    for (;;)
        pause();
}

/* Nothing opened, each state of a queue pair, one end connected, writes under way, a queue armed, memory taken away. */
static void state(struct end *ends, int number)
{
    if (number == 2 || number == 3)
        CHECK(!step(ends[0].qp, IBV_QPS_INIT));
    if (number == 3)
        CHECK(step(ends[0].qp, IBV_QPS_RTR)); /* not without a peer */
    if (number >= 4)
        connect_qp(ends[0].qp, &ends[0], &ends[1], ends[1].qp);
    if (number > 4)
        connect_qp(ends[1].qp, &ends[1], &ends[0], ends[0].qp);
    if (number == 6)
        for (int posted = 0; posted < DEPTH; posted++)
            CHECK(!post(&ends[0], &ends[1], 1, 0, LENGTH, IBV_SEND_SIGNALED, -1));
    if (number == 7)
        CHECK(!mrc_req_notify_cq(ends[1].arrived, 0) && !post_receive(&ends[1], 1));
    if (number == 8)
        CHECK(!step(ends[0].qp, IBV_QPS_ERR));
    if (number == 9)
        CHECK(!ibv_dereg_mr(ends[1].mr) && !post(&ends[0], &ends[1], 1, 0, LENGTH, IBV_SEND_SIGNALED, -1));
    wait_to_be_killed();
}

static void pairs(struct end *ends, int count)
{
    struct mrc_qp **made = calloc((size_t)count * 2, sizeof *made);
    CHECK(made);
    for (int number = 0; number < count; number++) {
        made[2 * number] = make_qp(&ends[0], 1);
        made[2 * number + 1] = make_qp(&ends[1], 1);
        connect_qp(made[2 * number], &ends[0], &ends[1], made[2 * number + 1]);
        connect_qp(made[2 * number + 1], &ends[1], &ends[0], made[2 * number]);
    }
    fill(&ends[0], 6);
    uint32_t each = LENGTH / (uint32_t)count;
    for (int number = 0; number < count; number++) {
        struct end from = ends[0];
        from.qp = made[2 * number];
        CHECK(!post(&from, &ends[1], (uint64_t)number, (uint64_t)number * each, each, 0, -1));
    }
    for (int number = 0; number < count; number++)
        CHECK(next(ends[0].sent).status == IBV_WC_SUCCESS);
    CHECK(!memcmp(ends[0].memory, ends[1].memory, (size_t)each * (size_t)count));
    check_guards(&ends[1]);
    for (int number = 0; number < 2 * count; number++)
        CHECK(!mrc_destroy_qp(made[number]));
    free(made);
}

/* The last write tells of all; one in sixteen is signaled, as programs do it. */
static void posts(struct end *ends, int count)
{
    struct ibv_wc wc[DEPTH];
    int posted = 0, told = 0, signaled = 0;
    fill(&ends[0], 7);
    while (posted < count || told < signaled) {
        bool tells = posted % 16 == 15 || posted == count - 1;
        int error = posted < count ? post(&ends[0], &ends[1], 1, (uint64_t)(posted % 512) * 8, 8,
                                          tells ? IBV_SEND_SIGNALED : 0, -1)
                                   : ENOMEM;
        if (!error) {
            posted++;
            signaled += tells;
            continue;
        }
        CHECK(error == ENOMEM);
        int found = mrc_poll_cq(ends[0].sent, DEPTH, wc);
        CHECK(found >= 0);
        for (int at = 0; at < found; at++)
            CHECK(wc[at].status == IBV_WC_SUCCESS);
        told += found;
    }
    CHECK(!memcmp(ends[0].memory, ends[1].memory, 8u * (count < 512 ? (unsigned int)count : 512u)));
    check_guards(&ends[1]);
}

static void neighbour(struct end *ends)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    int rounds = 0;
    printf("ready\n");
    fflush(stdout);
    for (; poll(&input, 1, 0) == 0; rounds++) {
        fill(&ends[0], rounds);
        memset(ends[1].memory, 0, LENGTH);
        CHECK(!post(&ends[0], &ends[1], 1, 0, 20000, IBV_SEND_SIGNALED, -1));
        CHECK(next(ends[0].sent).status == IBV_WC_SUCCESS);
        CHECK(!memcmp(ends[0].memory, ends[1].memory, 20000) && !ends[1].memory[20000]);
    }
    check_guards(&ends[0]);
    check_guards(&ends[1]);
    printf("%d\n", rounds);
}

int main(int count, char **words)
{
    static struct end ends[2];
    CHECK(count == 5);
    int number = atoi(words[4]);
    seed = 0x9e3779b97f4a7c15u * (uint64_t)(number + 1);
    bool idle = !strcmp(words[1], "state") && number == 0;
    if (idle)
        wait_to_be_killed();
    open_end(&ends[0], words[2], 0x123456);
    open_end(&ends[1], words[3], 0xfffffe);
    if (!strcmp(words[1], "state"))
        state(ends, number);
    connect_ends(ends);
    reckless = !strcmp(words[1], "random");
    if (reckless || !strcmp(words[1], "careful"))
        random_calls(ends, CALLS);
    else if (!strcmp(words[1], "pairs"))
        pairs(ends, number);
    else if (!strcmp(words[1], "posts"))
        posts(ends, number);
    else if (!strcmp(words[1], "neighbour"))
        neighbour(ends);
    else
        return 2;
    return 0;
}
