#include "device/cells.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Arrays of externs are large and sparsely used: pages straight from the kernel cost nothing until they are touched. */
static void *cells_take(size_t bytes)
{
    void *cells = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return cells == MAP_FAILED ? NULL : cells;
}

static void cells_give(void *cells, size_t bytes)
{
    if (cells)
        munmap(cells, bytes);
}

static size_t counter_bytes(const struct program *program, u32 i)
{
    return ((size_t)program->counter[i].size + 1) * sizeof(struct counter);
}

static size_t meter_bytes(const struct program *program, u32 i)
{
    return ((size_t)program->meter[i].size + 1) * sizeof(struct meter);
}

static size_t register_bytes(const struct program *program, u32 i)
{
    return ((size_t)program->reg[i].size * program->reg[i].words + 1) * sizeof(u64);
}

bool cells_open(struct device *d)
{
    const struct program *program = d->program;
    d->counters = calloc(program->counters + 1, sizeof *d->counters);
    d->meters = calloc(program->meters + 1, sizeof *d->meters);
    d->registers = calloc(program->registers + 1, sizeof *d->registers);
    bool ok = d->counters && d->meters && d->registers;
    for (u32 i = 0; ok && i < program->counters; i++)
        ok &= !!(d->counters[i] = cells_take(counter_bytes(program, i)));
    for (u32 i = 0; ok && i < program->meters; i++)
        ok &= !!(d->meters[i] = cells_take(meter_bytes(program, i)));
    for (u32 i = 0; ok && i < program->registers; i++)
        ok &= !!(d->registers[i] = cells_take(register_bytes(program, i)));
    return ok;
}

void cells_close(struct device *d)
{
    const struct program *program = d->program;
    for (u32 i = 0; d->counters && i < program->counters; i++)
        cells_give(d->counters[i], counter_bytes(program, i));
    for (u32 i = 0; d->meters && i < program->meters; i++)
        cells_give(d->meters[i], meter_bytes(program, i));
    for (u32 i = 0; d->registers && i < program->registers; i++)
        cells_give(d->registers[i], register_bytes(program, i));
    free(d->counters);
    free(d->meters);
    free(d->registers);
    d->counters = NULL;
    d->meters = NULL;
    d->registers = NULL;
}
