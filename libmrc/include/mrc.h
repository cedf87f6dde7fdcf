/* The MRC API for programs, version 1.0.1: the interface of the OCP companion repository.
 *
 * Functions that return int give 0, or -1 with errno set; those that say so give an errno value, as verbs do. The table
 * in docs/reference/endpoint.md says for each how the lab has it. tests/libmrc compares all that is declared here with
 * OCP's header. */
#ifndef MRCLAB_MRC_H
#define MRCLAB_MRC_H

#include <infiniband/verbs.h>
#include <mrc_api_ver.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mrc_comp_channel;
struct mrc_context;
struct mrc_cq;
struct mrc_qp;
struct mrc_qp_hint;

#define MRC_MAX_VENDOR_CFG_SIZE 128 /* bytes */

/* --- the device --- */
enum mrc_protocol_version { MRC_PROTOCOL_VERSION_0 = 0, MRC_PROTOCOL_VERSION_1 = 1 };

enum mrc_device_cap { MRC_DEVICE_CAP_TRIM_NACK = 1, MRC_DEVICE_CAP_DYNAMIC_MPR = 2, MRC_DEVICE_CAP_SVC_TIME = 4 };

struct mrc_device_attr {
    uint32_t mrc_protocol_version; /* bits of enum mrc_protocol_version */
    struct {
        uint16_t max_wimm;
        uint16_t max_wimm_dest;
    } wimm_attr;
    struct {
        uint8_t max_mpr;
        uint8_t mpr_resolution;
    } mpr_attr;
    struct {
        uint32_t max_qp_hint;
    } qp_attr;
    uint32_t cap; /* bits of enum mrc_device_cap */
};

int mrc_query_device(struct ibv_context *, struct mrc_device_attr *, int *supported);
#if MRC_API_VER_USED >= MRC_API_VER(1, 0, 1)
int mrc_query_device_ex(struct ibv_context *, struct mrc_context *, struct mrc_device_attr *, int *supported);
#endif
void mrc_query_version(uint32_t *current, uint32_t *oldest, uint32_t *vendor, uint32_t *vendor_oldest);

struct mrc_context_attr {
    uint32_t mrc_api_version_used;
    uint32_t mrc_vendor_api_version_used;
};

struct mrc_context *mrc_create_context(struct ibv_context *, struct mrc_context_attr *); /* NULL: errno says why */
int mrc_destroy_context(struct mrc_context *);

/* --- completions --- */
int mrc_create_comp_channel(struct mrc_context *, struct mrc_comp_channel **); /* errno */
int mrc_get_comp_channel_fd(struct mrc_comp_channel *, int *fd);
int mrc_destroy_comp_channel(struct mrc_comp_channel *); /* errno */

struct mrc_cq *mrc_create_cq(struct mrc_context *, int cqe, void *cq_context, struct mrc_comp_channel *, int vector);
int mrc_poll_cq(struct mrc_cq *, int num_entries, struct ibv_wc *); /* completions found; -1 */
int mrc_destroy_cq(struct mrc_cq *); /* errno */
int mrc_req_notify_cq(struct mrc_cq *, int solicited_only); /* errno */
int mrc_get_cq_event(struct mrc_comp_channel *, struct mrc_cq **, void **cq_context);
void mrc_ack_cq_events(struct mrc_cq *, unsigned int count);

/* --- hints: how many queue pairs share a destination --- */
struct mrc_qp_hint_attr {
    int num_qps_per_peer;
    int num_send_peers;
    int num_remote_recv_peers;
    uint8_t vendor_cfg[MRC_MAX_VENDOR_CFG_SIZE];
};

enum mrc_qp_hint_attr_mask {
    MRC_QP_HINT_NUM_QPS_PER_PEER = 1,
    MRC_QP_HINT_NUM_SEND_PEERS = 2,
    MRC_QP_HINT_NUM_REMOTE_RECV_PEERS = 4,
    MRC_QP_HINT_VENDOR_CFG = 1 << 31,
};

struct mrc_qp_hint_init_attr {
    struct mrc_qp_hint_attr attr;
};

struct mrc_qp_hint *mrc_create_qp_hint(struct mrc_context *, struct mrc_qp_hint_init_attr *);
int mrc_destroy_qp_hint(struct mrc_qp_hint *);
int mrc_query_qp_hint(struct mrc_qp_hint *, struct mrc_qp_hint_attr *, int mask);
int mrc_modify_qp_hint(struct mrc_qp_hint *, struct mrc_qp_hint_attr *, int mask);

/* --- queue pairs --- */
struct mrc_qp_init_attr {
    void *qp_context;
    struct mrc_cq *send_cq;
    struct mrc_cq *recv_cq;
    struct ibv_qp_cap cap;
    int sq_sig_all;
    struct ibv_pd *pd;
    uint64_t send_ops_flags;
    enum mrc_protocol_version protocol_version;
};

enum mrc_qp_attr_mask {
    MRC_QP_MAX_WIMM = 1,
    MRC_QP_MAX_WIMM_DEST = 2,
    MRC_QP_MPR = 4,
    MRC_QP_MPR_DEST = 8,
    MRC_QP_TIMEOUT = 16,
    MRC_QP_EV_PROFILE_ID = 32,
    MRC_QP_CC_PROFILE_ID = 64,
    MRC_QP_HINT = 128,
    MRC_QP_RETRY_CNT = 256,
    MRC_QP_CAP = 512,
    MRC_QP_VENDOR_CFG = 1 << 31,
};

enum mrc_qp_cap {
    MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED = 1,
    MRC_QP_CAP_DYNAMIC_MPR = 2,
    MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED = 4,
};

struct mrc_qp_attr {
    struct {
        uint8_t mpr;
        uint8_t mpr_dest;
    } mpr;
    struct {
        uint16_t max_wimm;
        uint16_t max_wimm_dest;
    } wimm;
    uint8_t timeout; /* t: 1.024 us x 2^t */
    struct {
        uint64_t ev_profile_id;
        uint64_t cc_profile_id;
    } profile;
    struct {
        uint8_t linear_cnt;
        uint8_t exp_cnt;
    } retry;
    struct mrc_qp_hint *qp_hint;
    uint32_t cap; /* bits of enum mrc_qp_cap */
    uint8_t vendor_cfg[MRC_MAX_VENDOR_CFG_SIZE];
};

struct mrc_qp *mrc_create_qp(struct mrc_context *, struct mrc_qp_init_attr *);
int mrc_destroy_qp(struct mrc_qp *); /* errno */
int mrc_get_qpn(struct mrc_qp *, uint32_t *qpn);
int mrc_modify_qp(struct mrc_qp *, struct ibv_qp_attr *, int verbs_mask, struct mrc_qp_attr *, int mask); /* errno */
int mrc_query_qp(struct mrc_qp *, struct ibv_qp_attr *, int verbs_mask, struct mrc_qp_attr *, int mask,
                 struct mrc_qp_init_attr *); /* errno */
int mrc_post_recv(struct mrc_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);
int mrc_post_send(struct mrc_qp *, struct ibv_send_wr *, struct ibv_send_wr **bad); /* errno */

/* --- asynchronous events --- */
struct mrc_async_event {
    union {
        struct mrc_cq *cq;
        struct mrc_qp *qp;
        int port_num;
    } element;
    enum ibv_event_type event_type;
};

int mrc_get_async_event(struct mrc_context *, struct mrc_async_event *);
void mrc_ack_async_event(struct mrc_async_event *);

#ifdef __cplusplus
}
#endif
#endif
