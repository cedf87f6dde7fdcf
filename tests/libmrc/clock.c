/* A program whose wall clock is set forward by a minute at each reading. Arguments: two devices. */
#include "ends.h"

#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

static time_t ahead;

/* The program's functions come before libc's and the library's. */
time_t time(time_t *at)
{
    struct timespec now;
    CHECK(!clock_gettime(CLOCK_REALTIME, &now));
    return at ? *at = now.tv_sec : now.tv_sec;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    typeof(&clock_gettime) next = (typeof(next))dlsym(RTLD_NEXT, "clock_gettime");
    int error = next(clock, at);
    at->tv_sec += clock == CLOCK_REALTIME ? ahead += 60 : 0;
    return error;
}

int main(int count, char **words)
{
    static struct end ends[2];
    CHECK(count == 3);
    time_t before = time(NULL), after = time(NULL);
    CHECK(after >= before + 60);
    for (int end = 0; end < 2; end++)
        open_end(&ends[end], words[1 + end], 1);
    return 0;
}
