/* The library's objects: an opened NIC and what a program has made with it.
 *
 * One lock per opened NIC guards all of its objects. A function whose comment says "locked" is called with it. */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "log.h"
#include "text.h"

#define PUBLIC __attribute__((visibility("default")))

enum {
    MESSAGE_MAX = 16384, /* bytes; common/uverbs.py */
    ROWS_MAX = 256,
    HOST_MAX = 64,
    SECRET_MAX = 64,
    GIDS = 4,     /* of the port's table, all the same: programs like to name the fourth */
    TABLE = 1024, /* chains of queue pairs by number */
    PORT = 1,     /* the only one of a device */
    INLINE_MAX = 1024, /* bytes of a request; common/uverbs.py */
};

/* Rows of uverbs' messages, as docs/uverbs.md has them. */
struct request_row {
    uint64_t wr_id, offset, remote_addr;
    uint32_t qpn, length, lkey, rkey, imm_data;
    uint8_t opcode, flags, pad[2];
};
struct __attribute__((packed)) completion_row {
    uint64_t wr_id;
    uint32_t qpn, cq, byte_len, imm_data;
    uint8_t status, opcode, pad[2];
};
struct head {
    uint8_t kind, pad;
    uint16_t rows;
    uint32_t id;
};
enum { KIND_POST = 1, KIND_COMPLETIONS = 2, KIND_WAIT = 3, KIND_TIME = 4, KIND_ARM = 5, KIND_INLINE = 6 };
enum { OP_WRITE, OP_WRITE_WITH_IMM, OP_RECV };
enum { FLAG_UNSIGNALED = 1, FLAG_SOLICITED = 2, FLAG_WRONG = 4 };
enum { DONE_WRITE, DONE_WRITE_WITH_IMM, DONE_RECV_WITH_IMM, DONE_SILENT };

struct region {
    struct ibv_mr mr; /* first: programs hold its address */
    uint64_t iova;    /* by what peers and work requests know its first byte */
    uint8_t *shadow;  /* shared with the agent, which sends from there */
    struct region *next;
};

struct mrc_comp_channel {
    struct ibv_comp_channel channel; /* first */
    uint32_t number;
};

struct mrc_cq {
    struct ibv_cq cq; /* first */
    uint32_t number;
    bool of_events; /* of EV events, not of completions */
    struct ibv_wc *ring;
    unsigned int room, first, count;
    bool overrun, told_overrun; /* of a strict NIC: it had a completion too many, and takes no more */
    uint64_t seen; /* completions that have come */
    unsigned int unacknowledged;
    unsigned int users; /* queue pairs */
    struct mrc_cq *next;
};

struct mrc_qp {
    struct ibv_qp *qp; /* first, as in other implementations: the one below */
    union {
        struct ibv_qp verbs;
        struct ibv_qp_ex extended;
    };
    struct mrc_cq *send_cq, *recv_cq;
    struct ibv_qp_init_attr made; /* as it was granted */
    struct ibv_qp_attr set;       /* what verbs have set so far */
    struct mrc_qp_hint *hint;
    unsigned int sends, receives; /* posted and not completed */
    bool built;                   /* between ibv_wr_start and ibv_wr_complete: */
    struct ibv_send_wr *built_wrs;
    struct ibv_sge *built_sges;
    uint8_t *built_bytes; /* inline, `max_inline_data` of each request */
    unsigned int built_count, built_room;
    int built_error;
    struct mrc_qp *next;
};

struct nic {
    struct verbs_context verbs; /* its context is what programs hold */
    pthread_mutex_t lock;
    int fd; /* the uverbs socket; -1: gone */
    char host[HOST_MAX], transport[16];
    char secret[SECRET_MAX]; /* where the agent looks for it */
    union ibv_gid gid;
    uint64_t pmtu, rate_bps, max_qp, places, max_cq, max_mr, max_memory;
    unsigned int planes;
    bool up;
    bool event_states; /* the program has stated 1.0.1 of mrc_ctl.h or later, whose EV events have a state */
    bool stepped;      /* in virtual time: stepped.c */
    bool told_gone;    /* the program has had the event that the agent is gone */
    uint32_t taken;    /* messages of the agent */
    uint32_t last_id, wanted_id;
    char *answer; /* the last answer, until the next call */
    int answer_fd;
    struct region *regions;
    struct mrc_cq *cqs;
    struct mrc_qp *qps[TABLE];
    struct nic *next;
};

static inline struct nic *nic_of(struct ibv_context *context)
{
    return (struct nic *)((char *)context - offsetof(struct nic, verbs.context));
}

/* Of the places that a program may have, a queue of the largest size takes half, and a queue pair of the largest, both
 * ways, the other. */
static inline unsigned int max_cqe(const struct nic *nic)
{
    return (unsigned int)nic->places / 2;
}

static inline unsigned int max_qp_wr(const struct nic *nic)
{
    return (unsigned int)nic->places / 4;
}

static inline struct mrc_qp *pair_of(struct ibv_qp *qp)
{
    return (struct mrc_qp *)((char *)qp - offsetof(struct mrc_qp, verbs));
}

/* uverbs.c */
int uverbs_open(struct nic *, const char *host); /* 0 or errno */
void uverbs_close(struct nic *);
/* One verb; locked. 0 or errno. `arguments` are JSON members with a comma in front. The result is under "result" of
 * `nic->answer`; a descriptor that came with it is `answer_fd`, which the caller takes by setting it to -1.
 * Without a free descriptor in this process the kernel drops the one that comes, and `answer_fd` is -1. */
__attribute__((format(printf, 3, 4))) int uverbs_call(struct nic *, const char *op, const char *arguments, ...);
int uverbs_send(struct nic *, const void *message, size_t size); /* locked; 0 or errno */
int uverbs_await(struct nic *, uint32_t id, const char *op);     /* locked: the answer to a message with this id */
int uverbs_take(struct nic *);                                   /* locked: take in all that has come; 0 or errno */
uint32_t uverbs_id(struct nic *);                                /* locked */
void uverbs_sleep(struct nic *, int ms);                         /* until there is something to take; -1: for ever */
int uverbs_hosts(char (*hosts)[HOST_MAX], int room);             /* the NICs of this network namespace; how many */

/* stepped.c */
enum { FOR_EVER = -1, EMPTY_WAIT_MS = 1, NS_PER_MS = 1000000 };
bool stepped_process(void);                          /* whether this process lives in virtual time */
const char *stepped_place(void);                     /* the host whose NIC it may open; "": none any more */
int stepped_enter(struct nic *, const char *host);   /* the socket, or -1 with errno */
void stepped_opened(struct nic *);                   /* sleeps are the lab's from now on */
void stepped_leave(struct nic *);
void stepped_forked(void);                           /* in the child */
void stepped_told(uint64_t now_ns);                  /* by the agent */
int stepped_wait(struct nic *, int64_t wait_ns);     /* locked: until there is news, but no longer; 0 or errno */

/* cq.c */
struct mrc_cq *cq_by_number(struct nic *, uint32_t number); /* locked */
int cq_push(struct nic *, const struct completion_row *); /* locked; false row: EPROTO */
void cq_forget(struct mrc_cq *, uint32_t qpn);            /* locked */
struct mrc_cq *cq_make(struct nic *, const char *op, int cqe, void *context, struct ibv_comp_channel *);
int cq_poll(struct ibv_cq *, int count, struct ibv_wc *);
int cq_arm(struct ibv_cq *, int solicited_only);
ssize_t channel_read(struct nic *, int fd, bool takes_turn, uint32_t *event); /* of completions or asynchronous events */

/* memory.c */
struct region *region_of(struct nic *, const struct ibv_sge *); /* locked; NULL where its key or range is wrong */
int region_load(struct region *, uint64_t addr, uint32_t length); /* what is about to be sent; 0 or errno */
int own_read(void *to, const void *from, size_t length);          /* of this process: EFAULT where it is not mapped */

/* strict.c */
bool strict_mode(void);
/* A call that a NIC refuses and the lab takes: with --strict refused like any other, else 0 and told at the end, by `format`. */
__attribute__((format(printf, 2, 3))) int strictly(int error, const char *format, ...);
int strict_step(const struct mrc_qp *, const struct ibv_qp_attr *, int mask, bool mrc); /* 0 or errno */
void strict_forked(void);                                                               /* in the child */

/* qp.c */
struct mrc_qp *pair_by_number(struct nic *, uint32_t qpn); /* locked */
struct mrc_qp *pair_make(struct nic *, struct ibv_pd *, struct ibv_qp_init_attr *);
/* `more` are further attributes, JSON members with a comma in front; NULL: the program knows verbs only. */
int pair_modify(struct mrc_qp *, struct ibv_qp_attr *, int mask, const char *more);
int pair_query(struct mrc_qp *, struct ibv_qp_attr *, struct ibv_qp_init_attr *); /* leaves "attributes" in answer */

/* post.c */
int pair_post_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **bad);
int pair_post_recv(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);
void pair_extend(struct mrc_qp *, uint64_t send_ops_flags); /* the ibv_wr_* functions */
