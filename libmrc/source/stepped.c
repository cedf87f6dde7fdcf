/* Programs in virtual time (docs/uverbs.md): the socket is there before the program begins, and the lab's time moves only
 * while the program waits here.
 *
 * Clocks and sleeps of libc are the lab's in such a process, so that a program measures what the lab does. There is
 * one program and one socket, so that threads take turns: while one waits, the calls of others wait with it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "nic.h"

static const char variable[] = "MRCLAB_UVERBS"; /* DESCRIPTOR:HOST */
enum { SECOND = 1000000000 };

static bool in_virtual_time;
static char place[HOST_MAX];
static int place_fd = -1;
static bool taken; /* the NIC has been opened before */

/* The opened NIC, which sleeps of any thread use; the lock is taken before that of the NIC. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nic *opened;
static uint64_t now_ns;

__attribute__((constructor)) static void find_place(void)
{
    const char *given = getenv(variable);
    char *host = NULL;
    long descriptor = given ? strtol(given, &host, 10) : -1;
    in_virtual_time = given != NULL;
    if (in_virtual_time && host != given && *host == ':' && strlen(host + 1) < HOST_MAX) {
        place_fd = (int)descriptor;
        strcpy(place, host + 1);
    }
}

bool stepped_process(void)
{
    return in_virtual_time;
}

const char *stepped_place(void)
{
    return __atomic_load_n(&taken, __ATOMIC_ACQUIRE) ? "" : place;
}

int stepped_enter(struct nic *nic, const char *host)
{
    if (!*place || strcmp(host, place) || __atomic_exchange_n(&taken, true, __ATOMIC_ACQ_REL)) {
        refuse(EBUSY, "a process in virtual time opens its NIC once");
        return -1;
    }
    if (fcntl(place_fd, F_SETFD, FD_CLOEXEC)) {
        refuse(errno, "%s must name an open socket (descriptor %d: %s)", variable, place_fd, strerror(errno));
        __atomic_store_n(&taken, false, __ATOMIC_RELEASE);
        return -1;
    }
    unsetenv(variable); /* the socket is not for children */
    nic->stepped = true;
    log_line(LOG_WARN, "virtual time: this program's clocks and sleeps are the lab's, computing takes no time, and the"
                       " processor's own counter (rdtsc) means nothing");
    return place_fd;
}

void stepped_opened(struct nic *nic)
{
    pthread_mutex_lock(&lock);
    opened = nic;
    pthread_mutex_unlock(&lock);
}

void stepped_leave(struct nic *nic)
{
    pthread_mutex_lock(&lock);
    if (opened == nic)
        opened = NULL;
    pthread_mutex_unlock(&lock);
}

void stepped_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    opened = NULL;
}

void stepped_told(uint64_t told_ns)
{
    __atomic_store_n(&now_ns, told_ns, __ATOMIC_RELAXED);
}

static uint64_t now(void)
{
    return __atomic_load_n(&now_ns, __ATOMIC_RELAXED);
}

int stepped_wait(struct nic *nic, int64_t wait_ns)
{
    struct {
        uint8_t kind, pad[3];
        uint32_t taken;
        int64_t until_ns;
    } message = {.kind = KIND_WAIT, .until_ns = wait_ns == FOR_EVER ? FOR_EVER : (int64_t)now() + wait_ns};
    uint32_t before = nic->taken;
    int error = uverbs_take(nic);
    if (error || nic->taken != before) /* there was news already */
        return error;
    message.taken = nic->taken;
    error = uverbs_send(nic, &message, sizeof message);
    while (!error && nic->taken == before) {
        uverbs_sleep(nic, -1);
        error = uverbs_take(nic);
    }
    return error;
}

/* Until the lab's time is `until_ns`; false without a NIC, where there is no lab to wait for. */
static bool pause_until(uint64_t until_ns)
{
    pthread_mutex_lock(&lock);
    struct nic *nic = opened;
    if (nic) {
        pthread_mutex_lock(&nic->lock);
        while (now() < until_ns && !stepped_wait(nic, (int64_t)(until_ns - now())))
            ;
        pthread_mutex_unlock(&nic->lock);
    }
    pthread_mutex_unlock(&lock);
    return nic != NULL;
}

/* --- libc's clocks and sleeps ------------------------------------------------------------------------------------ */

#define NEXT(name, ...) ((typeof(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

static bool is_the_labs(clockid_t clock)
{
    return in_virtual_time && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID;
}

PUBLIC int clock_gettime(clockid_t clock, struct timespec *at)
{
    static typeof(&clock_gettime) next;
    if (is_the_labs(clock)) {
        *at = (struct timespec){(time_t)(now() / SECOND), (long)(now() % SECOND)};
        return 0;
    }
    if (!next)
        next = (typeof(next))dlsym(RTLD_NEXT, "clock_gettime");
    return next(clock, at);
}

PUBLIC int gettimeofday(struct timeval *at, void *zone)
{
    if (!in_virtual_time)
        return NEXT(gettimeofday, at, zone);
    *at = (struct timeval){(time_t)(now() / SECOND), (suseconds_t)(now() % SECOND / 1000)};
    return 0;
}

PUBLIC time_t time(time_t *at)
{
    if (!in_virtual_time)
        return NEXT(time, at);
    time_t seconds = (time_t)(now() / SECOND);
    if (at)
        *at = seconds;
    return seconds;
}

PUBLIC int clock_nanosleep(clockid_t clock, int flags, const struct timespec *given, struct timespec *left)
{
    if (is_the_labs(clock) && given->tv_sec >= 0 && given->tv_nsec >= 0 && given->tv_nsec < SECOND) {
        uint64_t ns = (uint64_t)given->tv_sec * SECOND + (uint64_t)given->tv_nsec;
        if (pause_until(flags & TIMER_ABSTIME ? ns : now() + ns))
            return 0;
    }
    return NEXT(clock_nanosleep, clock, flags, given, left);
}

PUBLIC int nanosleep(const struct timespec *given, struct timespec *left)
{
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, given, left);
    if (error)
        errno = error;
    return error ? -1 : 0;
}

PUBLIC int usleep(useconds_t microseconds)
{
    return nanosleep(&(struct timespec){microseconds / 1000000, (long)(microseconds % 1000000) * 1000}, NULL);
}

PUBLIC unsigned int sleep(unsigned int seconds)
{
    struct timespec left = {seconds, 0};
    return nanosleep(&left, &left) ? (unsigned int)left.tv_sec : 0;
}
