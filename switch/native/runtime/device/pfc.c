#include "device/pfc.h"

#include "device/traffic.h"

enum { MAC_CONTROL = 0x8808, OPCODE_PFC = 0x0101 };
enum { TYPE_AT = 12, OPCODE_AT = 14, VECTOR_AT = 16, TIMES_AT = 18, LEAST_BYTES = TIMES_AT + 2 * PRIORITIES };

static const u8 group_address[6] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};

static u64 quanta_ns(const struct port *port, u64 quanta)
{
    return interval_ns(quanta * 512, port->rate_bps);
}

static u64 repeat_ns(const struct port *port)
{
    u64 half_ns = quanta_ns(port, port->pfc.quanta) / 2;
    return half_ns ? half_ns : 1;
}

/* Set when the port next has something to say. */
static void plan(struct port *port, u64 now_ns)
{
    struct pfc *pfc = &port->pfc;
    if (!port->up || !pfc->classes)
        port->control_ns = NEVER;
    else if (pfc->want != pfc->told)
        port->control_ns = port->control_ns < now_ns ? port->control_ns : now_ns;
    else
        port->control_ns = pfc->want ? pfc->sent_ns + repeat_ns(port) : NEVER;
}

/* --- being paused ---------------------------------------------------------------------------------------------- */

static void settle(struct port *port, struct pfc_pause *pause, u64 now_ns)
{
    if (pause->since_ns == NEVER)
        return;
    u64 end_ns = now_ns < pause->until_ns ? now_ns : pause->until_ns;
    if (end_ns > pause->since_ns) {
        port->counters.paused_ns += end_ns - pause->since_ns;
        pause->since_ns = end_ns;
    }
    if (port->pfc.watchdog_ns && !pause->watched && end_ns - pause->began_ns > port->pfc.watchdog_ns) {
        pause->watched = true;
        port->counters.pause_watchdog++;
    }
    if (now_ns >= pause->until_ns)
        pause->since_ns = NEVER;
}

void pfc_settle(struct port *port, u64 now_ns)
{
    for (u32 i = 0; i < PRIORITIES; i++)
        settle(port, &port->pfc.pause[i], now_ns);
}

static void hold(struct port *port, u32 priority, u64 now_ns, u64 until_ns)
{
    struct pfc_pause *pause = &port->pfc.pause[priority];
    struct queue *queue = &port->queue[priority];
    settle(port, pause, now_ns);
    if (pause->since_ns == NEVER) {
        pause->since_ns = pause->began_ns = now_ns;
        pause->rate_ns = queue->next_ns;
        pause->watched = false;
    }
    pause->until_ns = until_ns;
    queue->next_ns = pause->rate_ns > until_ns ? pause->rate_ns : until_ns;
}

static void let_go(struct port *port, u32 priority, u64 now_ns)
{
    struct pfc_pause *pause = &port->pfc.pause[priority];
    settle(port, pause, now_ns);
    if (pause->since_ns == NEVER)
        return;
    pause->since_ns = NEVER;
    port->queue[priority].next_ns = pause->rate_ns > now_ns ? pause->rate_ns : now_ns;
}

static bool is_pfc(const u8 *frame, u32 length)
{
    return length >= LEAST_BYTES && load16(frame + OPCODE_AT) == OPCODE_PFC && !memcmp(frame, group_address, 6);
}

bool pfc_receive(struct device *d, struct port *port, const u8 *frame, u32 length)
{
    if (!port->pfc.classes || length < OPCODE_AT || load16(frame + TYPE_AT) != MAC_CONTROL)
        return false;
    u32 classes = is_pfc(frame, length) ? load16(frame + VECTOR_AT) & port->pfc.classes : 0;
    bool pauses = false;
    if (d->recorder)
        traffic_note_refused(d, port->number, FATE_RECEIVED, frame, length, length);
    for (u32 i = 0; i < PRIORITIES; i++) {
        if (!(classes >> i & 1))
            continue;
        u64 quanta = load16(frame + TIMES_AT + 2 * i);
        pauses |= quanta != 0;
        if (quanta)
            hold(port, i, d->now_ns, d->now_ns + quanta_ns(port, quanta));
        else
            let_go(port, i, d->now_ns);
    }
    if (!classes)
        port->counters.pause_ignored++;
    else if (pauses)
        port->counters.pause_received++;
    else
        port->counters.resume_received++;
    traffic_schedule(d, port, d->now_ns);
    return true;
}

/* --- pausing the peer ------------------------------------------------------------------------------------------- */

static struct pfc *account_of(const struct device *d, const struct packet *p)
{
    struct port *from = device_port(d, p->port_in);
    return from && p->priority < PRIORITIES && from->pfc.classes >> p->priority & 1 ? &from->pfc : NULL;
}

bool pfc_admits(const struct device *d, const struct packet *p, u32 bytes)
{
    const struct pfc *pfc = account_of(d, p);
    return !pfc || pfc->held[p->priority] + bytes <= pfc->xoff_bytes + pfc->headroom_bytes;
}

void pfc_charge(struct device *d, struct packet *p, u64 now_ns)
{
    struct pfc *pfc = account_of(d, p);
    if (!pfc)
        return;
    struct port *from = device_port(d, p->port_in);
    u8 bit = (u8)(1u << p->priority);
    u64 held = pfc->held[p->priority] += p->queued_bytes;
    p->charged = true;
    if (held > from->counters.held_bytes_max)
        from->counters.held_bytes_max = held;
    if (held <= pfc->xoff_bytes || pfc->want & bit)
        return;
    pfc->want |= bit;
    plan(from, now_ns);
    traffic_schedule(d, from, now_ns);
}

void pfc_release(struct device *d, struct packet *p, u64 now_ns)
{
    struct port *from = device_port(d, p->port_in);
    struct pfc *pfc = &from->pfc;
    u8 bit = (u8)(1u << p->priority);
    u64 held = pfc->held[p->priority] -= p->queued_bytes;
    p->charged = false;
    if (held > pfc->xon_bytes || !(pfc->want & bit))
        return;
    pfc->want &= (u8)~bit;
    plan(from, now_ns);
    traffic_schedule(d, from, now_ns);
}

static void write_frame(const struct port *port, u8 classes, u8 *frame)
{
    memset(frame, 0, PFC_FRAME_BYTES);
    memcpy(frame, group_address, 6);
    for (u32 i = 0; i < 6; i++)
        frame[6 + i] = (u8)(port->pfc.mac >> (8 * (5 - i)));
    store16(frame + TYPE_AT, MAC_CONTROL);
    store16(frame + OPCODE_AT, OPCODE_PFC);
    store16(frame + VECTOR_AT, classes);
    for (u32 i = 0; i < PRIORITIES; i++)
        if (port->pfc.want >> i & 1)
            store16(frame + TIMES_AT + 2 * i, port->pfc.quanta);
}

void pfc_send(struct device *d, struct port *port, u64 t_ns)
{
    struct pfc *pfc = &port->pfc;
    u8 classes = pfc->want | pfc->told;
    struct packet *p = pool_take(d->pool, PFC_FRAME_BYTES, (struct extra){0, 0});
    if (p)
        write_frame(port, classes, p->data);
    pfc->told = pfc->want;
    pfc->sent_ns = t_ns;
    plan(port, t_ns);
    if (!p) { /* a repetition says it again, or the pause ends by its quanta */
        traffic_idle(d, port, t_ns);
        return;
    }
    if (pfc->want)
        port->counters.pause_sent++;
    else
        port->counters.resume_sent++;
    p->port_in = NO_PORT;
    p->port_out = port->number;
    p->priority = PRIORITIES - 1;
    p->ingress_length = p->length;
    p->enqueue_ns = t_ns;
    p->enqueue_depth = 0;
    p->charged = false;
    traffic_transmit_control(d, port, p, t_ns);
}

/* --- configuration ---------------------------------------------------------------------------------------------- */

void pfc_init(struct port *port)
{
    port->control_ns = NEVER;
    for (u32 i = 0; i < PRIORITIES; i++)
        port->pfc.pause[i].since_ns = NEVER;
}

void pfc_configure(struct device *d, struct port *port, const struct port_config *config, u64 now_ns)
{
    struct pfc *pfc = &port->pfc;
    pfc->classes = (u8)config->pfc_classes;
    pfc->quanta = (u16)config->pfc_quanta;
    pfc->xoff_bytes = config->pfc_xoff_bytes;
    pfc->xon_bytes = config->pfc_xon_bytes;
    pfc->headroom_bytes = config->pfc_headroom_bytes;
    pfc->watchdog_ns = config->pfc_watchdog_ns;
    pfc->mac = config->pfc_mac;
    d->lossless |= pfc->classes != 0;
    for (u32 i = 0; i < PRIORITIES; i++) {
        u8 bit = (u8)(1u << i);
        if (!port->up || !(pfc->classes & bit))
            let_go(port, i, now_ns);
        if (!(pfc->classes & bit) || pfc->held[i] <= pfc->xon_bytes)
            pfc->want &= (u8)~bit;
        else if (pfc->held[i] > pfc->xoff_bytes)
            pfc->want |= bit;
    }
    pfc->told = port->up ? pfc->told & pfc->classes : 0;
    plan(port, now_ns);
}

void pfc_forget(struct port *port, u64 now_ns)
{
    struct pfc *pfc = &port->pfc;
    for (u32 i = 0; i < PRIORITIES; i++) {
        let_go(port, i, now_ns);
        pfc->held[i] = 0;
    }
    pfc->want = pfc->told = 0;
    port->control_ns = port->service_ns = NEVER;
}
