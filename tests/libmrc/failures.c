/* What a program finds when a call fails: one case per run, with both ends in one process. Arguments: case, two devices. */
#include "ends.h"

#include <sys/resource.h>
#include <sys/socket.h>

enum { MANY = 300 }; /* more than fit into a message to the agent */

/* The range is there for as long as the list is used. */
static void list_writes(struct ibv_send_wr *list, int count, struct ibv_sge *range, const struct end *ends)
{
    *range = (struct ibv_sge){(uintptr_t)ends[0].memory, 64, ends[0].mr->lkey};
    for (int at = 0; at < count; at++) {
        list[at] = (struct ibv_send_wr){.wr_id = (uint64_t)at, .sg_list = range, .num_sge = 1};
        list[at].opcode = IBV_WR_RDMA_WRITE;
        list[at].next = at + 1 < count ? &list[at + 1] : NULL;
        list[at].wr.rdma.remote_addr = (uintptr_t)ends[1].memory;
        list[at].wr.rdma.rkey = ends[1].mr->rkey;
    }
}

/* The agent ends between two calls: the first request that it has not got is the bad one. */
static void gone(struct end *ends)
{
    static struct ibv_send_wr list[MANY];
    static struct ibv_recv_wr receives[MANY];
    struct ibv_send_wr *bad = NULL;
    struct ibv_recv_wr *bad_receive = NULL;
    struct ibv_sge range;
    bool whole_message = getenv("WHOLE_MESSAGE");
    struct mrc_qp_init_attr attr = {.send_cq = ends[0].sent, .recv_cq = ends[0].arrived, .pd = ends[0].pd,
                                    .cap = {MANY, MANY, 1, 1, 0}};
    struct mrc_qp *qp = mrc_create_qp(ends[0].context, &attr);
    CHECK(qp);
    connect_qp(qp, &ends[0], &ends[1], ends[1].qp);
    list_writes(list, MANY, &range, ends);
    list[whole_message ? MANY - 1 : 5].opcode = IBV_WR_RDMA_READ; /* an error of a later one comes second */
    for (int at = 0; at < MANY; at++)
        receives[at].next = at + 1 < (whole_message ? MANY : 3) ? &receives[at + 1] : NULL;
    for (int end = 0; end < 2; end++)
        CHECK(!shutdown(ends[end].verbs->cmd_fd, SHUT_RDWR));
    CHECK(mrc_post_send(qp, list, &bad) == EIO && bad == list);
    CHECK(mrc_post_recv(ends[1].qp, receives, &bad_receive) == -1 && errno == EIO && bad_receive == receives);
    bad = NULL;
    CHECK(mrc_post_send(qp, &list[1], &bad) == EIO && bad == &list[1]); /* now it is known from the start */
    CHECK(!mrc_destroy_qp(qp));
}

static void build_writes(struct ibv_qp_ex *qp, const struct end *ends, int count)
{
    ibv_wr_start(qp);
    for (int at = 0; at < count; at++) {
        qp->wr_id = (uint64_t)at;
        qp->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(qp, ends[1].mr->rkey, (uintptr_t)ends[1].memory);
        ibv_wr_set_sge(qp, ends[0].mr->lkey, (uintptr_t)ends[0].memory, 64);
    }
}

/* ibv_wr_complete posts all that was built or nothing (ibv_wr_post(3)), whichever request is wrong. */
static void whole(struct end *ends)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(*(struct ibv_qp **)ends[0].qp);
    uint8_t *hole = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *unmapped = ibv_reg_mr(ends[0].pd, hole, PAGE, IBV_ACCESS_LOCAL_WRITE);
    CHECK(qp && unmapped && !munmap(hole, PAGE));
    const struct {
        int count, error;
        uint64_t remote;
        struct ibv_sge last;
        unsigned int flags;
    } wrong[] = {
        {DEPTH + 1, ENOMEM, 0, {(uintptr_t)ends[0].memory, 64, ends[0].mr->lkey}, 0},
        {3, EINVAL, 0, {(uintptr_t)ends[0].memory, 64, ends[0].mr->lkey}, IBV_SEND_INLINE},
        {3, EINVAL, UINT64_MAX - 5, {(uintptr_t)ends[0].memory, 64, ends[0].mr->lkey}, 0},
        {3, EFAULT, 0, {(uintptr_t)hole, 64, unmapped->lkey}, 0},
    };
    fill(&ends[0], 6);
    for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
        build_writes(qp, ends, wrong[at].count - 1);
        qp->wr_flags = wrong[at].flags;
        ibv_wr_rdma_write(qp, ends[1].mr->rkey, wrong[at].remote ? wrong[at].remote : (uintptr_t)ends[1].memory);
        ibv_wr_set_sge(qp, wrong[at].last.lkey, wrong[at].last.addr, wrong[at].last.length);
        CHECK(ibv_wr_complete(qp) == wrong[at].error);
        CHECK(!post(&ends[0], &ends[1], 1000 + at, LENGTH - 1, 1, IBV_SEND_SIGNALED, -1));
        CHECK(next(ends[0].sent).wr_id == 1000 + at && !ends[1].memory[0]); /* the first that completes */
    }
    build_writes(qp, ends, DEPTH); /* all places of the queue are free */
    CHECK(!ibv_wr_complete(qp));
    for (uint64_t at = 0; at < DEPTH; at++)
        CHECK(next(ends[0].sent).wr_id == at);
    CHECK(!memcmp(ends[0].memory, ends[1].memory, 64) && !ibv_dereg_mr(unmapped));
}

/* Without a free descriptor nothing can be registered, and nothing stays at the agent of what was tried. */
static void descriptors(struct end *ends)
{
    struct mrc_comp_channel *channel = NULL;
    struct rlimit before, few;
    int first_free = dup(0);
    CHECK(first_free >= 0 && !close(first_free) && !getrlimit(RLIMIT_NOFILE, &before));
    few = (struct rlimit){(rlim_t)first_free, before.rlim_max};
    CHECK(!setrlimit(RLIMIT_NOFILE, &few));
    for (int at = 0; at < MANY; at++) { /* the agent keeps 256 regions and 16 channels of a program */
        CHECK(!ibv_reg_mr(ends[0].pd, ends[0].memory, 100, IBV_ACCESS_LOCAL_WRITE) && errno == EMFILE);
        CHECK(at > 20 || mrc_create_comp_channel(ends[0].context, &channel) == EMFILE);
    }
    CHECK(!setrlimit(RLIMIT_NOFILE, &before));
    struct ibv_mr *mr = ibv_reg_mr(ends[0].pd, ends[0].memory, 100, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr && !ibv_dereg_mr(mr));
    CHECK(!mrc_create_comp_channel(ends[0].context, &channel) && !mrc_destroy_comp_channel(channel));
}

/* A limit of the agent is ENOMEM, as it is of a device; here 4 hints and 4 channels. */
static void limits(struct end *ends)
{
    struct mrc_comp_channel *channels[MANY];
    struct mrc_qp_hint *hints[MANY];
    struct mrc_cq *queues[MANY];
    struct ibv_mr *regions[MANY];
    struct ibv_device_attr device;
    int made = 0;
    CHECK(!ibv_query_device(ends[0].verbs, &device));
    CHECK(!ibv_reg_mr(ends[0].pd, ends[0].memory, device.max_mr_size, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
    CHECK(!mrc_create_cq(ends[0].context, device.max_cqe + 1, NULL, NULL, 0) && errno == EINVAL);
#define UNTIL_FULL(list, count, make, destroy)                 \
    do {                                                       \
        for (made = 0; made < MANY && (list[made] = (make)); ) \
            made++;                                            \
        CHECK(made == (count) && errno == ENOMEM);             \
        while (made)                                           \
            CHECK(!destroy(list[--made]));                     \
    } while (0)
    UNTIL_FULL(regions, device.max_mr - 1, ibv_reg_mr(ends[0].pd, ends[0].memory, 8, IBV_ACCESS_LOCAL_WRITE), ibv_dereg_mr);
    UNTIL_FULL(queues, device.max_cq - 2, mrc_create_cq(ends[0].context, 1, NULL, NULL, 0), mrc_destroy_cq);
    UNTIL_FULL(hints, 4, mrc_create_qp_hint(ends[0].context, &(struct mrc_qp_hint_init_attr){{.num_qps_per_peer = 8}}),
               mrc_destroy_qp_hint);
#undef UNTIL_FULL
    int error = 0;
    while (made < MANY && !(error = mrc_create_comp_channel(ends[0].context, &channels[made])))
        made++;
    CHECK(made == 3 && error == ENOMEM); /* one more is that of the end */
    while (made)
        CHECK(!mrc_destroy_comp_channel(channels[--made]));
    struct mrc_ctl_ev_profile_attr profile = {MRC_CTL_PROFILE_OFFLINE, .ev_mode = MRC_CTL_EV_MODE_EXP, .ev_count = 1};
    int mask = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_COUNT;
    while (made < MANY && !mrc_ctl_modify_ev_profile(ends[0].context, (uint64_t)made + 1, &profile, mask))
        made++;
    CHECK(made == 255 && errno == ENOMEM);
}

/* The agent's kernel refuses: its errno is the program's. The test lets the agent make no file of `HUGE` bytes. */
static void kernel(struct end *ends)
{
    enum { HUGE = 64 << 20 };
    uint8_t *memory = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    errno = 0;
    CHECK(!ibv_reg_mr(ends[0].pd, memory, HUGE, IBV_ACCESS_LOCAL_WRITE) && errno == EFBIG);
    struct ibv_mr *mr = ibv_reg_mr(ends[0].pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr && !ibv_dereg_mr(mr) && !munmap(memory, HUGE));
}

int main(int count, char **words)
{
    static const struct end_case cases[] = {{"gone", gone}, {"whole", whole}, {"descriptors", descriptors}, {"limits", limits},
                                            {"kernel", kernel}};
    static const uint32_t psns[] = {1, 2};
    return run_case(cases, sizeof cases / sizeof *cases, count, words, psns);
}
