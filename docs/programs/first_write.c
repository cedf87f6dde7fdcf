/* A first MRC program: rank 0 waits for a write, and rank 1 writes a line into its memory. FOLDER is where they meet. */
#include <mrc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int main(int count, char **words)
{
    CHECK(count >= 3);
    int receiving = !strcmp(words[1], "0");
    struct ibv_device **list = ibv_get_device_list(NULL), **chosen = list;
    while (count > 3 && *chosen && strcmp(ibv_get_device_name(*chosen), words[3]))
        chosen++; /* a host has one device; a test has more */
    CHECK(*chosen);
    struct ibv_context *verbs = ibv_open_device(*chosen);
    CHECK(verbs);
    struct mrc_context *context = mrc_create_context(verbs, &(struct mrc_context_attr){MRC_API_VER(1, 0, 1), 0});
    struct ibv_pd *pd = ibv_alloc_pd(verbs);
    struct mrc_cq *cq = mrc_create_cq(context, 4, NULL, NULL, 0);
    CHECK(context && pd && cq);
    struct mrc_qp_init_attr made = {.send_cq = cq, .recv_cq = cq, .pd = pd, .cap = {1, 1, 1, 1, 0}};
    struct mrc_qp *qp = mrc_create_qp(context, &made);
    char sent[64] = "written from memory to memory", empty[64] = "", *text = receiving ? empty : sent;
    struct ibv_mr *mr = ibv_reg_mr(pd, text, sizeof sent, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(qp && mr);

    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, NULL, 0));
    struct ibv_recv_wr *bad_recv, take = {.wr_id = 1};
    CHECK(!receiving || !mrc_post_recv(qp, &take, &bad_recv)); /* before the peer may write: MRC has no RNR */
    struct end mine = {.addr = (uintptr_t)text, .rkey = mr->rkey, .psn = (uint32_t)getpid() & 0xffffff};
    CHECK(!mrc_get_qpn(qp, &mine.qpn) && !ibv_query_gid(verbs, 1, 0, &mine.gid));
    struct end peer = exchange(words[2], words[1], receiving ? "1" : "0", mine);

    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer.qpn};
    attr.rq_psn = peer.psn;
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .grh.dgid = peer.gid};
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU, NULL, 0));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = mine.psn};
    CHECK(!mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0));
    if (!receiving) {
        struct ibv_sge range = {mine.addr, sizeof sent, mr->lkey};
        struct ibv_send_wr *bad, write = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
        write.send_flags = IBV_SEND_SIGNALED;
        write.wr.rdma = (typeof(write.wr.rdma)){peer.addr, peer.rkey};
        CHECK(!mrc_post_send(qp, &write, &bad));
    }
    struct ibv_wc wc = {0};
    while (!(count = mrc_poll_cq(cq, 1, &wc)))
        ; /* a poll that finds nothing sleeps for a moment */
    printf("%s: %s\n", ibv_wc_status_str(wc.status), receiving ? text : "the peer has it");
    return count != 1 || wc.status != IBV_WC_SUCCESS;
}
