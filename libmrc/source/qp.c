/* Queue pairs: made, taken through their states, asked, destroyed. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"

static const char *const state_names[] = {
    [IBV_QPS_RESET] = "reset", [IBV_QPS_INIT] = "init", [IBV_QPS_RTR] = "rtr",
    [IBV_QPS_RTS] = "rts",     [IBV_QPS_SQD] = "sqd",   [IBV_QPS_ERR] = "error",
};
enum { STATES = sizeof state_names / sizeof *state_names };

struct mrc_qp *pair_by_number(struct nic *nic, uint32_t qpn)
{
    struct mrc_qp *qp = nic->qps[qpn % TABLE];
    while (qp && qp->verbs.qp_num != qpn)
        qp = qp->next;
    return qp;
}

static int check_capabilities(const struct nic *nic, const struct ibv_qp_init_attr *attr)
{
    if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_DRIVER) /* so vendors' programs ask for MRC */
        return refuse(EOPNOTSUPP, "a queue pair of type %d: MRC has reliable connections only (IBV_QPT_RC)", attr->qp_type);
    if (attr->srq)
        return refuse(EOPNOTSUPP, "a shared receive queue: each queue pair has its own receives");
    if (!attr->send_cq || !attr->recv_cq)
        return refuse(EINVAL, "a queue pair needs two completion queues, which may be the same");
    if (attr->cap.max_send_sge > 1 || attr->cap.max_recv_sge > 1)
        return refuse(EINVAL, "%u and %u ranges per request: a write takes one", attr->cap.max_send_sge,
                      attr->cap.max_recv_sge);
    if (attr->cap.max_send_wr > max_qp_wr(nic) || attr->cap.max_recv_wr > max_qp_wr(nic))
        return refuse(EINVAL, "%u writes and %u receives of a queue pair: %u are the most (max_qp_wr)", attr->cap.max_send_wr,
                      attr->cap.max_recv_wr, max_qp_wr(nic));
    if (attr->cap.max_inline_data > INLINE_MAX)
        return refuse(EINVAL, "%u bytes of inline data: %d are the most", attr->cap.max_inline_data, INLINE_MAX);
    return 0;
}

static void keep(struct nic *nic, struct mrc_qp *qp, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint64_t qpn)
{
    attr->cap.max_send_wr = attr->cap.max_send_wr ? attr->cap.max_send_wr : 1;
    attr->cap.max_recv_wr = attr->cap.max_recv_wr ? attr->cap.max_recv_wr : 1;
    attr->cap.max_send_sge = attr->cap.max_recv_sge = 1;
    qp->qp = &qp->verbs;
    qp->made = *attr;
    qp->send_cq = (struct mrc_cq *)attr->send_cq;
    qp->recv_cq = (struct mrc_cq *)attr->recv_cq;
    qp->verbs.context = &nic->verbs.context;
    qp->verbs.qp_context = attr->qp_context;
    qp->verbs.pd = pd;
    qp->verbs.send_cq = attr->send_cq;
    qp->verbs.recv_cq = attr->recv_cq;
    qp->verbs.handle = qp->verbs.qp_num = (uint32_t)qpn;
    qp->verbs.state = IBV_QPS_RESET;
    qp->verbs.qp_type = attr->qp_type;
    pthread_mutex_init(&qp->verbs.mutex, NULL);
    pthread_cond_init(&qp->verbs.cond, NULL);
    qp->send_cq->users++;
    qp->recv_cq->users++;
    qp->next = nic->qps[qpn % TABLE];
    nic->qps[qpn % TABLE] = qp;
}

struct mrc_qp *pair_make(struct nic *nic, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    uint64_t qpn = 0;
    int error = check_capabilities(nic, attr);
    struct mrc_qp *qp = error ? NULL : calloc(1, sizeof *qp);
    if (!qp)
        return NULL;
    pthread_mutex_lock(&nic->lock);
    error = uverbs_call(nic, "create_qp",
                      ",\"cq\":%u,\"recv_cq\":%u,\"attributes\":{\"max_send_wr\":%u,\"max_recv_wr\":%u,\"sq_sig_all\":%s,\"strict\":%s}",
                      ((struct mrc_cq *)attr->send_cq)->number, ((struct mrc_cq *)attr->recv_cq)->number,
                      attr->cap.max_send_wr ? attr->cap.max_send_wr : 1, attr->cap.max_recv_wr ? attr->cap.max_recv_wr : 1,
                      attr->sq_sig_all ? "true" : "false", strict_mode() ? "true" : "false");
    if (!error && (!text_integer(text_find(nic->answer, "result.qpn"), &qpn) || qpn >> 24 ||
                   pair_by_number(nic, (uint32_t)qpn)))
        error = EPROTO;
    if (!error)
        keep(nic, qp, pd, attr, qpn);
    pthread_mutex_unlock(&nic->lock);
    if (error) {
        free(qp);
        errno = error;
        return NULL;
    }
    return qp;
}

PUBLIC struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct mrc_qp *qp = pair_make(nic_of(pd->context), pd, attr);
    return qp ? &qp->verbs : NULL;
}

PUBLIC struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return pair_of(qp)->extended.wr_start ? &pair_of(qp)->extended : NULL;
}

PUBLIC int ibv_destroy_qp(struct ibv_qp *verbs)
{
    struct nic *nic = nic_of(verbs->context);
    struct mrc_qp *qp = pair_of(verbs);
    pthread_mutex_lock(&nic->lock);
    int error = nic->fd >= 0 ? uverbs_call(nic, "destroy_qp", ",\"qpn\":%u", verbs->qp_num) : 0;
    uint64_t forgiven = 0;
    if (!error && nic->fd >= 0 && text_integer(text_find(nic->answer, "result.forgiven"), &forgiven) && forgiven)
        strictly(EINVAL, "%lu packets of a peer to memory of another protection domain, or to a queue pair whose"
                         " qp_access_flags have no REMOTE_WRITE", (unsigned long)forgiven);
    if (error == EIO)
        error = 0;
    if (!error) {
        struct mrc_qp **at = &nic->qps[verbs->qp_num % TABLE];
        while (*at != qp)
            at = &(*at)->next;
        *at = qp->next;
        cq_forget(qp->send_cq, verbs->qp_num);
        cq_forget(qp->recv_cq, verbs->qp_num);
        qp->send_cq->users--;
        qp->recv_cq->users--;
    }
    pthread_mutex_unlock(&nic->lock);
    if (!error) {
        free(qp->built_wrs);
        free(qp->built_sges);
        free(qp->built_bytes);
        free(qp);
    }
    return error;
}

/* What verbs have set so far, with what this call sets. */
static struct ibv_qp_attr merged(const struct mrc_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp_attr set = qp->set;
    if (mask & IBV_QP_AV)
        set.ah_attr = attr->ah_attr;
    if (mask & IBV_QP_DEST_QPN)
        set.dest_qp_num = attr->dest_qp_num;
    if (mask & IBV_QP_RQ_PSN)
        set.rq_psn = attr->rq_psn & 0xffffff;
    if (mask & IBV_QP_PATH_MTU)
        set.path_mtu = attr->path_mtu;
    if (mask & IBV_QP_SQ_PSN)
        set.sq_psn = attr->sq_psn & 0xffffff;
    if (mask & IBV_QP_PORT)
        set.port_num = attr->port_num;
    if (mask & IBV_QP_ACCESS_FLAGS)
        set.qp_access_flags = attr->qp_access_flags;
    if (mask & IBV_QP_TIMEOUT)
        set.timeout = attr->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        set.retry_cnt = attr->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        set.rnr_retry = attr->rnr_retry;
    return set;
}

static int check_modification(const struct ibv_qp_attr *attr, int mask)
{
    const int known = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
                      IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
                      IBV_QP_MIN_RNR_TIMER | IBV_QP_EN_SQD_ASYNC_NOTIFY;
    if (mask & ~known)
        return refuse(EINVAL, "the attributes %#x of a queue pair cannot be modified", mask & ~known);
    if (mask & IBV_QP_STATE && ((unsigned int)attr->qp_state >= STATES || !state_names[attr->qp_state]))
        return refuse(EINVAL, "state %d: MRC has RESET, INIT, RTR, RTS, SQD and ERR", attr->qp_state);
    if (mask & IBV_QP_CUR_STATE && ((unsigned int)attr->cur_qp_state >= STATES || !state_names[attr->cur_qp_state]))
        return refuse(EINVAL, "current state %d: MRC has RESET, INIT, RTR, RTS, SQD and ERR", attr->cur_qp_state);
    if (mask & IBV_QP_PORT && attr->port_num != PORT)
        return refuse(EINVAL, "port %u: a device has one, port %d, for all planes", attr->port_num, PORT);
    if (mask & IBV_QP_PATH_MTU && (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096))
        return refuse(EINVAL, "path MTU %d: it must be from 1 (256 bytes) to 5 (4096 bytes)", attr->path_mtu);
    if (mask & IBV_QP_AV && !attr->ah_attr.is_global)
        return refuse(EINVAL, "an address without GID (is_global is 0): hosts are found by their GIDs");
    return 0;
}

/* The peer, as a member of the request; empty unless the step needs it. */
static void peer_text(const struct ibv_qp_attr *set, char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, set->ah_attr.grh.dgid.raw, address, sizeof address);
    int length = snprintf(text, size, ",\"peer\":{\"address\":\"%s\",\"qpn\":%u,\"psn\":%u", address, set->dest_qp_num,
                          set->rq_psn);
    if (set->path_mtu)
        length += snprintf(text + length, size - (size_t)length, ",\"pmtu\":%u", 128u << set->path_mtu);
    snprintf(text + length, size - (size_t)length, "}");
}

enum { TIMEOUT_UNITS = 2, TIMEOUT_MAX = 24, EXP_WITHOUT_END = 25 }; /* 4.096 µs * 2^t of verbs are 1.024 µs * 2^(t + 2) here */

/* Timeout and retries of a program that knows verbs only; locked. Verbs' values are made for round trips of microseconds:
 * a timeout is the lab's own, which follows from its round trip, if that is longer. 0 is without end, as in verbs. MRC's
 * retries are then linear ones, so that their number means what it says. */
static int retry_text(struct mrc_qp *qp, const struct ibv_qp_attr *set, int mask, char *text, size_t size)
{
    struct nic *nic = nic_of(qp->verbs.context);
    uint64_t own = 0;
    text[0] = '\0';
    if (~mask & (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT)) /* verbs ask for both on the way to RTS */
        return 0;
    int error = uverbs_call(nic, "query_qp", ",\"qpn\":%u", qp->verbs.qp_num);
    if (error)
        return error;
    if (!text_integer(text_find(nic->answer, "result.attributes.timeout"), &own))
        return EPROTO;
    unsigned int wanted = set->timeout ? set->timeout + TIMEOUT_UNITS : 0;
    wanted = wanted > own ? wanted : (unsigned int)own;
    int length = snprintf(text, size, ",\"timeout\":%u", wanted < TIMEOUT_MAX ? wanted : TIMEOUT_MAX);
    if (strcmp(nic->transport, "mrc"))
        snprintf(text + length, size - (size_t)length, ",\"retry_cnt\":%u", set->timeout ? set->retry_cnt : 7);
    else
        snprintf(text + length, size - (size_t)length, ",\"linear_cnt\":%u,\"exp_cnt\":%u", set->retry_cnt,
                 set->timeout ? 0 : EXP_WITHOUT_END);
    return 0;
}

int pair_modify(struct mrc_qp *qp, struct ibv_qp_attr *attr, int mask, const char *more)
{
    struct nic *nic = nic_of(qp->verbs.context);
    char state[64] = "", current[64] = "", peer[256] = "", psn[48] = "", retries[96] = "", domain[48] = "", drained[32] = "";
    int error = check_modification(attr, mask);
    if (error)
        return error;
    pthread_mutex_lock(&nic->lock);
    error = strict_step(qp, attr, mask, more);
    if (error) {
        pthread_mutex_unlock(&nic->lock);
        return error;
    }
    struct ibv_qp_attr set = merged(qp, attr, mask);
    if (mask & IBV_QP_STATE)
        snprintf(state, sizeof state, ",\"state\":\"%s\"", state_names[attr->qp_state]);
    if (mask & IBV_QP_CUR_STATE)
        snprintf(current, sizeof current, ",\"cur_state\":\"%s\"", state_names[attr->cur_qp_state]);
    if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR)
        peer_text(&set, peer, sizeof peer);
    if (mask & IBV_QP_SQ_PSN)
        snprintf(psn, sizeof psn, ",\"sq_psn\":%u", set.sq_psn);
    if (mask & IBV_QP_ACCESS_FLAGS || (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_INIT))
        snprintf(domain, sizeof domain, ",\"domain\":%d", set.qp_access_flags & IBV_ACCESS_REMOTE_WRITE ? (int)qp->verbs.pd->handle : -1);
    if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
        snprintf(drained, sizeof drained, ",\"tell_drained\":true");
    char attributes[1024];
    if (!more)
        error = retry_text(qp, &set, mask, retries, sizeof retries);
    snprintf(attributes, sizeof attributes, "%s%s%s", psn, domain, more ? more : retries);
    error = error ? error : uverbs_call(nic, "modify_qp", ",\"qpn\":%u%s%s%s%s,\"attributes\":{%s}", qp->verbs.qp_num, state, current,
                      peer, drained, attributes[0] ? attributes + 1 : "");
    if (!error) {
        qp->set = set;
        if (mask & IBV_QP_STATE)
            qp->verbs.state = attr->qp_state;
        if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
            cq_forget(qp->send_cq, qp->verbs.qp_num);
            cq_forget(qp->recv_cq, qp->verbs.qp_num);
            qp->sends = qp->receives = 0;
        }
    }
    pthread_mutex_unlock(&nic->lock);
    return error;
}

PUBLIC int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    return pair_modify(pair_of(qp), attr, mask, NULL);
}

int pair_query(struct mrc_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *made)
{
    struct nic *nic = nic_of(qp->verbs.context);
    char name[16] = "";
    uint64_t psn = 0;
    int error = uverbs_call(nic, "query_qp", ",\"qpn\":%u", qp->verbs.qp_num);
    if (error)
        return error;
    text_string(text_find(nic->answer, "result.state"), name, sizeof name);
    for (int state = 0; state < STATES; state++)
        if (state_names[state] && !strcmp(state_names[state], name))
            qp->verbs.state = (enum ibv_qp_state)state;
    if (attr) {
        *attr = qp->set;
        attr->qp_state = attr->cur_qp_state = qp->verbs.state;
        attr->cap = qp->made.cap;
        attr->sq_draining = qp->verbs.state == IBV_QPS_SQD && !text_true(text_find(nic->answer, "result.drained"));
        if (text_integer(text_find(nic->answer, "result.info.psn"), &psn))
            attr->sq_psn = (uint32_t)psn;
    }
    if (made)
        *made = qp->made;
    return 0;
}

PUBLIC int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *made)
{
    struct nic *nic = nic_of(qp->context);
    (void)mask; /* what is not asked for may be filled as well */
    pthread_mutex_lock(&nic->lock);
    int error = pair_query(pair_of(qp), attr, made);
    pthread_mutex_unlock(&nic->lock);
    return error;
}
