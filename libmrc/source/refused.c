/* Verbs that MRC, or a NIC of the lab, does not have: each is there, and says so. */
#include <errno.h>

#include "nic.h"

static int refused(const char *what)
{
    return refuse(EOPNOTSUPP, "%s: the lab's NICs have reliable connections, RDMA writes, and nothing beside", what);
}

PUBLIC struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    (void)pd, (void)attr;
    refused("ibv_create_srq");
    return NULL;
}

PUBLIC int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    (void)srq, (void)attr, (void)mask;
    return refused("ibv_modify_srq");
}

PUBLIC int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    (void)srq, (void)attr;
    return refused("ibv_query_srq");
}

PUBLIC int ibv_destroy_srq(struct ibv_srq *srq)
{
    (void)srq;
    return refused("ibv_destroy_srq");
}

PUBLIC struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    (void)pd, (void)attr;
    refused("ibv_create_ah");
    return NULL;
}

PUBLIC int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                               struct ibv_ah_attr *attr)
{
    (void)context, (void)port, (void)wc, (void)grh, (void)attr;
    return refused("ibv_init_ah_from_wc");
}

PUBLIC struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    (void)pd, (void)wc, (void)grh, (void)port;
    refused("ibv_create_ah_from_wc");
    return NULL;
}

PUBLIC int ibv_destroy_ah(struct ibv_ah *ah)
{
    (void)ah;
    return refused("ibv_destroy_ah");
}

PUBLIC int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return refused("ibv_attach_mcast");
}

PUBLIC int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return refused("ibv_detach_mcast");
}

PUBLIC int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vlan)
{
    (void)context, (void)attr, (void)mac, (void)vlan;
    return refused("ibv_resolve_eth_l2_from_gid");
}

PUBLIC struct ibv_context *ibv_import_device(int fd)
{
    (void)fd;
    refused("ibv_import_device");
    return NULL;
}

PUBLIC struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    (void)context, (void)handle;
    refused("ibv_import_pd");
    return NULL;
}

PUBLIC void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

PUBLIC struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    (void)pd, (void)handle;
    refused("ibv_import_mr");
    return NULL;
}

PUBLIC void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

PUBLIC struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    (void)context, (void)handle;
    refused("ibv_import_dm");
    return NULL;
}

PUBLIC void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}

PUBLIC int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return refused("ibv_set_ece");
}

PUBLIC int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return refused("ibv_query_ece");
}

/* Data arrives out of order: a program that asks must not poll memory. */
PUBLIC int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
    (void)qp, (void)opcode, (void)flags;
    return 0;
}

PUBLIC int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    __be16 only;
    return !ibv_query_pkey(context, port, 0, &only) && only == pkey ? 0 : -1;
}
