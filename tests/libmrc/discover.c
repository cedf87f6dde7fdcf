/* Loads NCCL's plugin for MRC as NCCL does, and prints the devices that it finds. Argument: the plugin's path. */
#include <dlfcn.h>
#include <stdio.h>

#include "nccl.h"

#include "net.h" /* needs the one above */

static void told(ncclDebugLogLevel level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    (void)level, (void)flags, (void)file, (void)line, (void)format;
}

int main(int count, char **words)
{
    void *plugin = count == 2 ? dlopen(words[1], RTLD_NOW) : NULL;
    ncclNet_v10_t *net = plugin ? dlsym(plugin, "ncclNetPlugin_v10") : NULL;
    int devices = 0;
    if (!net) {
        fprintf(stderr, "%s\n", plugin ? "no ncclNetPlugin_v10" : dlerror());
        return 1;
    }
    if (net->init(told, NULL) != ncclSuccess || net->devices(&devices) != ncclSuccess)
        return 2;
    for (int number = 0; number < devices; number++) {
        ncclNetProperties_v10_t found;
        if (net->getProperties(number, &found) != ncclSuccess)
            return 3;
        printf("%s\n", found.name);
    }
    return 0;
}
