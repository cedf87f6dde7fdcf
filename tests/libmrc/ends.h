/* Two ends of one connection, in one process, for programs that test libmrc. */
#ifndef MRCLAB_TESTS_ENDS_H
#define MRCLAB_TESTS_ENDS_H

#include <mrc.h>
#include <mrc_ctl.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                              \
    do {                                                                         \
        if (!(what)) {                                                           \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #what, errno); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

enum { PAGE = 4096, LENGTH = 64 * PAGE, DEPTH = 64 };

struct end {
    struct ibv_context *verbs;
    struct mrc_context *context;
    struct ibv_pd *pd;
    struct mrc_comp_channel *channel;
    struct mrc_cq *sent, *arrived;
    struct mrc_qp *qp;
    uint8_t *memory; /* unaligned, with a guard of 64 bytes on either side */
    void *mapped;
    struct ibv_mr *mr;
    uint32_t psn;
};

static inline struct ibv_context *open_named(const char *name)
{
    int count = 0;
    struct ibv_context *found = NULL;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int at = 0; at < count; at++)
        if (!strcmp(ibv_get_device_name(list[at]), name))
            found = ibv_open_device(list[at]);
    ibv_free_device_list(list);
    CHECK(found);
    return found;
}

static inline struct mrc_qp *make_qp(struct end *end, int sq_sig_all)
{
    struct mrc_qp_init_attr attr = {.send_cq = end->sent,
                                    .recv_cq = end->arrived,
                                    .pd = end->pd,
                                    .sq_sig_all = sq_sig_all,
                                    .cap = {DEPTH, DEPTH, 1, 1, 0}};
    struct mrc_qp *qp = mrc_create_qp(end->context, &attr);
    CHECK(qp && attr.cap.max_send_wr == DEPTH && attr.cap.max_inline_data == 0);
    return qp;
}

static inline void open_end(struct end *end, const char *name, uint32_t psn)
{
    end->verbs = open_named(name);
    end->context = mrc_create_context(end->verbs, &(struct mrc_context_attr){0});
    end->pd = ibv_alloc_pd(end->verbs);
    CHECK(end->context && end->pd && !mrc_create_comp_channel(end->context, &end->channel));
    end->sent = mrc_create_cq(end->context, DEPTH, NULL, NULL, 0);
    end->arrived = mrc_create_cq(end->context, DEPTH, end, end->channel, 0);
    CHECK(end->sent && end->arrived);
    end->qp = make_qp(end, 0);
    end->mapped = mmap(NULL, LENGTH + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(end->mapped, 0xee, LENGTH + 2 * PAGE);
    end->memory = (uint8_t *)end->mapped + PAGE + 13;
    memset(end->memory, 0, LENGTH);
    end->mr = ibv_reg_mr(end->pd, end->memory, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(end->mr && end->mr->addr == end->memory);
    end->psn = psn;
}

static inline void close_end(struct end *end)
{
    CHECK(ibv_dealloc_pd(end->pd) == EBUSY);
    CHECK(mrc_destroy_cq(end->sent) == EBUSY);
    CHECK(!mrc_destroy_qp(end->qp) && !mrc_destroy_cq(end->sent) && !mrc_destroy_cq(end->arrived));
    CHECK(!mrc_destroy_comp_channel(end->channel) && !ibv_dereg_mr(end->mr) && !ibv_dealloc_pd(end->pd));
    CHECK(!mrc_destroy_context(end->context) && !ibv_close_device(end->verbs));
    munmap(end->mapped, LENGTH + 2 * PAGE);
}

static inline int step(struct mrc_qp *qp, enum ibv_qp_state state)
{
    return mrc_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = state}, IBV_QP_STATE, NULL, 0);
}

static inline void connect_qp(struct mrc_qp *qp, const struct end *own, const struct end *peer, struct mrc_qp *peer_qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, NULL, 0));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .rq_psn = peer->psn};
    CHECK(!mrc_get_qpn(peer_qp, &attr.dest_qp_num));
    attr.ah_attr.is_global = 1;
    CHECK(!ibv_query_gid(peer->verbs, 1, 3, &attr.ah_attr.grh.dgid));
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU, NULL, 0));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = own->psn};
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0));
}

static inline void connect_ends(struct end *ends)
{
    connect_qp(ends[0].qp, &ends[0], &ends[1], ends[1].qp);
    connect_qp(ends[1].qp, &ends[1], &ends[0], ends[0].qp);
}

static inline int post(struct end *from, const struct end *to, uint64_t wr_id, uint64_t at, uint32_t length, int flags, int64_t imm)
{
    struct ibv_sge range = {(uintptr_t)from->memory + at, length, from->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id, .sg_list = &range, .num_sge = 1, .send_flags = (unsigned int)flags};
    wr.opcode = imm < 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = htonl((uint32_t)imm);
    wr.wr.rdma.remote_addr = (uintptr_t)to->memory + at;
    wr.wr.rdma.rkey = to->mr->rkey;
    return mrc_post_send(from->qp, &wr, &bad);
}

static inline struct ibv_wc next(struct mrc_cq *cq)
{
    struct ibv_wc wc;
    int found;
    while (!(found = mrc_poll_cq(cq, 1, &wc)))
        ;
    CHECK(found == 1);
    return wc;
}

static inline uint32_t number_of(struct mrc_qp *qp)
{
    uint32_t qpn = 0;
    CHECK(!mrc_get_qpn(qp, &qpn));
    return qpn;
}

static inline int post_receive(struct end *end, uint64_t wr_id)
{
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id};
    return mrc_post_recv(end->qp, &wr, &bad);
}

static inline void fill(struct end *end, int seed)
{
    for (int at = 0; at < LENGTH; at++)
        end->memory[at] = (uint8_t)(at * 31 + at / 251 + seed);
}

static inline void check_guards(const struct end *end)
{
    const uint8_t *first = end->mapped;
    for (const uint8_t *at = first; at < first + LENGTH + 2 * PAGE; at++)
        CHECK((at >= end->memory && at < end->memory + LENGTH) || *at == 0xee);
}

struct end_case {
    const char *name;
    void (*run)(struct end *);
};

/* `main` of a program CASE NIC NIC: connects an end of each NIC, with these first PSNs, and runs the case of that name. */
static inline int run_case(const struct end_case *cases, size_t many, int count, char **words, const uint32_t *psns)
{
    static struct end ends[2];
    CHECK(count == 4);
    for (size_t at = 0; at < many; at++)
        if (!strcmp(words[1], cases[at].name)) {
            for (int side = 0; side < 2; side++)
                open_end(&ends[side], words[2 + side], psns[side]);
            connect_ends(ends);
            cases[at].run(ends);
            for (int side = 0; side < 2; side++) {
                check_guards(&ends[side]);
                close_end(&ends[side]);
            }
            return 0;
        }
    return 2;
}

#endif
