/* mrc.h: contexts, completions, hints, queue pairs. */
#include <mrc.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrc_context.h"

struct mrc_qp_hint {
    struct nic *nic;
    uint32_t number;
};

enum { MPR_MAX = 64 }; /* in units of 128 PSNs */

/* --- the device ---------------------------------------------------------------------------------------------- */

PUBLIC int mrc_query_device(struct ibv_context *context, struct mrc_device_attr *attr, int *supported)
{
    struct nic *nic = nic_of(context);
    bool mrc = !strcmp(nic->transport, "mrc");
    if (supported)
        *supported = mrc;
    if (!attr)
        return 0;
    memset(attr, 0, sizeof *attr);
    if (!mrc)
        return 0;
    attr->mrc_protocol_version = 1u << MRC_PROTOCOL_VERSION_1;
    attr->wimm_attr.max_wimm = attr->wimm_attr.max_wimm_dest = UINT16_MAX; /* the NIC has more than the field */
    attr->mpr_attr.max_mpr = MPR_MAX;
    attr->mpr_attr.mpr_resolution = 1;
    attr->qp_attr.max_qp_hint = 4096;
    attr->cap = MRC_DEVICE_CAP_TRIM_NACK | MRC_DEVICE_CAP_DYNAMIC_MPR;
    return 0;
}

PUBLIC int mrc_query_device_ex(struct ibv_context *context, struct mrc_context *mrc, struct mrc_device_attr *attr,
                               int *supported)
{
    (void)mrc;
    return mrc_query_device(context, attr, supported);
}

PUBLIC void mrc_query_version(uint32_t *current, uint32_t *oldest, uint32_t *vendor, uint32_t *vendor_oldest)
{
    if (current)
        *current = MRC_API_VER(1, 0, 1);
    if (oldest)
        *oldest = MRC_API_VER(1, 0, 0);
    if (vendor)
        *vendor = 0;
    if (vendor_oldest)
        *vendor_oldest = 0;
}

/* Less than 1.0.0 states no version: 0, and the protocol version that OCP's own program gives in its place. */
PUBLIC struct mrc_context *mrc_create_context(struct ibv_context *context, struct mrc_context_attr *attr)
{
    struct mrc_context *made = calloc(1, sizeof *made);
    if (attr && attr->mrc_vendor_api_version_used)
        log_line(LOG_WARN, "vendor API version %#x has no effect: there is no vendor", attr->mrc_vendor_api_version_used);
    if (made) {
        made->nic = nic_of(context);
        if (attr && attr->mrc_api_version_used >= MRC_API_VER(1, 0, 0))
            made->nic->event_states = attr->mrc_api_version_used >= MRC_API_VER(1, 0, 1);
    }
    return made;
}

PUBLIC int mrc_destroy_context(struct mrc_context *context)
{
    free(context);
    return 0;
}

/* --- completions --------------------------------------------------------------------------------------------- */

PUBLIC int mrc_create_comp_channel(struct mrc_context *context, struct mrc_comp_channel **made)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(&context->nic->verbs.context);
    if (!channel)
        return errno;
    *made = (struct mrc_comp_channel *)channel;
    return 0;
}

PUBLIC int mrc_get_comp_channel_fd(struct mrc_comp_channel *channel, int *fd)
{
    *fd = channel->channel.fd;
    return 0;
}

PUBLIC int mrc_destroy_comp_channel(struct mrc_comp_channel *channel)
{
    return ibv_destroy_comp_channel(&channel->channel);
}

PUBLIC struct mrc_cq *mrc_create_cq(struct mrc_context *context, int cqe, void *cq_context,
                                    struct mrc_comp_channel *channel, int vector)
{
    (void)vector; /* an agent has one thread */
    return cq_make(context->nic, "create_cq", cqe, cq_context, channel ? &channel->channel : NULL);
}

PUBLIC int mrc_poll_cq(struct mrc_cq *cq, int count, struct ibv_wc *wc)
{
    if (cq->of_events)
        return failed(refuse(EINVAL, "a queue of EV events has no completions"));
    int found = cq_poll(&cq->cq, count, wc);
    return found < 0 ? failed(-found) : found;
}

PUBLIC int mrc_destroy_cq(struct mrc_cq *cq)
{
    return ibv_destroy_cq(&cq->cq);
}

PUBLIC int mrc_req_notify_cq(struct mrc_cq *cq, int solicited_only)
{
    return cq_arm(&cq->cq, solicited_only);
}

PUBLIC int mrc_get_cq_event(struct mrc_comp_channel *channel, struct mrc_cq **found, void **cq_context)
{
    struct ibv_cq *cq;
    if (ibv_get_cq_event(&channel->channel, &cq, cq_context))
        return -1;
    *found = (struct mrc_cq *)cq;
    return 0;
}

PUBLIC void mrc_ack_cq_events(struct mrc_cq *cq, unsigned int count)
{
    ibv_ack_cq_events(&cq->cq, count);
}

/* --- hints --------------------------------------------------------------------------------------------------- */

static int hint_text(const struct mrc_qp_hint_attr *attr, int mask, char *text, size_t size)
{
    const struct {
        int bit, value;
        const char *name;
    } members[] = {
        {MRC_QP_HINT_NUM_QPS_PER_PEER, attr->num_qps_per_peer, "num_qps_per_peer"},
        {MRC_QP_HINT_NUM_SEND_PEERS, attr->num_send_peers, "num_send_peers"},
        {MRC_QP_HINT_NUM_REMOTE_RECV_PEERS, attr->num_remote_recv_peers, "num_remote_recv_peers"},
    };
    size_t length = 0;
    if (mask & ~(MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS | MRC_QP_HINT_NUM_REMOTE_RECV_PEERS))
        return refuse(EINVAL, "hint attributes %#x: there is no vendor (VENDOR_CFG)", mask);
    for (int at = 0; at < 3; at++)
        if (mask & members[at].bit)
            length += (size_t)snprintf(text + length, size - length, "%s\"%s\":%d", length ? "," : "", members[at].name,
                                       members[at].value);
    text[length] = '\0';
    return 0;
}

PUBLIC struct mrc_qp_hint *mrc_create_qp_hint(struct mrc_context *context, struct mrc_qp_hint_init_attr *attr)
{
    struct mrc_qp_hint *hint = calloc(1, sizeof *hint);
    struct nic *nic = context->nic;
    char text[256];
    uint64_t number = 0;
    int mask = 0;
    if (!hint)
        return NULL;
    mask |= attr->attr.num_qps_per_peer ? MRC_QP_HINT_NUM_QPS_PER_PEER : 0; /* 0: not said */
    mask |= attr->attr.num_send_peers ? MRC_QP_HINT_NUM_SEND_PEERS : 0;
    mask |= attr->attr.num_remote_recv_peers ? MRC_QP_HINT_NUM_REMOTE_RECV_PEERS : 0;
    hint_text(&attr->attr, mask, text, sizeof text);
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "create_qp_hint", ",\"attributes\":{%s}", text);
    if (!error && !text_integer(text_find(nic->answer, "result.hint"), &number))
        error = EPROTO;
    pthread_mutex_unlock(&nic->lock);
    if (error) {
        free(hint);
        errno = error;
        return NULL;
    }
    *hint = (struct mrc_qp_hint){nic, (uint32_t)number};
    return hint;
}

PUBLIC int mrc_destroy_qp_hint(struct mrc_qp_hint *hint)
{
    pthread_mutex_lock(&hint->nic->lock);
    int error = uverbs_call(hint->nic, "destroy_qp_hint", ",\"hint\":%u", hint->number);
    pthread_mutex_unlock(&hint->nic->lock);
    if (!error || error == EIO)
        free(hint);
    return error == EIO ? 0 : failed(error);
}

PUBLIC int mrc_query_qp_hint(struct mrc_qp_hint *hint, struct mrc_qp_hint_attr *attr, int mask)
{
    struct nic *nic = hint->nic;
    (void)mask; /* what is not asked for may be filled as well */
    memset(attr, 0, sizeof *attr);
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "query_qp_hint", ",\"hint\":%u", hint->number);
    if (!error) {
        attr->num_qps_per_peer = (int)text_integer_at(nic->answer, "result.num_qps_per_peer");
        attr->num_send_peers = (int)text_integer_at(nic->answer, "result.num_send_peers");
        attr->num_remote_recv_peers = (int)text_integer_at(nic->answer, "result.num_remote_recv_peers");
    }
    pthread_mutex_unlock(&nic->lock);
    return failed(error);
}

PUBLIC int mrc_modify_qp_hint(struct mrc_qp_hint *hint, struct mrc_qp_hint_attr *attr, int mask)
{
    char text[256];
    int error = hint_text(attr, mask, text, sizeof text);
    if (error)
        return failed(error);
    pthread_mutex_lock(&hint->nic->lock);
    error = uverbs_call(hint->nic, "modify_qp_hint", ",\"hint\":%u,\"attributes\":{%s}", hint->number, text);
    pthread_mutex_unlock(&hint->nic->lock);
    return failed(error);
}

/* --- queue pairs --------------------------------------------------------------------------------------------- */

PUBLIC struct mrc_qp *mrc_create_qp(struct mrc_context *context, struct mrc_qp_init_attr *attr)
{
    uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    if (attr->send_ops_flags & ~writes) {
        refuse(EOPNOTSUPP, "a queue pair with the operations %#lx: MRC carries RDMA writes, with and without immediate",
               (unsigned long)(attr->send_ops_flags & ~writes));
        return NULL;
    }
    struct ibv_qp_init_attr plain = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq ? &attr->send_cq->cq : NULL,
        .recv_cq = attr->recv_cq ? &attr->recv_cq->cq : NULL,
        .cap = attr->cap,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = attr->sq_sig_all,
    };
    struct mrc_qp *qp = pair_make(context->nic, attr->pd, &plain);
    if (!qp)
        return NULL;
    attr->cap = plain.cap;
    pair_extend(qp, attr->send_ops_flags ? attr->send_ops_flags : writes);
    return qp;
}

PUBLIC int mrc_destroy_qp(struct mrc_qp *qp)
{
    return ibv_destroy_qp(&qp->verbs);
}

PUBLIC int mrc_get_qpn(struct mrc_qp *qp, uint32_t *qpn)
{
    *qpn = qp->verbs.qp_num;
    return 0;
}

/* The attributes of a mask as members of the request, each with a comma in front. */
static int attribute_text(const struct mrc_qp_attr *attr, int mask, char *text, size_t size)
{
    const struct {
        int bit;
        const char *name;
        uint64_t value;
    } members[] = {
        {MRC_QP_MAX_WIMM, "max_wimm", attr->wimm.max_wimm},
        {MRC_QP_MAX_WIMM_DEST, "max_wimm_dest", attr->wimm.max_wimm_dest},
        {MRC_QP_MPR, "mpr", attr->mpr.mpr},
        {MRC_QP_MPR_DEST, "mpr_dest", attr->mpr.mpr_dest},
        {MRC_QP_TIMEOUT, "timeout", attr->timeout},
        {MRC_QP_EV_PROFILE_ID, "ev_profile_id", attr->profile.ev_profile_id},
        {MRC_QP_CC_PROFILE_ID, "cc_profile_id", attr->profile.cc_profile_id},
        {MRC_QP_HINT, "qp_hint", mask & MRC_QP_HINT && attr->qp_hint ? attr->qp_hint->number : 0},
        {MRC_QP_RETRY_CNT, "linear_cnt", attr->retry.linear_cnt},
        {MRC_QP_RETRY_CNT, "exp_cnt", attr->retry.exp_cnt},
        {MRC_QP_CAP, "cap", attr->cap},
    };
    size_t length = 0;
    if (mask & (int)MRC_QP_VENDOR_CFG)
        return refuse(EINVAL, "VENDOR_CFG of a queue pair: there is no vendor");
    if (mask & ~(MRC_QP_CAP * 2 - 1))
        return refuse(EINVAL, "the MRC attributes %#x of a queue pair are unknown", mask);
    text[0] = '\0';
    for (size_t at = 0; at < sizeof members / sizeof *members; at++)
        if (mask & members[at].bit)
            length += (size_t)snprintf(text + length, size - length, ",\"%s\":%lu", members[at].name,
                                       (unsigned long)members[at].value);
    return 0;
}

PUBLIC int mrc_modify_qp(struct mrc_qp *qp, struct ibv_qp_attr *verbs, int verbs_mask, struct mrc_qp_attr *attr, int mask)
{
    char text[512] = "";
    struct ibv_qp_attr none = {0};
    int error = mask ? attribute_text(attr, mask, text, sizeof text) : 0;
    if (!error)
        error = pair_modify(qp, verbs ? verbs : &none, verbs ? verbs_mask : 0, text);
    if (!error && mask & MRC_QP_HINT)
        qp->hint = attr->qp_hint;
    return error;
}

PUBLIC int mrc_query_qp(struct mrc_qp *qp, struct ibv_qp_attr *verbs, int verbs_mask, struct mrc_qp_attr *attr, int mask,
                        struct mrc_qp_init_attr *made)
{
    struct nic *nic = nic_of(qp->verbs.context);
    struct ibv_qp_init_attr plain;
    (void)verbs_mask, (void)mask; /* what is not asked for may be filled as well */
    pthread_mutex_lock(&nic->lock);
    int error = pair_query(qp, verbs, &plain);
#define TOLD(name) text_integer_at(nic->answer, "result.attributes." name)
    if (!error && attr) {
        uint64_t wimm = TOLD("max_wimm"), wimm_dest = TOLD("max_wimm_dest"); /* the field has 16 bits */
        memset(attr, 0, sizeof *attr);
        attr->wimm.max_wimm = (uint16_t)(wimm < UINT16_MAX ? wimm : UINT16_MAX);
        attr->wimm.max_wimm_dest = (uint16_t)(wimm_dest < UINT16_MAX ? wimm_dest : UINT16_MAX);
        attr->mpr.mpr = (uint8_t)TOLD("mpr");
        attr->mpr.mpr_dest = (uint8_t)TOLD("mpr_dest");
        attr->timeout = (uint8_t)TOLD("timeout");
        attr->profile.ev_profile_id = TOLD("ev_profile_id");
        attr->profile.cc_profile_id = TOLD("cc_profile_id");
        attr->retry.linear_cnt = (uint8_t)TOLD("linear_cnt");
        attr->retry.exp_cnt = (uint8_t)TOLD("exp_cnt");
        attr->cap = (uint32_t)TOLD("cap");
        attr->qp_hint = qp->hint;
    }
#undef TOLD
    pthread_mutex_unlock(&nic->lock);
    if (!error && made)
        *made = (struct mrc_qp_init_attr){
            .qp_context = plain.qp_context,
            .send_cq = qp->send_cq,
            .recv_cq = qp->recv_cq,
            .cap = plain.cap,
            .sq_sig_all = plain.sq_sig_all,
            .pd = qp->verbs.pd,
            .protocol_version = MRC_PROTOCOL_VERSION_1,
        };
    return error;
}

PUBLIC int mrc_post_send(struct mrc_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    return pair_post_send(&qp->verbs, wr, bad);
}

PUBLIC int mrc_post_recv(struct mrc_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return failed(pair_post_recv(&qp->verbs, wr, bad));
}

PUBLIC int mrc_get_async_event(struct mrc_context *context, struct mrc_async_event *event)
{
    struct ibv_async_event found;
    if (ibv_get_async_event(&context->nic->verbs.context, &found))
        return -1;
    *event = (struct mrc_async_event){.event_type = found.event_type};
    if (found.event_type == IBV_EVENT_PORT_ACTIVE || found.event_type == IBV_EVENT_PORT_ERR)
        event->element.port_num = found.element.port_num;
    else if (found.event_type == IBV_EVENT_CQ_ERR)
        event->element.cq = (struct mrc_cq *)found.element.cq;
    else if (found.event_type != IBV_EVENT_DEVICE_FATAL)
        event->element.qp = pair_of(found.element.qp);
    return 0;
}

PUBLIC void mrc_ack_async_event(struct mrc_async_event *event)
{
    (void)event;
}
