/* Why a program must not wait for the last byte of a write. "receive" looks at it as `ib_write_lat` does, and counts the
 * bytes that are missing then; "send" writes. FOLDER is where they meet. */
#include <mrc.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 65536, ROUNDS = 50 };

struct end { /* what the other end needs to know: by any channel, here by files */
    union ibv_gid gid;
    uint64_t addr;
    uint32_t rkey, qpn, psn;
};

#define CHECK(what) ((what) ? (void)0 : (perror(#what), exit(1)))

static struct end exchange(const char *folder, const char *own, const char *others, struct end mine)
{
    char path[256], partial[300];
    struct end theirs;
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, own);
    snprintf(partial, sizeof partial, "%s.partial", path);
    CHECK((file = fopen(partial, "w")) && fwrite(&mine, sizeof mine, 1, file) == 1 && !fclose(file));
    CHECK(!rename(partial, path));
    snprintf(path, sizeof path, "%s/%s", folder, others);
    while (!(file = fopen(path, "r")))
        usleep(10000);
    CHECK(fread(&theirs, sizeof theirs, 1, file) == 1 && !fclose(file));
    return theirs;
}

static void post_receive(struct mrc_qp *qp)
{
    struct ibv_recv_wr *bad, wr = {.wr_id = 1};
    CHECK(!mrc_post_recv(qp, &wr, &bad));
}

static void write_to(struct mrc_qp *qp, const struct ibv_mr *mr, const struct end *peer, uint32_t length)
{
    struct ibv_sge range = {(uintptr_t)mr->addr, length, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = (typeof(wr.wr.rdma)){peer->addr, peer->rkey};
    CHECK(!mrc_post_send(qp, &wr, &bad));
}

static void wait_for_completion(struct mrc_cq *cq)
{
    struct ibv_wc wc;
    int found;
    while (!(found = mrc_poll_cq(cq, 1, &wc)))
        ;
    CHECK(found == 1 && wc.status == IBV_WC_SUCCESS);
}

static int missing(const unsigned char *bytes, int round)
{
    int count = 0;
    for (int at = 0; at < SIZE; at++)
        count += bytes[at] != (unsigned char)round;
    return count;
}

int main(int count, char **words)
{
    static unsigned char bytes[SIZE];
    CHECK(count >= 3);
    int receiving = !strcmp(words[1], "receive"), early = 0, late = 0, most = 0;
    struct ibv_device **list = ibv_get_device_list(NULL), **chosen = list;
    while (count > 3 && *chosen && strcmp(ibv_get_device_name(*chosen), words[3]))
        chosen++;
    CHECK(*chosen);
    struct ibv_context *verbs = ibv_open_device(*chosen);
    CHECK(verbs);
    struct mrc_context *context = mrc_create_context(verbs, &(struct mrc_context_attr){MRC_API_VER(1, 0, 1), 0});
    struct ibv_pd *pd = ibv_alloc_pd(verbs);
    struct mrc_cq *sent = mrc_create_cq(context, 8, NULL, NULL, 0), *arrived = mrc_create_cq(context, 8, NULL, NULL, 0);
    struct mrc_qp_init_attr made = {.send_cq = sent, .recv_cq = arrived, .pd = pd, .cap = {4, 4, 1, 1, 0}};
    struct mrc_qp *qp = mrc_create_qp(context, &made);
    struct ibv_mr *mr = ibv_reg_mr(pd, bytes, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(qp && mr);

    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, NULL, 0));
    post_receive(qp);
    struct end mine = {.addr = (uintptr_t)bytes, .rkey = mr->rkey, .psn = (uint32_t)getpid() & 0xffffff};
    CHECK(!mrc_get_qpn(qp, &mine.qpn) && !ibv_query_gid(verbs, 1, 0, &mine.gid));
    struct end peer = exchange(words[2], words[1], receiving ? "send" : "receive", mine);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer.qpn, .rq_psn = peer.psn};
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .grh.dgid = peer.gid};
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU, NULL, 0));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = mine.psn};
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0));

    for (int round = 1; round <= ROUNDS; round++) {
        if (receiving) {
            while (((volatile unsigned char *)bytes)[SIZE - 1] != round)
                usleep(20); /* `ib_write_lat` does not even sleep */
            int lacking = missing(bytes, round);
            early += lacking > 0;
            most = lacking > most ? lacking : most;
            wait_for_completion(arrived);
            late += missing(bytes, round) > 0;
            post_receive(qp);
            write_to(qp, mr, &peer, 1); /* go on: it changes a byte of the sender's that the next round sets again */
            wait_for_completion(sent);
        } else {
            memset(bytes, round, SIZE);
            write_to(qp, mr, &peer, SIZE);
            wait_for_completion(sent);
            wait_for_completion(arrived);
            post_receive(qp);
        }
    }
    if (receiving)
        printf("at the last byte: incomplete in %d of %d rounds, up to %d bytes missing\n"
               "at the completion: incomplete in %d of %d rounds\n", early, ROUNDS, most, late, ROUNDS);
    return 0;
}
