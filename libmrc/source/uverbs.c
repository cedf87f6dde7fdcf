/* The connection to the host's agent: uverbs' messages (docs/uverbs.md), and what a program finds when it has ended. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "nic.h"

static const char prefix[] = "mrclab/uverbs/";
enum { VERSION = 1, ANSWER_S = 30 };

static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nic *opened;

/* A child has a copy of everything but no session: the agent would hear two processes as one. */
static void leave_child(void)
{
    for (struct nic *nic = opened; nic; nic = nic->next) {
        if (nic->fd >= 0)
            close(nic->fd);
        nic->fd = -1;
        pthread_mutex_init(&nic->lock, NULL);
    }
    pthread_mutex_init(&opened_lock, NULL);
    stepped_forked();
    strict_forked();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, leave_child);
}

static int gone(struct nic *nic, const char *why)
{
    if (nic->fd >= 0) {
        log_line(LOG_ERROR, "the NIC of %s is gone: %s", nic->host, why);
        close(nic->fd);
        nic->fd = -1;
    }
    return EIO;
}

int uverbs_hosts(char (*hosts)[HOST_MAX], int room)
{
    char line[512];
    int count = 0;
    FILE *file = fopen("/proc/thread-self/net/unix", "re");
    while (file && count < room && fgets(line, sizeof line, file)) {
        char flags[16], *name = strstr(line, " @");
        if (!name || strncmp(name + 2, prefix, sizeof prefix - 1))
            continue;
        /* Connections show the same name; only the socket that listens has this flag (SO_ACCEPTCON). */
        if (sscanf(line, "%*s %*s %*s %15s", flags) != 1 || strcmp(flags, "00010000"))
            continue;
        name += 2 + sizeof prefix - 1;
        name[strcspn(name, "\n")] = '\0';
        if (strlen(name) < HOST_MAX)
            strcpy(hosts[count++], name);
    }
    if (file)
        fclose(file);
    return count;
}

static int connect_to(const char *host)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t size = sizeof peer;
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s%s", prefix, host);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    if (peer.uid && peer.uid != geteuid()) { /* an abstract socket has no folder that would keep others out */
        close(fd);
        refuse(EACCES, "the socket of %s belongs to user %u, not to the lab or to you", host, peer.uid);
        return -1;
    }
    return fd;
}

static void wait_for(struct nic *nic, short events, int ms)
{
    struct pollfd one = {.fd = nic->fd, .events = events};
    poll(&one, 1, ms);
}

void uverbs_sleep(struct nic *nic, int ms)
{
    wait_for(nic, POLLIN, ms);
}

/* One message; 1 if there was one, 0 if there is none, -1 if the agent is gone. */
static int take_one(struct nic *nic, char *buffer)
{
    char control[CMSG_SPACE(sizeof(int) * 4)];
    struct iovec part = {buffer, MESSAGE_MAX};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t size = recvmsg(nic->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int descriptor = -1, error = 0;

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (size < 0 && errno == ECONNRESET) /* told once, and before messages that still wait */
        return 1;
    if (size <= 0)
        return gone(nic, "its agent has ended"), -1;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS)
            for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= one->cmsg_len; at += sizeof(int)) {
                if (descriptor >= 0)
                    close(descriptor);
                memcpy(&descriptor, CMSG_DATA(one) + at, sizeof(int));
            }
    buffer[size] = '\0';
    nic->taken++;
    if (buffer[0] == '{') {
        uint64_t id;
        if (text_integer(text_find(buffer, "id"), &id) && nic->wanted_id && id == nic->wanted_id) {
            memcpy(nic->answer, buffer, (size_t)size + 1);
            if (nic->answer_fd >= 0)
                close(nic->answer_fd);
            nic->answer_fd = descriptor;
            nic->wanted_id = 0;
            return 1;
        }
        char why[256] = "its agent has cut this program off";
        text_string(text_find(buffer, "error"), why, sizeof why);
        if (descriptor >= 0)
            close(descriptor);
        return gone(nic, why), -1;
    }
    if (descriptor >= 0)
        close(descriptor);
    struct head head;
    if (buffer[0] == KIND_TIME && nic->stepped && size == sizeof head + sizeof(uint64_t)) {
        uint64_t now_ns;
        memcpy(&now_ns, buffer + sizeof head, sizeof now_ns);
        stepped_told(now_ns);
        return 1;
    }
    if ((size_t)size < sizeof head || buffer[0] != KIND_COMPLETIONS)
        return gone(nic, "its agent sends what is no message"), -1;
    memcpy(&head, buffer, sizeof head);
    if ((size_t)size != sizeof head + head.rows * sizeof(struct completion_row))
        return gone(nic, "its agent sends a message of a wrong length"), -1;
    for (unsigned int number = 0; number < head.rows && !error; number++) {
        struct completion_row row;
        memcpy(&row, buffer + sizeof head + number * sizeof row, sizeof row);
        error = cq_push(nic, &row);
    }
    return error ? (gone(nic, "its agent completes what was never posted"), -1) : 1;
}

int uverbs_take(struct nic *nic)
{
    char buffer[MESSAGE_MAX + 1];
    int taken = 1, before = errno;
    while (nic->fd >= 0 && (taken = take_one(nic, buffer)) > 0)
        ;
    errno = before;
    return nic->fd < 0 ? EIO : 0;
}

int uverbs_send(struct nic *nic, const void *message, size_t size)
{
    while (nic->fd >= 0) {
        if (send(nic->fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno == EAGAIN) { /* the agent does not read those who do not */
            wait_for(nic, POLLIN | POLLOUT, -1);
            uverbs_take(nic);
        } else if (errno != EINTR) {
            uverbs_take(nic); /* its last words */
            return gone(nic, "its agent has ended");
        }
    }
    return EIO;
}

uint32_t uverbs_id(struct nic *nic)
{
    nic->last_id = nic->last_id == UINT32_MAX ? 1 : nic->last_id + 1;
    return nic->last_id;
}

/* A refusal names an errno in its text (endpoint/uverbs/refusal.py), or means EINVAL. */
static int errno_of(const char *error)
{
    static const struct {
        const char *name;
        int value;
    } known[] = {
        {"(EACCES)", EACCES}, {"(EAGAIN)", EAGAIN}, {"(EBUSY)", EBUSY},     {"(EFBIG)", EFBIG},
        {"(EINVAL)", EINVAL}, {"(EIO)", EIO},       {"(EMFILE)", EMFILE},   {"(ENFILE)", ENFILE},
        {"(ENOBUFS)", ENOBUFS}, {"(ENOMEM)", ENOMEM}, {"(ENOSPC)", ENOSPC}, {"(EPERM)", EPERM},
    };
    for (size_t at = 0; at < sizeof known / sizeof *known; at++)
        if (strstr(error, known[at].name))
            return known[at].value;
    return EINVAL;
}

/* Seconds of a clock that is never set: a step of the wall clock ends no wait, and lengthens none. */
static time_t uptime_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

int uverbs_await(struct nic *nic, uint32_t id, const char *op)
{
    char why[512] = "refused without a reason";
    time_t deadline = uptime_s() + ANSWER_S;
    nic->wanted_id = id;
    for (;;) {
        if (uverbs_take(nic))
            return nic->wanted_id = 0, EIO;
        if (!nic->wanted_id)
            break;
        if (nic->stepped) { /* an answer may take the lab's time, and never takes another program's: they have turns */
            stepped_wait(nic, FOR_EVER);
            continue;
        }
        if (uptime_s() > deadline)
            return nic->wanted_id = 0, gone(nic, "its agent does not answer");
        wait_for(nic, POLLIN, 1000);
    }
    if (text_true(text_find(nic->answer, "ok")))
        return 0;
    text_string(text_find(nic->answer, "error"), why, sizeof why);
    return refuse(errno_of(why), "%s: %s", op, why);
}

int uverbs_call(struct nic *nic, const char *op, const char *arguments, ...)
{
    char message[MESSAGE_MAX];
    uint32_t id = uverbs_id(nic);
    int size = snprintf(message, sizeof message, "{\"id\":%u,\"op\":\"%s\"", id, op);
    va_list given;
    va_start(given, arguments);
    size += vsnprintf(message + size, sizeof message - (size_t)size, arguments, given);
    va_end(given);
    if (size + 2 > (int)sizeof message)
        return refuse(EINVAL, "%s: the request has %d bytes; %d are the most", op, size, MESSAGE_MAX);
    message[size++] = '}';
    log_line(LOG_DEBUG, "%.*s", size, message);
    if (nic->answer_fd >= 0)
        close(nic->answer_fd);
    nic->answer_fd = -1;
    nic->wanted_id = id; /* an answer may come while there is no room to send */
    int error = uverbs_send(nic, message, (size_t)size);
    return error ? error : uverbs_await(nic, id, op);
}

int uverbs_open(struct nic *nic, const char *host)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char program[128];
    nic->answer = malloc(MESSAGE_MAX + 1);
    nic->answer_fd = -1;
    nic->fd = stepped_process() ? stepped_enter(nic, host) : connect_to(host);
    if (nic->fd < 0 || !nic->answer) {
        int error = nic->fd < 0 ? errno : ENOMEM;
        uverbs_close(nic);
        return refuse(error, "no NIC of %s in this network namespace: %s", host, strerror(error));
    }
    strcpy(nic->host, host);
    text_quote(program_invocation_short_name, program, sizeof program);
    int error = uverbs_call(nic, "open", ",\"version\":%d,\"program\":%s,\"events\":true", VERSION, program);
    if (error) {
        uverbs_close(nic);
        return error;
    }
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&opened_lock);
    nic->next = opened;
    opened = nic;
    pthread_mutex_unlock(&opened_lock);
    if (nic->stepped) /* not before: the agent's answer to `open` is taken without the lock of the NIC */
        stepped_opened(nic);
    return 0;
}

void uverbs_close(struct nic *nic)
{
    pthread_mutex_lock(&opened_lock);
    for (struct nic **at = &opened; *at; at = &(*at)->next)
        if (*at == nic) {
            *at = nic->next;
            break;
        }
    pthread_mutex_unlock(&opened_lock);
    stepped_leave(nic);
    if (nic->fd >= 0)
        close(nic->fd);
    if (nic->answer_fd >= 0)
        close(nic->answer_fd);
    nic->fd = nic->answer_fd = -1;
    free(nic->answer);
    nic->answer = NULL;
}
