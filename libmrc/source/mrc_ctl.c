/* mrc_ctl.h: the device as a controller sees it, ports, congestion control, EV events, probes. */
#include <mrc_ctl.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrc_context.h"

enum { PROFILES_MAX = 256, EVS_MAX = 4096, EVENTS_MAX = 64, PROBES_MAX = 128 };
static const char nscc[] = "uet-1.0-nscc";

/* By itself the call tells of a program of 1.0.0, which is what is assumed of one that states no version. */
PUBLIC int mrc_ctl_query_device(struct ibv_context *context, struct mrc_ctl_device_attr *attr)
{
    static const char *algorithms[] = {nscc, NULL};
    struct nic *nic = nic_of(context);
    memset(attr, 0, sizeof *attr);
    if (strcmp(nic->transport, "mrc"))
        return failed(refuse(EOPNOTSUPP, "the NIC runs %s: there is nothing of MRC to control", nic->transport));
    attr->mrc_ctl_protocol_version = 1u << MRC_CTL_PROTOCOL_VERSION_1;
    attr->ev.ev_max_profiles = PROFILES_MAX;
    attr->ev.ev_max_count = attr->ev.ev_free_count = PROFILES_MAX * EVS_MAX;
    attr->ev.ev_max_count_profile = EVS_MAX;
    attr->ev.ev_count_align = 1;
    attr->ev.ev_max_width = 32;
    attr->ev.ev_fmt_mode_mask = MRC_CTL_EV_FMT_MODE_STEV; /* a value of 32 bits in the first bytes */
    attr->ev.ev_mode_mask = MRC_CTL_EV_MODE_AUTO | MRC_CTL_EV_MODE_EXP | MRC_CTL_EV_MODE_GEN;
    attr->ev.ev_op_max_entries = OP_ENTRIES_MAX;
    attr->cc.cc_max_profiles = PROFILES_MAX;
    attr->cc.algorithms = algorithms;
    attr->phy_port_mask = ((1u << nic->planes) - 1) << 1; /* bit N is port N */
    attr->opt_attr = MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE | MRC_CTL_OPT_CAP_EV_EVENT |
                     MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT | MRC_CTL_OPT_CAP_EP_OP_EV_PROBE;
    return 0;
}

PUBLIC int mrc_ctl_query_device_ex(struct ibv_context *context, struct mrc_context *mrc, struct mrc_ctl_device_attr *attr,
                                   int *supported)
{
    struct nic *nic = nic_of(context);
    bool there = !strcmp(nic->transport, "mrc");
    (void)mrc;
    if (supported)
        *supported = there;
    int error = there ? mrc_ctl_query_device(context, attr) : 0;
    nic->event_states = true; /* the function is new in 1.0.1 */
    return error;
}

PUBLIC void mrc_ctl_query_version(uint32_t *current, uint32_t *oldest, uint32_t *vendor, uint32_t *vendor_oldest)
{
    if (current)
        *current = MRC_CTL_API_VER(1, 0, 1);
    if (oldest)
        *oldest = MRC_CTL_API_VER(1, 0, 0);
    if (vendor)
        *vendor = 0;
    if (vendor_oldest)
        *vendor_oldest = 0;
}

/* --- ports ----------------------------------------------------------------------------------------------------- */

PUBLIC int mrc_ctl_query_port(struct mrc_context *context, uint8_t port, struct mrc_ctl_port_attr *attr, int mask)
{
    struct nic *nic = context->nic;
    uint64_t state = 0;
    (void)mask; /* there is one attribute */
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "query_port", ",\"port_num\":%u", port);
    if (!error && !text_integer(text_find(nic->answer, "result.port_admin_state"), &state))
        error = EPROTO;
    pthread_mutex_unlock(&nic->lock);
    if (!error)
        attr->port_admin_state = state ? MRC_CTL_PORT_ADMIN_ENABLED : MRC_CTL_PORT_ADMIN_DISABLED;
    return failed(error);
}

PUBLIC int mrc_ctl_modify_port(struct mrc_context *context, uint8_t port, struct mrc_ctl_port_attr *attr, int mask)
{
    struct nic *nic = context->nic;
    if (mask & ~MRC_CTL_PORT_ADMIN_STATE)
        return failed(refuse(EINVAL, "port attributes %#x: there is one, PORT_ADMIN_STATE", mask));
    if (!mask)
        return 0;
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "modify_port", ",\"port_num\":%u,\"port_admin_state\":%d", port, (int)attr->port_admin_state);
    pthread_mutex_unlock(&nic->lock);
    return failed(error);
}

/* --- congestion control ------------------------------------------------------------------------------------------ */

/* The parameters of NSCC that are no integers, as members of a JSON object. */
static int write_factors(const struct mrc_ctl_cc_nscc_cfg *cfg, char *text, size_t size)
{
    const struct {
        const char *name;
        float value;
    } factors[] = {{"eta", cfg->eta},
                   {"fi", cfg->fi},
                   {"fi_scale", cfg->fi_scale},
                   {"gamma", cfg->gamma},
                   {"max_md_jump", cfg->max_md_jump}};
    size_t length = 0;
    for (size_t at = 0; at < sizeof factors / sizeof *factors; at++) {
        char number[32];
        double value = (double)factors[at].value;
        if (!text_write_number(value, number, sizeof number))
            return refuse(EINVAL, "%s is %g; it must be a finite number", factors[at].name, value);
        length += (size_t)snprintf(text + length, size - length, ",\"%s\":%s", factors[at].name, number);
    }
    return 0;
}

PUBLIC int mrc_ctl_modify_cc_profile(struct mrc_context *context, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
    struct nic *nic = context->nic;
    char text[1024] = "", factors[256], algorithm[64] = "null";
    const int needed = MRC_CTL_CC_PROFILE_ALGORITHM;
    if (mask & ~(MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG) || !(mask & needed))
        return failed(refuse(EINVAL, "attributes %#x of a congestion-control profile: ALGORITHM is needed, CONFIG may be"
                                     " given; profiles are always ONLINE, and there is no vendor", mask));
    if (attr->algorithm)
        text_quote(attr->algorithm, algorithm, sizeof algorithm);
    if (mask & MRC_CTL_CC_PROFILE_CONFIG) {
        const struct mrc_ctl_cc_nscc_cfg *cfg = attr->cc_config;
        if (!cfg || !attr->algorithm || strcmp(attr->algorithm, nscc))
            return failed(refuse(EINVAL, "a configuration belongs to the algorithm %s", nscc));
        if (write_factors(cfg, factors, sizeof factors))
            return failed(EINVAL);
        snprintf(text, sizeof text,
                 "\"disable_qa\":%s,\"adjust_bytes_threshold\":%u,\"adjust_period_threshold\":%u,\"base_rtt\":%u,"
                 "\"max_cwnd\":%u,\"qa_gate\":%u,\"qa_threshold\":%u,\"target_delay\":%u%s",
                 cfg->disable_qa ? "true" : "false", cfg->adjust_bytes_threshold, cfg->adjust_period_threshold,
                 cfg->base_rtt, cfg->max_cwnd, cfg->qa_gate, cfg->qa_threshold, cfg->target_delay, factors);
    }
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "modify_cc_profile", ",\"profile\":%lu,\"algorithm\":%s,\"config\":{%s}", (unsigned long)id,
                          algorithm, text);
    pthread_mutex_unlock(&nic->lock);
    return failed(error);
}

static float told_number(const struct nic *nic, const char *path)
{
    double value = 0;
    text_number(text_find(nic->answer, path), &value);
    return (float)value;
}

/* A parameter that the NIC derives from the path reads as 0. */
PUBLIC int mrc_ctl_query_cc_profile(struct mrc_context *context, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
    struct nic *nic = context->nic;
    char name[64] = "";
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "query_cc_profile", ",\"profile\":%lu", (unsigned long)id);
    if (!error) {
        attr->profile_state = attr->cur_profile_state = MRC_CTL_PROFILE_ONLINE;
        text_string(text_find(nic->answer, "result.algorithm"), name, sizeof name);
        attr->algorithm = strcmp(name, "nscc") ? NULL : nscc; /* the NIC's name of it, and the API's */
    }
    if (!error && mask & MRC_CTL_CC_PROFILE_CONFIG && attr->cc_config)
        *(struct mrc_ctl_cc_nscc_cfg *)attr->cc_config = (struct mrc_ctl_cc_nscc_cfg){
            .disable_qa = text_true(text_find(nic->answer, "result.config.disable_qa")),
            .adjust_bytes_threshold = (uint32_t)text_integer_at(nic->answer, "result.config.adjust_bytes_threshold"),
            .adjust_period_threshold = (uint32_t)text_integer_at(nic->answer, "result.config.adjust_period_threshold"),
            .base_rtt = (uint32_t)text_integer_at(nic->answer, "result.config.base_rtt"),
            .eta = told_number(nic, "result.config.eta"),
            .fi = told_number(nic, "result.config.fi"),
            .fi_scale = told_number(nic, "result.config.fi_scale"),
            .gamma = told_number(nic, "result.config.gamma"),
            .max_md_jump = told_number(nic, "result.config.max_md_jump"),
            .max_cwnd = (uint32_t)text_integer_at(nic->answer, "result.config.max_cwnd"),
            .qa_gate = (uint8_t)text_integer_at(nic->answer, "result.config.qa_gate"),
            .qa_threshold = (uint32_t)text_integer_at(nic->answer, "result.config.qa_threshold"),
            .target_delay = (uint32_t)text_integer_at(nic->answer, "result.config.target_delay"),
        };
    pthread_mutex_unlock(&nic->lock);
    return failed(error);
}

/* --- events of EVs ----------------------------------------------------------------------------------------------- */

PUBLIC struct mrc_cq *mrc_ctl_create_ev_event_cq(struct mrc_context *context, int cqe, void *cq_context,
                                                 struct mrc_comp_channel *channel, int vector)
{
    (void)vector;
    return cq_make(context->nic, "create_ev_event_cq", cqe, cq_context, channel ? &channel->channel : NULL);
}

/* Events of version 1.0.0, which have no state. */
struct old_event {
    uint64_t profile_id;
    struct mrc_ctl_ev ev;
    uint32_t drop_count;
};

PUBLIC int mrc_ctl_poll_ev_event(struct mrc_cq *cq, int count, struct mrc_ctl_ev_event *events)
{
    struct nic *nic = nic_of(cq->cq.context);
    size_t size = nic->event_states ? sizeof *events : sizeof(struct old_event);
    int found = 0;
    if (!cq->of_events)
        return -refuse(EINVAL, "mrc_ctl_poll_ev_event: a queue of completions has no EV events");
    if (count < 1)
        return -refuse(EINVAL, "mrc_ctl_poll_ev_event: num_entries must be at least 1 (got %d)", count);
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "poll_ev_event", ",\"cq\":%u,\"num_entries\":%d", cq->number,
                          count < EVENTS_MAX ? count : EVENTS_MAX);
    const char *row = error ? NULL : text_first(text_find(nic->answer, "result.events"));
    for (; row && found < count; row = text_next(row), found++) {
        struct mrc_ctl_ev_event event = {
            .profile_id = text_integer_at(row, "profile_id"),
            .ev.port = (uint8_t)text_integer_at(row, "port"),
            .drop_count = (uint32_t)text_integer_at(row, "drop_count"),
            .state = (enum mrc_ctl_ev_state)text_integer_at(row, "state"),
        };
        memcpy(event.ev.val, &(uint32_t){(uint32_t)text_integer_at(row, "ev")}, sizeof(uint32_t));
        memcpy((char *)events + (size_t)found * size, &event, size);
    }
    if (!error && !found && nic->stepped) /* an empty poll is a wait */
        error = stepped_wait(nic, EMPTY_WAIT_MS * NS_PER_MS);
    pthread_mutex_unlock(&nic->lock);
    return error ? -error : found;
}

/* --- operations between endpoints -------------------------------------------------------------------------------- */

PUBLIC int mrc_ctl_ep_batch_send_wait(struct mrc_context *context, uint8_t traffic_class, enum mrc_ctl_ep_op_type type,
                                      struct mrc_ctl_ep_req *requests, int count, uint32_t timeout_ns,
                                      struct mrc_ctl_ep_rsp *responses, int *found)
{
    struct nic *nic = context->nic;
    char rows[PROBES_MAX * 96] = "", address[INET6_ADDRSTRLEN];
    size_t length = 0;
    (void)traffic_class; /* probes go in the plan's control class */
    *found = 0;
    if (type != MRC_CTL_EP_OP_EV_PROBE)
        return failed(refuse(EOPNOTSUPP, "PORT_STATUS_UPDATE: the NIC announces itself what mrc_ctl_modify_port does"));
    if (count < 1 || count > PROBES_MAX)
        return failed(refuse(EINVAL, "%d requests: 1 to %d go together", count, PROBES_MAX));
    for (int at = 0; at < count; at++) {
        uint32_t ev;
        memcpy(&ev, requests[at].req_ev.val, sizeof ev);
        inet_ntop(AF_INET6, requests[at].dgid.raw, address, sizeof address);
        length += (size_t)snprintf(rows + length, sizeof rows - length, "%s[%u,\"%s\",%u,%u]", at ? "," : "",
                                   requests[at].req_id, address, ev, requests[at].req_ev.port);
    }
    pthread_mutex_lock(&nic->lock);
    int error = uverbs_call(nic, "ep_batch_send_wait", ",\"op_type\":\"ev_probe\",\"requests\":[%s],\"rsp_timeout\":%u", rows,
                          timeout_ns);
    const char *row = error ? NULL : text_first(text_find(nic->answer, "result.responses"));
    for (; row && *found < count; row = text_next(row))
        responses[(*found)++] = (struct mrc_ctl_ep_rsp){
            (uint16_t)text_integer_at(row, "req_id"),
            (uint8_t)text_integer_at(row, "port"),
            (unsigned int)text_integer_at(row, "rtt"),
            0,
        };
    pthread_mutex_unlock(&nic->lock);
    return failed(error ? error : *found < count ? ETIMEDOUT : 0);
}
