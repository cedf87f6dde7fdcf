/* Compares memory under a program that knows nothing of it: linked with the program, ahead of libmrc.
 *
 * Before a write with immediate is posted, what all writes since the last one have sent is put into a file of the folder
 * COMPARE. When the immediate arrives, the receiver compares each range of its own memory with the file, byte by byte,
 * before the program sees the completion. A byte that differs ends the program with status 97. */
#define _GNU_SOURCE
#include <mrc.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct range {
    uint64_t remote_addr, length;
    const uint8_t *from;
};

enum { RANGES_MAX = 64 };

static struct range ranges[RANGES_MAX]; /* the last write to each place: it is what must be there */
static int count;
static unsigned long sent, arrived, compared;

static void *next_one(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

static FILE *opened(unsigned long number, const char *mode)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%lu", getenv("COMPARE"), number);
    FILE *file = fopen(path, mode);
    if (!file) {
        perror(path);
        _exit(98);
    }
    if (*mode == 'r')
        unlink(path);
    return file;
}

static void note(const struct ibv_send_wr *wr)
{
    struct range range = {wr->wr.rdma.remote_addr, wr->sg_list->length, (const uint8_t *)(uintptr_t)wr->sg_list->addr};
    int at = 0;
    while (at < count && ranges[at].remote_addr != range.remote_addr)
        at++;
    if (at == RANGES_MAX)
        _exit(96);
    if (at == count)
        count++;
    else if (ranges[at].length > range.length)
        range.length = ranges[at].length; /* all of them have written the same bytes of one buffer */
    ranges[at] = range;
}

int mrc_post_send(struct mrc_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    static int (*real)(struct mrc_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
    if (!real)
        real = next_one("mrc_post_send");
    note(wr);
    if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        FILE *file = opened(sent++, "w");
        for (int at = 0; at < count; at++)
            if (fwrite(&ranges[at], sizeof *ranges, 1, file) != 1 ||
                fwrite(ranges[at].from, 1, ranges[at].length, file) != ranges[at].length)
                _exit(98);
        fclose(file);
        count = 0;
    }
    return real(qp, wr, bad);
}

static void compare(void)
{
    FILE *file = opened(arrived++, "r");
    static uint8_t block[1 << 20];
    struct range range;
    while (fread(&range, sizeof range, 1, file) == 1)
        for (uint64_t at = 0; at < range.length;) {
            uint64_t left = range.length - at;
            size_t size = fread(block, 1, left < sizeof block ? left : sizeof block, file);
            if (!size || memcmp((const void *)(uintptr_t)(range.remote_addr + at), block, size)) {
                fprintf(stderr, "compare: bytes %lu.. of message %lu differ\n", (unsigned long)at, arrived - 1);
                _exit(97);
            }
            at += size;
            compared += size;
        }
    fclose(file);
}

int mrc_poll_cq(struct mrc_cq *cq, int room, struct ibv_wc *wc)
{
    static int (*real)(struct mrc_cq *, int, struct ibv_wc *);
    if (!real)
        real = next_one("mrc_poll_cq");
    int found = real(cq, room, wc);
    for (int at = 0; at < found; at++)
        if (wc[at].status == IBV_WC_SUCCESS && wc[at].opcode == IBV_WC_RECV_RDMA_WITH_IMM)
            compare();
    return found;
}

__attribute__((destructor)) static void tell(void)
{
    if (arrived)
        fprintf(stderr, "compare: %lu messages, %lu bytes, every byte right\n", arrived, compared);
}
