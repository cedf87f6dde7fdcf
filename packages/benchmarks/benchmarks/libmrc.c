/* The program that `benchmarks/libmrc.py` measures: SIZE COUNT DEVICE DEVICE. Writes in a queue of 64, one in 16 signaled;
 * prints ns of processor time. */
#include <mrc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CHECK(what) ((what) ? (void)0 : (perror(#what), exit(1)))

enum { DEPTH = 64, SIGNALED = 16 };

static long spent_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000L +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000L;
}

struct end {
    struct ibv_context *verbs;
    struct ibv_pd *pd;
    struct mrc_cq *cq;
    struct mrc_qp *qp;
    struct ibv_mr *mr;
    uint8_t *memory;
    uint32_t psn;
};

static void open_end(struct end *end, const char *name, size_t size, uint32_t psn)
{
    struct ibv_device **list = ibv_get_device_list(NULL), **chosen = list;
    while (*chosen && strcmp(ibv_get_device_name(*chosen), name))
        chosen++;
    CHECK(*chosen);
    end->verbs = ibv_open_device(*chosen);
    CHECK(end->verbs);
    struct mrc_context *context = mrc_create_context(end->verbs, &(struct mrc_context_attr){0});
    end->pd = ibv_alloc_pd(end->verbs);
    end->cq = mrc_create_cq(context, DEPTH, NULL, NULL, 0);
    struct mrc_qp_init_attr attr = {.send_cq = end->cq, .recv_cq = end->cq, .pd = end->pd, .cap = {DEPTH, 1, 1, 1, 0}};
    end->qp = mrc_create_qp(context, &attr);
    end->memory = malloc(size);
    CHECK(end->qp && end->memory);
    memset(end->memory, 1, size);
    end->mr = ibv_reg_mr(end->pd, end->memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(end->mr);
    end->psn = psn;
}

static void join_ends(const struct end *end, const struct end *peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(!mrc_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, NULL, 0));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .rq_psn = peer->psn, .ah_attr.is_global = 1};
    CHECK(!mrc_get_qpn(peer->qp, &attr.dest_qp_num) && !ibv_query_gid(peer->verbs, 1, 0, &attr.ah_attr.grh.dgid));
    CHECK(!mrc_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU, NULL, 0));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = end->psn};
    CHECK(!mrc_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0));
}

static void writes(uint32_t size, int count, const char *here, const char *there)
{
    struct end from, to;
    open_end(&from, here, size, 1);
    open_end(&to, there, size, 2);
    join_ends(&from, &to);
    join_ends(&to, &from);
    struct ibv_sge range = {(uintptr_t)from.memory, size, from.mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = (uintptr_t)to.memory;
    wr.wr.rdma.rkey = to.mr->rkey;
    struct ibv_wc wc[DEPTH];
    long before_ns = spent_ns();
    for (int posted = 0, told = 0; told < count / SIGNALED;) {
        wr.send_flags = posted % SIGNALED == SIGNALED - 1 ? IBV_SEND_SIGNALED : 0;
        if (posted < count && posted - told * SIGNALED < DEPTH && !mrc_post_send(from.qp, &wr, &bad)) {
            posted++;
            continue;
        }
        int found = mrc_poll_cq(from.cq, DEPTH, wc);
        CHECK(found >= 0 && (!found || wc->status == IBV_WC_SUCCESS));
        told += found;
    }
    printf("%ld\n", spent_ns() - before_ns);
    CHECK(!memcmp(from.memory, to.memory, size));
}

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    writes((uint32_t)atoi(words[1]), atoi(words[2]), words[3], words[4]);
    return 0;
}
