/* Load for switch_pps.py, and the bare forwarder that it compares with. Uses the native switch's own sockets
 * (switch/native/runtime/driver/wire.c), so that the only difference is what happens between receiving and sending.
 *
 *   generate NETNS OUT IN FRAME_BYTES RATE SECONDS < frame   send at RATE packets/s, count what comes back at IN
 *   forward NETNS A B                                        pass frames between two interfaces until killed
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "driver/wire.h"

static u64 now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static void open_or_exit(struct wire *w, const char *interface, const char *netns)
{
    const char *what;
    int result = wire_open(w, interface, netns, &what);
    if (result) {
        fprintf(stderr, "%s: cannot %s: %s\n", interface, what, strerror(-result));
        exit(1);
    }
}

struct outgoing {
    struct mmsghdr message[BATCH];
    struct iovec part[BATCH][2];
};

static void outgoing_prepare(struct outgoing *out)
{
    for (int i = 0; i < BATCH; i++)
        out->message[i].msg_hdr = (struct msghdr){.msg_iov = out->part[i], .msg_iovlen = 2};
}

static u64 send_all(int fd, struct outgoing *out, int count)
{
    int sent = 0;
    while (sent < count) {
        int done = sendmmsg(fd, out->message + sent, (unsigned)(count - sent), 0);
        if (done <= 0)
            break;
        sent += done;
    }
    return (u64)sent;
}

/* --- forward ------------------------------------------------------------------------------------------------ */

static int forward(const char *netns, const char *a, const char *b)
{
    static struct wire_batch batch;
    static struct outgoing out[2];
    struct wire wire[2];
    struct pollfd ready[2];
    open_or_exit(&wire[0], a, netns);
    open_or_exit(&wire[1], b, netns);
    wire_batch_prepare(&batch);
    for (int i = 0; i < 2; i++) {
        outgoing_prepare(&out[i]);
        ready[i] = (struct pollfd){.fd = wire[i].fd, .events = POLLIN};
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return 1;
        for (int i = 0; i < 2; i++) {
            if (!ready[i].revents)
                continue;
            int count = wire_receive(&wire[i], &batch);
            for (int m = 0; m < count; m++) {
                memcpy(out[i].part[m], batch.part[m], sizeof batch.part[m]);
                out[i].part[m][1].iov_len = batch.message[m].msg_len - OFFLOAD_BYTES;
            }
            send_all(wire[1 - i].fd, &out[i], count);
        }
    }
}

/* --- generate ------------------------------------------------------------------------------------------------ */

struct counting {
    struct wire wire;
    u32 bytes_min;
    _Atomic u64 received;
    _Atomic bool stop;
};

static void *count(void *argument)
{
    static struct wire_batch batch;
    struct counting *c = argument;
    struct pollfd ready = {.fd = c->wire.fd, .events = POLLIN};
    wire_batch_prepare(&batch);
    while (!c->stop) {
        if (poll(&ready, 1, 20) <= 0)
            continue;
        int got = wire_receive(&c->wire, &batch);
        for (int i = 0; i < got; i++)
            if (batch.message[i].msg_len >= c->bytes_min)
                c->received++;
    }
    return NULL;
}

static int generate(const char *netns, const char *out_name, const char *in_name, u32 bytes, double rate, double seconds)
{
    static u8 frame[FRAME_MAX], no_offload[OFFLOAD_BYTES];
    static struct outgoing out;
    static struct counting c;
    struct wire source;
    if (bytes > FRAME_MAX || fread(frame, 1, bytes, stdin) != bytes)
        return 1;
    open_or_exit(&source, out_name, netns);
    open_or_exit(&c.wire, in_name, netns);
    outgoing_prepare(&out);
    for (int i = 0; i < BATCH; i++) {
        out.part[i][0] = (struct iovec){no_offload, sizeof no_offload};
        out.part[i][1] = (struct iovec){frame, bytes};
    }
    c.bytes_min = bytes;
    pthread_t counter;
    pthread_create(&counter, NULL, count, &c);

    /* Bursts of at most half a millisecond's worth, so that a low rate is smooth and a high one is batched. */
    u64 burst = (u64)(rate / 2000) + 1;
    if (burst > BATCH)
        burst = BATCH;
    u64 sent = 0, start_ns = now_ns(), end_ns = start_ns + (u64)(seconds * 1e9), t_ns = start_ns;
    while (t_ns < end_ns) {
        u64 due = (u64)((double)(t_ns - start_ns) * rate / 1e9);
        while (sent < due) {
            u64 left = due - sent;
            sent += send_all(source.fd, &out, (int)(left < burst ? left : burst));
        }
        u64 next_ns = start_ns + (u64)((double)(sent + burst) * 1e9 / rate);
        struct timespec wake = {(time_t)(next_ns / 1000000000u), (long)(next_ns % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
        t_ns = now_ns();
    }
    double took = (double)(now_ns() - start_ns) / 1e9;
    /* What is still on its way: wait until nothing comes for 200 ms. */
    u64 before;
    do {
        before = c.received;
        usleep(200000);
    } while (c.received != before);
    c.stop = true;
    pthread_join(counter, NULL);
    printf("{\"sent\": %llu, \"received\": %llu, \"seconds\": %.4f, \"receiver_drops\": %u}\n", (unsigned long long)sent,
           (unsigned long long)c.received, took, wire_drops(&c.wire));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "forward"))
        return forward(argv[2], argv[3], argv[4]);
    if (argc == 8 && !strcmp(argv[1], "generate"))
        return generate(argv[2], argv[3], argv[4], (u32)atoi(argv[5]), atof(argv[6]), atof(argv[7]));
    fprintf(stderr, "usage: see the head of switch_traffic.c\n");
    return 2;
}
