/* A program for virtual time: RANK FOLDER COUNT. Rank 1 writes COUNT pages into rank 0's memory, some ten milliseconds
 * apart; both say what happened when, by libc's clock. Rank 0 sleeps on a channel, and rank 1 polls. */
#include <sys/time.h>
#include <time.h>

#include "ends.h"

struct met {
    union ibv_gid gid;
    uint64_t addr;
    uint32_t rkey, qpn, psn;
};

static double seconds(void)
{
    struct timespec now;
    CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct met meet(const char *folder, const char *own, const char *other, struct met mine)
{
    char path[512], partial[600];
    struct met theirs;
    snprintf(path, sizeof path, "%s/%s", folder, own);
    snprintf(partial, sizeof partial, "%s.partial", path);
    FILE *file = fopen(partial, "w");
    CHECK(file && fwrite(&mine, sizeof mine, 1, file) == 1 && !fclose(file) && !rename(partial, path));
    snprintf(path, sizeof path, "%s/%s", folder, other);
    while (!(file = fopen(path, "r")))
        usleep(10000);
    CHECK(fread(&theirs, sizeof theirs, 1, file) == 1 && !fclose(file));
    return theirs;
}

static void check_clocks(void)
{
    struct timeval now;
    double before = seconds();
    CHECK(!gettimeofday(&now, NULL) && (time_t)before == now.tv_sec && time(NULL) == now.tv_sec);
    CHECK(!sleep(2) && seconds() == before + 2);
    CHECK(!nanosleep(&(struct timespec){0, 500000000}, NULL) && seconds() == before + 2.5);
    struct timespec until = {(time_t)before + 4, 0};
    CHECK(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) && seconds() == (double)until.tv_sec);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, -1}, NULL) == EINVAL);
    CHECK(!ibv_get_device_list(NULL)[0]);
}

int main(int count, char **words)
{
    static struct end end;
    struct ibv_device **list = ibv_get_device_list(NULL);
    CHECK(count == 4 && list[0] && !list[1]);
    bool first = !strcmp(words[1], "0");
    int writes = atoi(words[3]);
    open_end(&end, ibv_get_device_name(list[0]), 7);
    check_clocks();
    struct met mine = {.addr = (uintptr_t)end.memory, .rkey = end.mr->rkey, .psn = end.psn};
    CHECK(!step(end.qp, IBV_QPS_INIT) && !ibv_query_gid(end.verbs, 1, 0, &mine.gid));
    for (int at = 0; first && at < writes && at < DEPTH; at++)
        CHECK(!post_receive(&end, (uint64_t)at));
    mine.qpn = number_of(end.qp);
    struct met peer = meet(words[2], words[1], first ? "1" : "0", mine);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer.qpn, .rq_psn = peer.psn};
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .grh.dgid = peer.gid};
    CHECK(!mrc_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU, NULL, 0));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = end.psn};
    CHECK(!mrc_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0));
    fill(&end, first ? 0 : 1);
    for (int at = 0; at < writes; at++) {
        if (first) {
            struct mrc_cq *cq;
            void *context;
            CHECK(!mrc_req_notify_cq(end.arrived, 0));
            struct ibv_wc wc;
            int found = mrc_poll_cq(end.arrived, 1, &wc);
            if (!found) {
                CHECK(!mrc_get_cq_event(end.channel, &cq, &context) && cq == end.arrived);
                mrc_ack_cq_events(cq, 1);
                wc = next(end.arrived);
            }
            CHECK(wc.status == IBV_WC_SUCCESS && ntohl(wc.imm_data) == (uint32_t)at);
            CHECK(at + DEPTH >= writes || !post_receive(&end, (uint64_t)at));
        } else {
            struct ibv_sge range = {mine.addr, LENGTH, end.mr->lkey};
            struct ibv_send_wr *bad, write = {.sg_list = &range, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
            write.send_flags = IBV_SEND_SIGNALED;
            write.imm_data = htonl((uint32_t)at);
            write.wr.rdma.remote_addr = peer.addr;
            write.wr.rdma.rkey = peer.rkey;
            CHECK(!mrc_post_send(end.qp, &write, &bad) && next(end.sent).status == IBV_WC_SUCCESS);
            usleep(10000);
        }
        printf("%d at %.9f\n", at, seconds());
    }
    for (int at = 0; first && at < LENGTH; at++)
        CHECK(end.memory[at] == (uint8_t)(at * 31 + at / 251 + 1));
    check_guards(&end);
    return 0;
}
