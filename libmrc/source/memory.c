/* Protection domains and registered memory.
 *
 * A region is memory that the program has already. Bytes to be sent are copied, when they are posted, into memory that is
 * shared with the agent; bytes that arrive are written by the agent into the program's own. Neither copy faults: an
 * address that is not mapped (any more) is an error of a system call, here and there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nic.h"

enum { PAGE_BYTES = 4096 }; /* or a part of a page: what is mapped is whole pages */

PUBLIC struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    static uint32_t count;
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    if (pd)
        *pd = (struct ibv_pd){context, ((uint32_t)getpid() << 8 | (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) & 0xff)) & INT32_MAX};
    return pd;
}

PUBLIC int ibv_dealloc_pd(struct ibv_pd *pd)
{
    struct nic *nic = nic_of(pd->context);
    bool used = false;
    pthread_mutex_lock(&nic->lock);
    for (struct region *region = nic->regions; region; region = region->next)
        used |= region->mr.pd == pd;
    for (int chain = 0; chain < TABLE; chain++)
        for (struct mrc_qp *qp = nic->qps[chain]; qp; qp = qp->next)
            used |= qp->verbs.pd == pd;
    pthread_mutex_unlock(&nic->lock);
    if (used)
        return refuse(EBUSY, "a protection domain with memory or queue pairs stays");
    free(pd);
    return 0;
}

struct region *region_of(struct nic *nic, const struct ibv_sge *range)
{
    struct region *region = nic->regions;
    while (region && region->mr.lkey != range->lkey)
        region = region->next;
    uint64_t offset = region ? range->addr - region->iova : 0;
    bool inside = region && range->addr >= region->iova && offset <= region->mr.length &&
                  range->length <= region->mr.length - offset;
    return inside ? region : NULL;
}

int own_read(void *to, const void *from, size_t length)
{
    while (length) {
        struct iovec source = {(void *)from, length}, target = {to, length};
        ssize_t copied = process_vm_readv(getpid(), &target, 1, &source, 1, 0);
        if (copied <= 0)
            return copied < 0 ? errno : EFAULT;
        to = (char *)to + copied;
        from = (const char *)from + copied;
        length -= (size_t)copied;
    }
    return 0;
}

int region_load(struct region *region, uint64_t addr, uint32_t length)
{
    uint64_t offset = addr - region->iova;
    int error = own_read(region->shadow + offset, (char *)region->mr.addr + offset, length);
    if (error)
        return refuse(error, "%u bytes from %#lx on cannot be read: %s", length, (unsigned long)addr, strerror(error));
    return 0;
}

/* The agent writes to this process: where a Linux security module wants a process to agree, it does. */
static void let_agent_in(struct nic *nic)
{
    struct ucred agent;
    socklen_t size = sizeof agent;
    if (!getsockopt(nic->fd, SOL_SOCKET, SO_PEERCRED, &agent, &size) && agent.pid > 0)
        prctl(PR_SET_PTRACER, agent.pid, 0, 0, 0);
}

/* Maps the memory whose descriptor came with the last answer; locked. */
static int map_shadow(struct nic *nic, struct region *region, size_t length)
{
    if (nic->answer_fd < 0)
        return refuse(EMFILE, "ibv_reg_mr: this process must have a free descriptor (RLIMIT_NOFILE)");
    region->shadow = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, nic->answer_fd, 0);
    return region->shadow == MAP_FAILED ? errno : 0;
}

PUBLIC struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    struct nic *nic = nic_of(pd->context);
    unsigned int unknown = access & ~(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB);
    uint64_t lkey = 0, rkey = 0;
    if (unknown) {
        refuse(EOPNOTSUPP, "ibv_reg_mr: access flags %#x are not offered (ON_DEMAND, MW_BIND, ZERO_BASED)", unknown);
        return NULL;
    }
    if (access & IBV_ACCESS_REMOTE_WRITE && !(access & IBV_ACCESS_LOCAL_WRITE)) {
        refuse(EINVAL, "ibv_reg_mr: remote write access needs local write access");
        return NULL;
    }
    uintptr_t first = (uintptr_t)addr & ~(uintptr_t)(PAGE_BYTES - 1);
    struct region *region = calloc(1, sizeof *region);
    if (!region)
        return NULL;
    pthread_mutex_lock(&nic->lock);
    let_agent_in(nic);
    int error = uverbs_call(nic, "reg_mr", ",\"length\":%zu,\"remote_write\":%s,\"addr\":%lu,\"iova\":%lu,\"proof\":%lu,\"domain\":%u",
                          length, access & IBV_ACCESS_REMOTE_WRITE ? "true" : "false", (unsigned long)addr,
                          (unsigned long)iova, (unsigned long)nic->secret, pd->handle);
    if (!error && (!text_integer(text_find(nic->answer, "result.lkey"), &lkey) ||
                   !text_integer(text_find(nic->answer, "result.rkey"), &rkey)))
        error = EPROTO;
    if (!error && ((msync((void *)first, (uintptr_t)addr + length - first, MS_ASYNC) && errno == ENOMEM && /* only looks */
                    (error = strictly(EFAULT, "ibv_reg_mr: %zu bytes from %p on are not all mapped", length, addr))) ||
                   (error = map_shadow(nic, region, length))))
        uverbs_call(nic, "dereg_mr", ",\"lkey\":%u", (uint32_t)lkey);
    if (!error) {
        region->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
        region->mr.handle = region->mr.lkey = (uint32_t)lkey;
        region->mr.rkey = (uint32_t)rkey;
        region->iova = iova;
        region->next = nic->regions;
        nic->regions = region;
        madvise(region->shadow, length, MADV_DONTFORK);
    }
    pthread_mutex_unlock(&nic->lock);
    if (error) {
        free(region);
        errno = error;
        return NULL;
    }
    return &region->mr;
}

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
PUBLIC struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

PUBLIC struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

PUBLIC struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                        int access)
{
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    refuse(EOPNOTSUPP, "ibv_reg_dmabuf_mr: the lab's NICs reach the memory of the host only");
    return NULL;
}

PUBLIC int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    (void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access;
    return refuse(EOPNOTSUPP, "ibv_rereg_mr: deregister the region and register it anew");
}

PUBLIC int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct nic *nic = nic_of(mr->context);
    struct region *region = (struct region *)mr;
    pthread_mutex_lock(&nic->lock);
    int error = nic->fd >= 0 ? uverbs_call(nic, "dereg_mr", ",\"lkey\":%u", mr->lkey) : 0;
    if (error == EIO)
        error = 0;
    if (!error)
        for (struct region **at = &nic->regions; *at; at = &(*at)->next)
            if (*at == region) {
                *at = region->next;
                break;
            }
    pthread_mutex_unlock(&nic->lock);
    if (error)
        return error;
    munmap(region->shadow, mr->length);
    free(region);
    return 0;
}
