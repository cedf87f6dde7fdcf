/* Texts and numbers of verbs, as rdma-core has them: programs compare them, and scripts look for them in logs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "nic.h"

static const char *text_of(const char *const *texts, size_t count, unsigned int at)
{
    return at < count && texts[at] ? texts[at] : "unknown";
}
#define TEXT_OF(texts, at) text_of(texts, sizeof(texts) / sizeof *(texts), (unsigned int)(at))

PUBLIC const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const texts[] = {
        "success", "local length error", "local QP operation error", "local EE context operation error",
        "local protection error", "Work Request Flushed Error", "memory management operation error",
        "bad response error", "local access error", "remote invalid request error", "remote access error",
        "remote operation error", "transport retry counter exceeded", "RNR retry counter exceeded",
        "local RDD violation error", "remote invalid RD request", "aborted error", "invalid EE context number",
        "invalid EE context state", "fatal error", "response timeout error", "general error", "TM error",
        "TM software rendezvous",
    };
    return TEXT_OF(texts, status);
}

PUBLIC const char *ibv_node_type_str(enum ibv_node_type type)
{
    static const char *const texts[] = {
        NULL, "InfiniBand channel adapter", "InfiniBand switch", "InfiniBand router", "iWARP NIC", "usNIC", "usNIC UDP",
        "unspecified",
    };
    return TEXT_OF(texts, type);
}

PUBLIC const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const char *const texts[] = {
        "no state change (NOP)", "down", "init", "armed", "active", "active defer",
    };
    return TEXT_OF(texts, state);
}

PUBLIC const char *ibv_event_type_str(enum ibv_event_type type)
{
    static const char *const texts[] = {
        "CQ error", "local work queue catastrophic error", "invalid request local work queue error",
        "local access violation work queue error", "communication established", "send queue drained", "path migrated",
        "path migration request error", "local catastrophic error", "port active", "port error", "LID change",
        "P_Key change", "SM change", "SRQ catastrophic error", "SRQ limit reached", "last WQE reached",
        "client reregistration", "GID table change", "WQ fatal",
    };
    return TEXT_OF(texts, type);
}

/* Rates of links: multiples of 2.5 Gb/s where there are, and Mb/s. */
static const struct {
    int rate, mult, mbps;
} rates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500}, {IBV_RATE_5_GBPS, 2, 5000}, {IBV_RATE_10_GBPS, 4, 10000},
    {IBV_RATE_20_GBPS, 8, 20000}, {IBV_RATE_30_GBPS, 12, 30000}, {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000}, {IBV_RATE_80_GBPS, 32, 80000}, {IBV_RATE_120_GBPS, 48, 120000},
    {IBV_RATE_14_GBPS, -1, 14062}, {IBV_RATE_56_GBPS, -1, 56250}, {IBV_RATE_112_GBPS, -1, 112500},
    {IBV_RATE_168_GBPS, -1, 168750}, {IBV_RATE_25_GBPS, -1, 25781}, {IBV_RATE_100_GBPS, -1, 103125},
    {IBV_RATE_200_GBPS, -1, 206250}, {IBV_RATE_300_GBPS, -1, 309375}, {IBV_RATE_28_GBPS, 11, 28125},
    {IBV_RATE_50_GBPS, 20, 53125}, {IBV_RATE_400_GBPS, 160, 425000}, {IBV_RATE_600_GBPS, 240, 637500},
    {IBV_RATE_800_GBPS, 320, 850000}, {IBV_RATE_1200_GBPS, 480, 1275000},
};
#define RATE(name, kind, from, to, none)                                                                                    \
    PUBLIC kind name(from##_type value)                                                                                     \
    {                                                                                                                       \
        for (size_t at = 0; at < sizeof rates / sizeof *rates; at++)                                                        \
            if (rates[at].from == (int)value)                                                                               \
                return (kind)rates[at].to;                                                                                  \
        return none;                                                                                                        \
    }
typedef enum ibv_rate rate_type;
typedef int mult_type, mbps_type;
RATE(ibv_rate_to_mult, int, rate, mult, -1)
RATE(ibv_rate_to_mbps, int, rate, mbps, -1)
RATE(mult_to_ibv_rate, enum ibv_rate, mult, rate, IBV_RATE_MAX)
RATE(mbps_to_ibv_rate, enum ibv_rate, mbps, rate, IBV_RATE_MAX)

/* --- files, and memory of children ---------------------------------------------------------------------------------- */

PUBLIC const char *ibv_get_sysfs_path(void)
{
    return "/sys";
}

PUBLIC int ibv_read_sysfs_file(const char *folder, const char *name, char *text, size_t size)
{
    char path[512];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size);
    if (fd >= 0)
        close(fd);
    if (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    else if (length >= 0 && (size_t)length < size)
        text[length] = '\0';
    else
        length = -1;
    return (int)length;
}

PUBLIC int ibv_fork_init(void)
{
    return 0;
}

PUBLIC enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED; /* the agent writes to the parent's own pages */
}

PUBLIC int ibv_dontfork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}

PUBLIC int ibv_dofork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}
