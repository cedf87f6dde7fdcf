/* Load for switch_hops.py: frames from many ports at lab rates, and how long each took.
 *
 *   switch_hops HOSTS PORTS PACKETS_PER_S ACK_EVERY GRID_NS SECONDS SEED < frames
 *
 * The ports of host H are hH-p0, hH-p1, and so on. Standard input has, for each port, VARIANTS data frames and VARIANTS acknowledgements, each as
 * a 4-byte length and its bytes; a port sends its variants in turn. A host wakes every GRID_NS, as an agent does, and
 * sends what its ports owe by then. A frame carries when it was sent; the kernel says when it arrived. Prints JSON. */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "driver/wire.h"

enum { PORTS_MAX = 128, VARIANTS = 4, STAMP_AT = 54, LATENCIES = 1 << 20, WAIT_US = 500000 };

struct stamp {
    u64 magic, sent_ns;
};
static const u64 magic = 0x6d72636c61622121u;

static u8 frame[PORTS_MAX][2][VARIANTS][FRAME_MAX];
static u32 bytes[PORTS_MAX][2][VARIANTS];
static struct {
    u64 sent, refused, data_packets, count;
    _Atomic u64 received;
    u32 latency_ns[LATENCIES]; /* of data frames */
    _Atomic bool stop;
    int receive_fd;
} run;

static u64 clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "cannot %s: %s\n", what, strerror(errno));
    exit(1);
}

static void note(struct msghdr *header, const u8 *data, u32 length)
{
    struct stamp stamp;
    struct timespec t = {0};
    if (length < STAMP_AT + sizeof stamp)
        return;
    memcpy(&stamp, data + STAMP_AT, sizeof stamp);
    if (stamp.magic != magic)
        return;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS)
            memcpy(&t, CMSG_DATA(c), sizeof t);
    run.received++;
    if (length > 1000 && run.count < LATENCIES)
        run.latency_ns[run.count++] = (u32)((u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec - stamp.sent_ns);
}

/* One socket for all ports of the hosts' namespace. */
static void *receiver(void *unused)
{
    static u8 data[BATCH][128];
    static u8 control[BATCH][64];
    struct mmsghdr message[BATCH] = {0};
    struct iovec part[BATCH];
    struct pollfd ready = {.fd = run.receive_fd, .events = POLLIN};
    (void)unused;
    while (!run.stop) {
        if (poll(&ready, 1, 20) <= 0)
            continue;
        for (int i = 0; i < BATCH; i++) {
            part[i] = (struct iovec){data[i], sizeof data[i]};
            message[i].msg_hdr = (struct msghdr){
                .msg_iov = &part[i], .msg_iovlen = 1, .msg_control = control[i], .msg_controllen = sizeof control[i]};
        }
        int count = recvmmsg(run.receive_fd, message, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
        for (int i = 0; i < count; i++)
            note(&message[i].msg_hdr, data[i], message[i].msg_len);
        usleep(2000);
    }
    return NULL;
}

static void open_receiver(void)
{
    int on = 1, room = 64 << 20;
    struct sockaddr_ll any = {.sll_family = AF_PACKET, .sll_protocol = htobe16(0x0003)};
    run.receive_fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (run.receive_fd < 0 || setsockopt(run.receive_fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) ||
        setsockopt(run.receive_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) ||
        setsockopt(run.receive_fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) ||
        bind(run.receive_fd, (struct sockaddr *)&any, sizeof any))
        fail("open the receiving socket");
}

static void send_frame(int fd, int ifindex, int port, int kind, u64 number)
{
    u8 *data = frame[port][kind][number % VARIANTS];
    struct stamp stamp = {magic, clock_ns(CLOCK_REALTIME)};
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = ifindex};
    memcpy(data + STAMP_AT, &stamp, sizeof stamp);
    if (sendto(fd, data, bytes[port][kind][number % VARIANTS], 0, (struct sockaddr *)&to, sizeof to) < 0)
        run.refused++;
    else
        run.sent++;
}

static void read_frames(int ports)
{
    for (int port = 0; port < ports; port++)
        for (int kind = 0; kind < 2; kind++)
            for (int i = 0; i < VARIANTS; i++)
                if (fread(&bytes[port][kind][i], 4, 1, stdin) != 1 || bytes[port][kind][i] > FRAME_MAX ||
                    fread(frame[port][kind][i], bytes[port][kind][i], 1, stdin) != 1)
                    fail("read the frames");
}

static void send_all(int fd, const int *ifindex, int hosts, int per_host, double rate, u64 ack_every, u64 grid_ns, u64 end_ns)
{
    static u64 wake_ns[PORTS_MAX], data[PORTS_MAX];
    static double phase[PORTS_MAX];
    u64 start_ns = clock_ns(CLOCK_MONOTONIC);
    for (int h = 0; h < hosts; h++)
        wake_ns[h] = start_ns + (u64)(drand48() * (double)grid_ns);
    for (int p = 0; p < hosts * per_host; p++)
        phase[p] = drand48();
    for (;;) {
        int next = 0;
        for (int h = 1; h < hosts; h++)
            if (wake_ns[h] < wake_ns[next])
                next = h;
        if (wake_ns[next] > end_ns)
            return;
        struct timespec until = {(time_t)(wake_ns[next] / 1000000000u), (long)(wake_ns[next] % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        for (int i = 0; i < per_host; i++) {
            int port = next * per_host + i;
            u64 due = (u64)((double)(wake_ns[next] - start_ns) * rate / 1e9 + phase[port]);
            for (; data[port] < due; data[port]++) {
                send_frame(fd, ifindex[port], port, 0, data[port]);
                if (ack_every && data[port] % ack_every == 0)
                    send_frame(fd, ifindex[port], port, 1, data[port] / ack_every);
                run.data_packets++;
            }
        }
        wake_ns[next] += grid_ns;
    }
}

static int by_size(const void *a, const void *b)
{
    return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

static u32 quantile(double q)
{
    return run.count ? run.latency_ns[(u64)(q * (double)(run.count - 1))] : 0;
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    int hosts = atoi(argv[1]), per_host = atoi(argv[2]), ifindex[PORTS_MAX] = {0};
    if (hosts * per_host > PORTS_MAX)
        return 2;
    read_frames(hosts * per_host);
    int sender = socket(AF_PACKET, SOCK_RAW, 0);
    if (sender < 0)
        fail("open the sending socket");
    for (int p = 0; p < hosts * per_host; p++) {
        char name[32];
        snprintf(name, sizeof name, "h%d-p%d", p / per_host, p % per_host);
        if (!(ifindex[p] = (int)if_nametoindex(name)))
            fail("find an interface");
    }
    open_receiver();
    srand48(atol(argv[7]));
    pthread_t thread;
    pthread_create(&thread, NULL, receiver, NULL);
    u64 end_ns = clock_ns(CLOCK_MONOTONIC) + (u64)(atof(argv[6]) * 1e9);
    send_all(sender, ifindex, hosts, per_host, atof(argv[3]), (u64)atoi(argv[4]), (u64)atol(argv[5]), end_ns);
    usleep(WAIT_US);
    run.stop = true;
    pthread_join(thread, NULL);
    qsort(run.latency_ns, run.count, sizeof *run.latency_ns, by_size);
    printf("{\"sent\": %llu, \"data\": %llu, \"refused\": %llu, \"received\": %llu, \"min\": %u, \"p50\": %u, \"p90\": %u, "
           "\"p99\": %u, \"p999\": %u, \"max\": %u}\n",
           (unsigned long long)run.sent, (unsigned long long)run.data_packets, (unsigned long long)run.refused,
           (unsigned long long)run.received, quantile(0), quantile(0.5), quantile(0.9), quantile(0.99), quantile(0.999),
           quantile(1));
    return 0;
}
