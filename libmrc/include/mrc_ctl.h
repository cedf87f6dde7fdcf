/* The MRC API for controllers, version 1.0.1: ports, EVs, congestion control, events and probes of a NIC.
 *
 * Functions that return int give 0, or -1 with errno set. The table in docs/reference/endpoint.md says for each how the
 * lab has it. tests/libmrc compares all that is declared here with OCP's header. */
#ifndef MRCLAB_MRC_CTL_H
#define MRCLAB_MRC_CTL_H

#include <infiniband/verbs.h>
#include <mrc.h>
#include <mrc_ctl_api_ver.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MRC_CTL_MAX_VENDOR_CFG_SIZE 128 /* bytes */
#define MRC_CTL_EV_MAX_BYTES 32

/* --- the device and its ports --- */
enum mrc_ctl_protocol_version { MRC_CTL_PROTOCOL_VERSION_0 = 0, MRC_CTL_PROTOCOL_VERSION_1 = 1 };

enum mrc_ctl_profile_state { MRC_CTL_PROFILE_INIT, MRC_CTL_PROFILE_OFFLINE, MRC_CTL_PROFILE_ONLINE };

enum mrc_ctl_attr_opt {
    MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE = 1,
    MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE = 2,
    MRC_CTL_OPT_CAP_EV_EVENT = 4,
    MRC_CTL_OPT_CAP_EV_EXPLICIT_RANGE = 8,
    MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT = 16,
    MRC_CTL_OPT_CAP_EP_OP_EV_PROBE = 32,
};

struct mrc_ctl_device_attr {
    uint32_t mrc_ctl_protocol_version;
    struct {
        uint32_t ev_max_fmt_profiles;
        uint32_t ev_max_profiles;
        uint32_t ev_max_count;
        uint32_t ev_free_count;
        uint32_t ev_max_count_profile;
        uint32_t ev_count_align;
        uint32_t ev_max_width;
        uint32_t ev_fmt_mode_mask;
        uint32_t ev_mode_mask;
        uint32_t ev_op_max_entries;
    } ev;
    struct {
        uint32_t cc_max_profiles;
        const char **algorithms; /* names, then NULL */
    } cc;
    uint32_t phy_port_mask;
    uint32_t opt_attr; /* bits of enum mrc_ctl_attr_opt */
};

int mrc_ctl_query_device(struct ibv_context *, struct mrc_ctl_device_attr *);
#if MRC_CTL_API_VER_USED >= MRC_CTL_API_VER(1, 0, 1)
int mrc_ctl_query_device_ex(struct ibv_context *, struct mrc_context *, struct mrc_ctl_device_attr *, int *supported);
#endif
void mrc_ctl_query_version(uint32_t *current, uint32_t *oldest, uint32_t *vendor, uint32_t *vendor_oldest);

enum mrc_ctl_port_admin_state { MRC_CTL_PORT_ADMIN_DISABLED = 0, MRC_CTL_PORT_ADMIN_ENABLED = 1 };

enum mrc_ctl_port_attr_mask { MRC_CTL_PORT_ADMIN_STATE = 1 };

struct mrc_ctl_port_attr {
    enum mrc_ctl_port_admin_state port_admin_state;
};

int mrc_ctl_query_port(struct mrc_context *, uint8_t port_num, struct mrc_ctl_port_attr *, int mask);
int mrc_ctl_modify_port(struct mrc_context *, uint8_t port_num, struct mrc_ctl_port_attr *, int mask);

/* --- formats of EVs --- */
enum mrc_ctl_ev_fmt_mode { MRC_CTL_EV_FMT_MODE_STEV = 1, MRC_CTL_EV_FMT_MODE_SRV6 = 2, MRC_CTL_EV_FMT_MODE_UDP = 4 };

enum mrc_ctl_ev_fmt_op { MRC_CTL_EV_FMT_OP_MODIFY_FIELDS, MRC_CTL_EV_FMT_OP_QUERY_FIELDS };

enum mrc_ctl_ev_fmt_profile_attr_mask {
    MRC_CTL_EV_FMT_PROFILE_STATE = 1,
    MRC_CTL_EV_FMT_PROFILE_CUR_STATE = 2,
    MRC_CTL_EV_FMT_PROFILE_MODE = 4,
    MRC_CTL_EV_FMT_PROFILE_OP = 8,
    MRC_CTL_EV_FMT_VENDOR_CFG = 1 << 31,
};

struct mrc_ctl_ev_fmt_field {
    uint8_t width; /* bits */
};

struct mrc_ctl_ev_fmt_profile_attr {
    enum mrc_ctl_profile_state profile_state;
    enum mrc_ctl_profile_state cur_profile_state;
    enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
    struct {
        enum mrc_ctl_ev_fmt_op op;
        struct mrc_ctl_ev_fmt_field *fmt_fields;
        int fmt_field_count;
    } ev_fmt_op;
    uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

int mrc_ctl_modify_ev_fmt_profile(struct mrc_context *, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *, int mask);
int mrc_ctl_query_ev_fmt_profile(struct mrc_context *, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *, int mask);

/* --- EVs and the profiles that hold them --- */
typedef uint8_t mrc_ctl_ev_t[MRC_CTL_EV_MAX_BYTES];

struct mrc_ctl_ev {
    mrc_ctl_ev_t val;
    uint8_t port;
};

#define MRC_CTL_EV_UNPOPULATED ((struct mrc_ctl_ev){.val = {0}, .port = 0}) /* a place without an EV */

enum mrc_ctl_ev_state {
    MRC_CTL_EV_GOOD = 1,
    MRC_CTL_EV_ASSUMED_BAD = 2,
    MRC_CTL_EV_DENIED = 4,
    MRC_CTL_EV_UNKNOWN = 1 << 31,
};

enum mrc_ctl_ev_mode { MRC_CTL_EV_MODE_AUTO = 1, MRC_CTL_EV_MODE_EXP = 2, MRC_CTL_EV_MODE_GEN = 4 };

enum mrc_ctl_ev_op {
    MRC_CTL_EV_OP_REPLACE_EV,
    MRC_CTL_EV_OP_MODIFY_EV_STATE,
    MRC_CTL_EV_OP_QUERY_EV_STATE,
    MRC_CTL_EV_OP_QUERY_EV_ARRAY,
};

enum mrc_ctl_ev_fields_op { MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS, MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS };

enum mrc_ctl_ev_profile_attr_mask {
    MRC_CTL_EV_PROFILE_STATE = 1,
    MRC_CTL_EV_PROFILE_CUR_STATE = 2,
    MRC_CTL_EV_PROFILE_MODE = 4,
    MRC_CTL_EV_PROFILE_FMT_ID = 8,
    MRC_CTL_EV_PROFILE_COUNT = 16,
    MRC_CTL_EV_PROFILE_MIN_ACTIVE = 32,
    MRC_CTL_EV_PROFILE_EVENT_MASK = 64,
    MRC_CTL_EV_PROFILE_EV_OP = 128,
    MRC_CTL_EV_PROFILE_EV_FIELDS_OP = 256,
    MRC_CTL_EV_PROFILE_VENDOR_CFG = 1 << 31,
};

struct mrc_ctl_ev_field {
    uint32_t width;
    uint32_t init_val;
    uint32_t min_val;
    uint32_t max_val;
    uint32_t mask;
};

enum mrc_ctl_ev_op_flags { MRC_CTL_EV_OP_F_ALL_COPIES = 1 };

struct mrc_ctl_ev_op_entry {
    struct mrc_ctl_ev ev;
    struct mrc_ctl_ev ev_new;
    enum mrc_ctl_ev_state state;
    uint32_t flags;
};

struct mrc_ctl_ev_profile_attr {
    enum mrc_ctl_profile_state profile_state;
    enum mrc_ctl_profile_state cur_profile_state;
    enum mrc_ctl_ev_mode ev_mode;
    uint64_t ev_fmt_profile_id;
    uint32_t ev_count;
    uint32_t ev_min_active;
    int ev_event_mask; /* bits of enum mrc_ctl_ev_state */
    struct {
        enum mrc_ctl_ev_op op;
        struct mrc_ctl_ev_op_entry *entries;
        int entry_count;
    } ev_op;
    struct {
        enum mrc_ctl_ev_fields_op op;
        struct mrc_ctl_ev_field *fields;
        int field_count;
    } ev_fields_op;
    uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

int mrc_ctl_modify_ev_profile(struct mrc_context *, uint64_t id, struct mrc_ctl_ev_profile_attr *, int mask);
int mrc_ctl_query_ev_profile(struct mrc_context *, uint64_t id, struct mrc_ctl_ev_profile_attr *, int mask);

/* --- congestion control --- */
enum mrc_ctl_cc_profile_attr_mask {
    MRC_CTL_CC_PROFILE_STATE = 1,
    MRC_CTL_CC_PROFILE_CUR_STATE = 2,
    MRC_CTL_CC_PROFILE_ALGORITHM = 4,
    MRC_CTL_CC_PROFILE_CONFIG = 8,
    MRC_CTL_CC_PROFILE_VENDOR_CFG = 1 << 31,
};

struct mrc_ctl_cc_profile_attr {
    enum mrc_ctl_profile_state profile_state;
    enum mrc_ctl_profile_state cur_profile_state;
    const char *algorithm;
    const void *cc_config; /* of "uet-1.0-nscc": struct mrc_ctl_cc_nscc_cfg */
    uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

struct mrc_ctl_cc_nscc_cfg {
    uint8_t disable_qa;
    uint32_t adjust_bytes_threshold;
    uint32_t adjust_period_threshold;
    uint32_t base_rtt;
    float eta;
    float fi;
    float fi_scale;
    float gamma;
    float max_md_jump;
    uint32_t max_cwnd;
    uint8_t qa_gate;
    uint32_t qa_threshold;
    uint32_t target_delay;
};

int mrc_ctl_modify_cc_profile(struct mrc_context *, uint64_t id, struct mrc_ctl_cc_profile_attr *, int mask);
int mrc_ctl_query_cc_profile(struct mrc_context *, uint64_t id, struct mrc_ctl_cc_profile_attr *, int mask);

/* --- events of EVs --- */
struct mrc_ctl_ev_event {
    uint64_t profile_id;
    struct mrc_ctl_ev ev;
    uint32_t drop_count; /* events lost before this one */
#if MRC_CTL_API_VER_USED >= MRC_CTL_API_VER(1, 0, 1)
    enum mrc_ctl_ev_state state;
#endif
};

struct mrc_cq *mrc_ctl_create_ev_event_cq(struct mrc_context *, int cqe, void *cq_context, struct mrc_comp_channel *,
                                          int vector);
int mrc_ctl_poll_ev_event(struct mrc_cq *, int num_entries, struct mrc_ctl_ev_event *); /* events found; -errno */

/* --- operations between endpoints --- */
enum mrc_ctl_ep_op_type { MRC_CTL_EP_OP_EV_PROBE, MRC_CTL_EP_OP_PORT_STATUS_UPDATE };

struct mrc_ctl_ep_req {
    uint16_t req_id;
    union ibv_gid sgid;
    union ibv_gid dgid;
    enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
    struct mrc_ctl_ev req_ev;
    union {
        struct {
            uint32_t port_status;
        } port_status_update;
    } op;
};

struct mrc_ctl_ep_rsp {
    uint16_t req_id;
    uint8_t port;
    unsigned int rtt; /* ns */
    uint8_t adj_svc_time;
};

int mrc_ctl_ep_batch_send_wait(struct mrc_context *, uint8_t traffic_class, enum mrc_ctl_ep_op_type,
                               struct mrc_ctl_ep_req *, int num_req, uint32_t timeout_ns, struct mrc_ctl_ep_rsp *,
                               int *num_rsp);

#ifdef __cplusplus
}
#endif
#endif
