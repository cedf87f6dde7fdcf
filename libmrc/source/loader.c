/* Programs that load libibverbs when they need it, such as NCCL, by dlopen: they get this library. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "nic.h"

/* Another function, so that `dlopen` below is a jump to libc's: that looks for a name where its caller says (RUNPATH). */
__attribute__((noinline)) static const char *ours(const char *path)
{
    static const char wanted[] = "libibverbs.so";
    const char *behind = path ? strrchr(path, '/') : NULL, *name = behind ? behind + 1 : path;
    Dl_info own;
    return path && !strncmp(name, wanted, sizeof wanted - 1) && dladdr(wanted, &own) ? own.dli_fname : path;
}

PUBLIC void *dlopen(const char *path, int mode)
{
    void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    path = ours(path);
    return real(path, mode);
}

/* The ways into librdmacm. It asks the kernel, which has no NIC of the lab. */
#define NO_MANAGER(type, call, ...)                                                                                         \
    PUBLIC type call(__VA_ARGS__)                                                                                           \
    {                                                                                                                       \
        refuse(ENODEV, #call ": the lab's NICs have no connection manager; exchange addresses by TCP (perftest: no -R)");   \
        return (type)-(sizeof(type) == sizeof(int));                                                                        \
    }
NO_MANAGER(void *, rdma_create_event_channel, void)
NO_MANAGER(void *, rdma_get_devices, int *count __attribute__((unused)))
NO_MANAGER(int, rdma_create_id, void *channel __attribute__((unused)), void **id __attribute__((unused)))
NO_MANAGER(int, rdma_create_ep, void **id __attribute__((unused)), void *result __attribute__((unused)))
