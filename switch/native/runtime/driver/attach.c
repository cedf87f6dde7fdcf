/* Ports of devices on interfaces: opened, watched, and closed. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "driver/inside.h"

static int free_interface(struct driver *d)
{
    for (u32 i = 0; i < d->interfaces; i++)
        if (!d->interface[i])
            return (int)i;
    struct interface **interfaces = realloc(d->interface, (d->interfaces + 1) * sizeof *interfaces);
    if (!interfaces)
        return -1;
    d->interface = interfaces;
    interfaces[d->interfaces] = NULL;
    return (int)d->interfaces++;
}

static void close_later(struct driver *d, struct wire *w)
{
    int *closing = realloc(d->closing, (d->closing_count + 1) * sizeof *closing);
    if (!closing) {
        wire_close(w);
        return;
    }
    d->closing = closing;
    closing[d->closing_count++] = w->fd;
}

void driver_close_sockets(struct driver *d)
{
    gate_enter(&d->gate);
    int *closing = d->closing;
    u32 count = d->closing_count;
    d->closing = NULL;
    d->closing_count = 0;
    gate_leave(&d->gate);
    wire_close_many(closing, count);
    free(closing);
}

static void detach(struct driver *d, struct port *port)
{
    struct interface *from = d->interface[port->index];
    epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, from->wire.fd, NULL);
    close_later(d, &from->wire);
    free(from);
    d->interface[port->index] = NULL;
    port->index = -1;
}

int driver_attach(struct driver *d, struct device *device, u32 number, const char *interface, const char *netns,
                  const char **what)
{
    struct port *port = device_port(device, number);
    struct interface *made = calloc(1, sizeof *made);
    int index = free_interface(d);
    *what = "attach the port";
    if (!port || !made || index < 0 || port->index >= 0) {
        free(made);
        return !port || (made && index >= 0) ? -EINVAL : -ENOMEM;
    }
    int result = wire_open(&made->wire, interface, netns, what);
    if (result) {
        free(made);
        return result;
    }
    made->device = device;
    made->port = port;
    d->interface[index] = made;
    port->index = index;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (u64)index};
    if (epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, made->wire.fd, &event)) {
        result = -errno;
        *what = "wait for frames of the interface";
        detach(d, port);
    }
    return result;
}

void driver_remove(struct driver *d, struct device *device)
{
    for (u32 number = 0; number < PORTS; number++)
        if (device->port[number] && device->port[number]->index >= 0)
            detach(d, device->port[number]);
    /* A device that could not be added has no slot. */
    if (device->driver_slot < d->slots && d->slot[device->driver_slot].device == device)
        d->slot[device->driver_slot].device = NULL;
}

void driver_count_drops(struct driver *d, struct device *device, u32 number)
{
    struct port *port = device_port(device, number);
    if (port && port->index >= 0)
        port->counters.drop_socket += wire_drops(&d->interface[port->index]->wire);
}
