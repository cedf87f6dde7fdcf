/* Calls that a NIC refuses and the lab takes: refused with MRCLAB_STRICT (./lab exec --strict), else told once at the end.
 *
 * The rules of ibv_modify_qp are those of Linux (ib_modify_qp_is_ok and the modify_qp of its uverbs, for RC), which every
 * driver asks. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"

enum { RULES_MAX = 16, SHOWN_MAX = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *rule; /* its format */
    unsigned int calls;
    char first[SHOWN_MAX];
} taken[RULES_MAX];

bool strict_mode(void)
{
    const char *said = getenv("MRCLAB_STRICT");
    return said && *said && strcmp(said, "0");
}

int strictly(int error, const char *format, ...)
{
    char shown[SHOWN_MAX];
    va_list arguments;
    int at = 0;
    va_start(arguments, format);
    vsnprintf(shown, sizeof shown, format, arguments);
    va_end(arguments);
    if (strict_mode())
        return refuse(error, "%s (--strict)", shown);
    pthread_mutex_lock(&lock);
    while (at < RULES_MAX && taken[at].rule && taken[at].rule != format)
        at++;
    if (at < RULES_MAX && !taken[at].calls++) {
        taken[at].rule = format;
        memcpy(taken[at].first, shown, sizeof shown);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

void strict_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(taken, 0, sizeof taken);
}

__attribute__((destructor)) static void tell(void)
{
    for (int at = 0; at < RULES_MAX && taken[at].rule; at++) {
        if (!at)
            log_line(LOG_WARN, "a NIC refuses what the lab took here; ./lab exec --strict refuses it as well:");
        log_line(LOG_WARN, "%u x %s", taken[at].calls, taken[at].first);
    }
}

/* --- steps of a queue pair ------------------------------------------------------------------------------------ */

/* Attributes that mrc.h says mrc_modify_qp does not have. OCP's and NVIDIA's programs give some of them all the same. */
enum { NOT_OF_MRC = IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER |
                    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC };

static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
static const struct {
    enum ibv_qp_state from, to;
    int needed, taken;
} steps[] = {
    {IBV_QPS_RESET, IBV_QPS_RESET, 0, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER},
};

static const char *names_of(int mask, char *text, size_t size)
{
    static const char *const names[] = {"STATE",     "CUR_STATE", "EN_SQD_ASYNC_NOTIFY", "ACCESS_FLAGS", "PKEY_INDEX",
                                        "PORT",      "QKEY",      "AV",                  "PATH_MTU",     "TIMEOUT",
                                        "RETRY_CNT", "RNR_RETRY", "RQ_PSN",              "MAX_QP_RD_ATOMIC", "ALT_PATH",
                                        "MIN_RNR_TIMER", "SQ_PSN", "MAX_DEST_RD_ATOMIC"};
    size_t length = 0;
    for (size_t bit = 0; bit < sizeof names / sizeof *names; bit++)
        if (mask & 1 << bit)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", names[bit]);
    return text;
}

int strict_step(const struct mrc_qp *qp, const struct ibv_qp_attr *attr, int mask, bool mrc)
{
    enum ibv_qp_state from = qp->verbs.state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
    const char *const call = mrc ? "mrc_modify_qp" : "ibv_modify_qp";
    int needed = 0, given = mask & ~IBV_QP_STATE, error = 0;
    char text[256];
    if (to != IBV_QPS_ERR && to != IBV_QPS_RESET) {
        size_t at = 0, count = sizeof steps / sizeof *steps;
        while (at < count && (steps[at].from != from || steps[at].to != to))
            at++;
        if (at == count) /* the lab refuses it as well, or MRC allows it */
            return 0;
        needed = steps[at].needed & ~(mrc ? NOT_OF_MRC : 0);
        given &= ~(steps[at].needed | steps[at].taken);
    } else if (from == IBV_QPS_RESET && to == IBV_QPS_ERR) {
        return strictly(EINVAL, "a queue pair goes from RESET to INIT only, not to ERR");
    }
    if (needed & ~mask)
        error = strictly(EINVAL, "%s from %s to %s needs %s", call, states[from], states[to],
                         names_of(needed & ~mask, text, sizeof text));
    if (!error && given)
        error = strictly(EINVAL, "%s from %s to %s does not take %s", call, states[from], states[to],
                         names_of(given, text, sizeof text));
    if (!error && mask & IBV_QP_AV && !mrc && attr->ah_attr.port_num != PORT)
        error = strictly(EINVAL, "%s: ah_attr.port_num must be %d, the port (got %u)", call, PORT, attr->ah_attr.port_num);
    return error;
}
