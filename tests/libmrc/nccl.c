/* Drives NCCL's plugin for MRC over host memory, as NCCL does: rank 0 listens and receives, rank 1 connects and sends.
 *
 * Words: RANK FOLDER PLUGIN DEVICE MESSAGES PARTS DEATH. Every third message is a group of PARTS receives. A rank gives up
 * when IDLE_MAX turns of a millisecond or more move nothing, and kills itself at the message of DEATH (RANK:MESSAGE, or -). */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nccl.h"

#include "net.h" /* needs the one above */

enum { SLOTS = NCCL_NET_MAX_REQUESTS, PARTS_MAX = 8, ROOM = (1 << 20) + 4096, ODD = 13, IDLE_MAX = 10000 };
static const size_t sizes[] = {0, 1, 127, 1 << 20, 128, 129, 255, 4096, 0, 65537};

struct message {
    void *requests[PARTS_MAX]; /* a receiver has one for all parts */
    int number, parts, started, ended;
};

static ncclNet_v10_t *net;
static void *comm, *handle;
static uint8_t memory[SLOTS * ROOM];
static struct message messages[SLOTS];
static int rank, parts, dies_at;

static void told(ncclDebugLogLevel level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    va_list given;
    (void)flags, (void)file, (void)line;
    va_start(given, format);
    if (level == NCCL_LOG_WARN && vfprintf(stderr, format, given) >= 0)
        fputc('\n', stderr);
    va_end(given);
}

static void leave(int status)
{
    if (net->deregMr(comm, handle) == ncclSuccess && (rank ? net->closeSend : net->closeRecv)(comm) == ncclSuccess)
        printf("closed\n");
    exit(status);
}

static void check(ncclResult_t result, const char *call)
{
    if (result != ncclSuccess && printf("%s: error %d\n", call, result))
        leave(4);
}

#define NCCL(call, ...) check(net->call(__VA_ARGS__), #call)

/* Writes a file whole, or waits until there is one, and reads it. */
static void meet(const char *name, bool writes, void *data, size_t size)
{
    const char *made = rank ? "new-1" : "new-0";
    while (!writes && access(name, F_OK))
        usleep(1000);
    FILE *file = fopen(writes ? made : name, writes ? "w" : "r");
    if (!file || (writes ? fwrite(data, 1, size, file) : fread(data, 1, size, file)) != size || fclose(file) ||
        (writes && rename(made, name)))
        exit(5);
}

static void join(int device)
{
    char place[NCCL_NET_HANDLE_MAXSIZE] = {0};
    ncclNetCommConfig_v10_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
    ncclNetDeviceHandle_v10_t *offloaded = NULL;
    void *listener = NULL;
    if (!rank)
        NCCL(listen, device, place, &listener);
    meet("handle", !rank, place, sizeof place);
    for (; !comm; usleep(1000))
        if (rank)
            NCCL(connect, device, &config, place, &comm, &offloaded);
        else
            NCCL(accept, listener, &comm, &offloaded);
    if (!rank)
        NCCL(closeListen, listener);
    NCCL(regMr, comm, memory, sizeof memory, NCCL_PTR_HOST, &handle);
}

static size_t size_of(int number, int part)
{
    size_t size = sizes[(size_t)(number + part) % (sizeof sizes / sizeof *sizes)];
    return number % 3 == 2 && size > 65537 ? size / PARTS_MAX : size;
}

static size_t room_of(const struct message *message)
{
    return (ROOM - ODD) / (size_t)message->parts;
}

static uint8_t *data_of(const struct message *message, int part)
{
    return memory + (size_t)(message->number % SLOTS) * ROOM + ODD + (size_t)part * room_of(message);
}

static uint8_t byte_of(int number, int part, size_t at)
{
    return (uint8_t)(at * 31 + at / 251 + (size_t)number * 7 + (size_t)part * 13);
}

static void start(struct message *message)
{
    void *data[PARTS_MAX], *handles[PARTS_MAX];
    size_t rooms[PARTS_MAX];
    int tags[PARTS_MAX];
    for (int part = 0; part < message->parts; part++) {
        data[part] = data_of(message, part);
        rooms[part] = room_of(message);
        tags[part] = 100 + part;
        handles[part] = handle;
    }
    if (!rank) {
        NCCL(irecv, comm, message->parts, data, rooms, tags, handles, NULL, message->requests);
        message->started = message->requests[0] ? message->parts : 0;
    }
    while (rank && message->started < message->parts) {
        int part = message->parts - 1 - message->started; /* tags find their receives in any order */
        size_t size = size_of(message->number, part);
        for (size_t at = 0; at < size; at++)
            data_of(message, part)[at] = byte_of(message->number, part, at);
        NCCL(isend, comm, data[part], size, tags[part], handle, NULL, &message->requests[part]);
        if (!message->requests[part])
            return;
        message->started++;
    }
}

static void compare(const struct message *message, const int *arrived)
{
    for (int part = 0; part < message->parts; part++) {
        size_t size = size_of(message->number, part), right = 0;
        uint8_t *data = data_of(message, part);
        while (right < room_of(message) && data[right] == (right < size ? byte_of(message->number, part, right) : 0xee))
            right++;
        if (right < room_of(message) || arrived[part] != (int)size) {
            printf("message %d part %d: %zu bytes are right, %d of %zu arrived\n", message->number, part, right,
                   arrived[part], size);
            exit(6);
        }
        memset(data, 0xee, room_of(message));
    }
}

static bool progress(struct message *message)
{
    int before = message->started + message->ended;
    if (message->started < message->parts)
        start(message);
    for (int part = 0; part < message->parts && message->started == message->parts; part++) {
        int done = 0, arrived[PARTS_MAX];
        if (!message->requests[part])
            continue;
        NCCL(test, message->requests[part], &done, arrived);
        if (done) {
            message->requests[part] = NULL;
            message->ended += rank ? 1 : message->parts;
            if (!rank)
                compare(message, arrived);
        }
    }
    return message->started + message->ended != before;
}

/* Up to SLOTS messages are under way, which begin in their order. */
static void move(int count)
{
    int idle = 0;
    int first = 0, next = 0;
    while (first < count) {
        bool moved = false;
        const struct message *last = &messages[(next + SLOTS - 1) % SLOTS];
        if (next < count && next < first + SLOTS && last->started == last->parts) {
            messages[next % SLOTS] = (struct message){.number = next, .parts = next % 3 == 2 ? parts : 1};
            if (next++ == dies_at)
                raise(SIGKILL);
        }
        for (int number = first; number < next; number++)
            moved |= progress(&messages[number % SLOTS]);
        while (first < next && messages[first % SLOTS].ended == messages[first % SLOTS].parts)
            first++;
        if (moved)
            idle = 0;
        else if (!usleep(1000) && ++idle == IDLE_MAX)
            check(ncclInProgress, "nothing moves");
    }
}

int main(int count, char **words)
{
    int found = -1, victim = -1;
    ncclNetProperties_v10_t properties;
    char mark = 1;
    void *plugin = count >= 8 ? dlopen(words[3], RTLD_NOW) : NULL;
    net = plugin ? dlsym(plugin, "ncclNetPlugin_v10") : NULL;
    if (!net || chdir(words[2]))
        return fprintf(stderr, "eight words, and a plugin of version 10 (%s)\n", plugin ? "loaded" : dlerror()), 2;
    rank = atoi(words[1]);
    parts = atoi(words[6]);
    if (sscanf(words[7], "%d:%d", &victim, &dies_at) != 2 || victim != rank)
        dies_at = -1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    NCCL(init, told, NULL);
    do
        NCCL(getProperties, ++found, &properties);
    while (strcmp(properties.name, words[4]));
    memset(memory, 0xee, sizeof memory);
    join(found);
    move(atoi(words[5]));
    meet(rank ? "sent" : "received", true, &mark, 1);
    meet(rank ? "received" : "sent", false, &mark, 1);
    printf("%s %s messages, every byte right\n", rank ? "sent" : "received", words[5]);
    leave(0);
}
