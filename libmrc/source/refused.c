/* Verbs that MRC, or a NIC of the lab, does not have: each is there, and says so. */
#include <errno.h>

#include "nic.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

static int refused(const char *what)
{
    return refuse(EOPNOTSUPP, "%s: the lab's NICs have reliable connections, RDMA writes, and nothing beside", what);
}

#define REFUSED(verb, ...)                                                                                                  \
    PUBLIC int verb(__VA_ARGS__)                                                                                            \
    {                                                                                                                       \
        return refused(#verb);                                                                                              \
    }
#define REFUSED_OBJECT(object, verb, ...)                                                                                   \
    PUBLIC struct object *verb(__VA_ARGS__)                                                                                 \
    {                                                                                                                       \
        refused(#verb);                                                                                                     \
        return NULL;                                                                                                        \
    }
#define WITHOUT_EFFECT(verb, ...)                                                                                           \
    PUBLIC void verb(__VA_ARGS__)                                                                                           \
    {                                                                                                                       \
    }

REFUSED_OBJECT(ibv_srq, ibv_create_srq, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
REFUSED(ibv_modify_srq, struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
REFUSED(ibv_query_srq, struct ibv_srq *srq, struct ibv_srq_attr *attr)
REFUSED(ibv_destroy_srq, struct ibv_srq *srq)

REFUSED_OBJECT(ibv_ah, ibv_create_ah, struct ibv_pd *pd, struct ibv_ah_attr *attr)
REFUSED(ibv_init_ah_from_wc, struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
        struct ibv_ah_attr *attr)
REFUSED_OBJECT(ibv_ah, ibv_create_ah_from_wc, struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
REFUSED(ibv_destroy_ah, struct ibv_ah *ah)

REFUSED(ibv_attach_mcast, struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
REFUSED(ibv_detach_mcast, struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
REFUSED(ibv_resolve_eth_l2_from_gid, struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vlan)

REFUSED_OBJECT(ibv_context, ibv_import_device, int fd)
REFUSED_OBJECT(ibv_pd, ibv_import_pd, struct ibv_context *context, uint32_t handle)
WITHOUT_EFFECT(ibv_unimport_pd, struct ibv_pd *pd)
REFUSED_OBJECT(ibv_mr, ibv_import_mr, struct ibv_pd *pd, uint32_t handle)
WITHOUT_EFFECT(ibv_unimport_mr, struct ibv_mr *mr)
REFUSED_OBJECT(ibv_dm, ibv_import_dm, struct ibv_context *context, uint32_t handle)
WITHOUT_EFFECT(ibv_unimport_dm, struct ibv_dm *dm)

REFUSED(ibv_set_ece, struct ibv_qp *qp, struct ibv_ece *ece)
REFUSED(ibv_query_ece, struct ibv_qp *qp, struct ibv_ece *ece)

/* Structures of the kernel's connection manager, which has no NIC of the lab. */
#define REFUSED_COPY(verb)                                                                                                  \
    PUBLIC void verb(void *to, void *from)                                                                                  \
    {                                                                                                                       \
        refused(#verb);                                                                                                     \
    }
REFUSED_COPY(ibv_copy_ah_attr_from_kern)
REFUSED_COPY(ibv_copy_qp_attr_from_kern)
REFUSED_COPY(ibv_copy_path_rec_from_kern)
REFUSED_COPY(ibv_copy_path_rec_to_kern)

/* Data arrives out of order: a program that asks must not poll memory. */
PUBLIC int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
    return 0;
}

PUBLIC int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    __be16 only;
    return !ibv_query_pkey(context, port, 0, &only) && only == pkey ? 0 : -1;
}
