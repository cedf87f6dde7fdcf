/* A model of an MRC NIC, written from docs/conformance.md and docs/reference/headers.md alone.
 *
 *     cc -O2 -o model_device model_device.c && ./model_device /path/to/socket
 *
 * Requests come on standard input, frames over the Unix socket. One queue pair, memory of 128 KB, no timers: a lost
 * packet stays lost until a NACK or a SACK asks for it. It keeps the basic group of rules. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef uint8_t u8;
enum { MEMORY = 1 << 17, WINDOW = 8192, FRONT = 102, DATA = 0x28, CONTROL = 0xB8 };
static u8 memory[MEMORY], source[MEMORY], got[WINDOW], done[WINDOW], sent[WINDOW];
static uint32_t imms[WINDOW], imm_bytes[WINDOW], acked, post_bytes, post_imm, post_id, peer_rkey, msn_out, rqmsn_out;
static uint64_t peer_va;
static uint32_t qpn, peer_qpn, psn_in, psn_first, next_psn, msn, units_bytes, evs[64], ev_count, ev_next, up = 3, receives;
static int wire, has_imm, open_write, dead;
static char completions[4096];
static u8 device_usid[16] = {0xfc, 0xbb, 0xbb, 0xbb, 0x30, 1}, tester_usid[16] = {0xfc, 0xbb, 0xbb, 0xbb, 0x30, 0};

static uint64_t get(const u8 *at, int bytes) {
    uint64_t value = 0;
    while (bytes--) value = value << 8 | *at++;
    return value;
}

static void put(u8 *at, int bytes, uint64_t value) {
    while (bytes--) at[bytes] = (u8)value, value >>= 8;
}

static uint32_t crc32_of(uint32_t crc, const u8 *data, long size) {
    for (; size-- > 0; data++) {
        crc ^= *data;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return crc;
}

/* InfiniBand's ICRC over an inner packet: eight bytes of ones, then everything with what may change set to ones. */
static uint32_t icrc(const u8 *inner, long size) {
    u8 head[60], ones[8];
    memset(ones, 0xFF, 8);
    memcpy(head, inner, 60);
    head[0] |= 0x0F;
    head[1] = head[2] = head[3] = head[7] = head[46] = head[47] = head[52] = 0xFF;
    return ~crc32_of(crc32_of(crc32_of(~0u, ones, 8), head, 60), inner + 60, size - 60);
}

/* Send a transport packet (from the BTH on) on an EV: low half in the UDP source port, high half in the flow label. */
static void transmit(u8 *body, long size, uint32_t ev, int class) {
    u8 frame[1 + FRONT + 1500] = {0}, *at = frame + 1;
    int port = ev >> 16 ? 2 : 1;
    frame[0] = (u8)port;
    memcpy(at, (u8[]){2, 0, 0, 0, 0, (u8)port, 2, 0, 0, 0, 1, (u8)port, 0x86, 0xDD}, 14);
    for (int inner = 0; inner < 2; inner++) {
        u8 *ip = at + 14 + 40 * inner;
        put(ip, 4, 6u << 28 | (uint32_t)(class | 2) << 20 | ev >> 16);
        put(ip + 4, 2, size + 4 + 8 + (inner ? 0 : 40));
        ip[6] = inner ? 17 : 41, ip[7] = 64;
        memcpy(ip + 8, inner ? (u8[16]){0xfd, [15] = 2} : (u8[16]){0xfd, 0, 0, (u8)port, [15] = 2}, 16);
        memcpy(ip + 24, inner ? (u8[16]){0xfd, [15] = 1} : tester_usid, 16);
    }
    put(at + 94, 2, ev & 0xFFFF), put(at + 96, 2, 4791), put(at + 98, 2, size + 12);
    memcpy(at + FRONT, body, size);
    uint32_t crc = icrc(at + 54, 48 + size);
    for (int n = 0; n < 4; n++) at[FRONT + size + n] = (u8)(crc >> 8 * n);
    send(wire, frame, 1 + FRONT + size + 4, 0);
}

static void bth(u8 *at, int opcode, uint32_t to, int flags, uint32_t psn) {
    put(at, 4, (uint32_t)opcode << 24 | 0xFFFF), put(at + 4, 4, to), put(at + 8, 4, (uint32_t)flags << 24 | (psn & 0xFFFFFF));
}

static void sack(uint32_t ev, int mark, int probe, int id) {
    u8 body[48] = {0};
    bth(body, 0xDC, peer_qpn, 0, psn_in - 1);
    body[12] = 0x80, body[13] = (u8)(mark << 5 | probe << 1);
    put(body + 14, 2, id), put(body + 16, 4, ev), put(body + 24, 4, (psn_in - 1) & 0xFFFFFF), put(body + 30, 2, 1);
    uint64_t bits = 0;
    for (int n = 0; n < 64; n++) bits |= (uint64_t)got[(psn_in + n) % WINDOW] << n;
    put(body + 32, 8, bits), put(body + 45, 3, (units_bytes + 255) / 256);
    transmit(body, 48, ev, CONTROL);
}

static void acknowledge(uint32_t ev, int syndrome) {
    u8 body[16] = {0};
    bth(body, 0xD1, peer_qpn, 0, psn_in - 1), put(body + 12, 4, (uint32_t)syndrome << 24 | msn);
    transmit(body, 16, ev, CONTROL);
    dead |= syndrome != 0x1F;
}

static void nack(uint32_t ev, uint32_t psn, int reason) {
    u8 body[32] = {0};
    bth(body, 0xDD, peer_qpn, 0, psn);
    body[12] = 0xA0, body[14] = (u8)reason, body[28] = 0x20;
    put(body + 16, 4, ev), put(body + 25, 3, psn & 0xFFFFFF);
    transmit(body, 32, ev, CONTROL);
}

static void data(uint32_t n, int again) {
    u8 body[36 + 256] = {0};
    uint32_t count = post_bytes ? (post_bytes + 255) / 256 : 1, last = n == count - 1, size = last ? post_bytes - n * 256 : 256;
    int opcode = (count == 1 ? 0xCA : !n ? 0xC6 : last ? 0xC8 : 0xC7) + (last && has_imm), at = 32;
    bth(body, opcode, peer_qpn, (again ? 0x20 : 0) | (last ? 0x80 : 0), next_psn - count + n);
    body[1] = (u8)((-size & 3) << 4);
    put(body + 12, 2, rqmsn_out), put(body + 14, 2, msn_out), put(body + 16, 8, peer_va + n * 256);
    put(body + 24, 4, peer_rkey), put(body + 28, 4, post_bytes);
    if (last && has_imm) put(body + 32, 4, post_imm), at = 36;
    memcpy(body + at, source + n * 256, size);
    do ev_next++; while (!(up >> (evs[ev_next % ev_count] >> 16) & 1));
    transmit(body, at + size + (-size & 3), evs[ev_next % ev_count], DATA), sent[n] = 1;
}

static void finish(const char *how) {
    if (open_write) sprintf(completions + strlen(completions), "%u:%s,", post_id, how);
    open_write = 0;
}

static void take_write(const u8 *in, const u8 *end, uint32_t ev, int opcode, uint32_t psn, int flags, int mark) {
    const u8 *at = in + 16 + (flags & 0x10 ? 4 : 0);
    uint64_t va = get(at, 8) - 0x10000;
    uint32_t rkey = get(at + 8, 4), ahead = (psn - psn_in) & 0xFFFFFF, imm = opcode == 0xC9 || opcode == 0xCB;
    long size = end - 4 - (at + 16) - 4 * imm - (in[1] >> 4 & 3);
    if (dead || (ahead >= 1024 && ahead < 1 << 23)) return;
    if (ahead >= 1 << 23 || got[psn % WINDOW]) {
        sack(ev, mark, 0, 0x8000);
        if (ahead >= 1 << 23) acknowledge(ev, 0x1F);
        return;
    }
    if (size && (rkey != 77 || va > MEMORY || va + size > MEMORY)) { acknowledge(ev, 0x62); return; }
    memcpy(memory + va * !!size, at + 16 + 4 * imm, size);
    got[psn % WINDOW] = 1, done[psn % WINDOW] = opcode >= 0xC8 ? 1 + imm : 0;
    units_bytes += (end - in) + 48;
    imms[psn % WINDOW] = imm ? get(at + 16, 4) : 0, imm_bytes[psn % WINDOW] = get(at + 12, 4);
    uint32_t before = msn;
    for (uint32_t slot; got[slot = psn_in % WINDOW]; psn_in = (psn_in + 1) & 0xFFFFFF) {
        got[slot] = 0, msn += !!done[slot];
        if (done[slot] == 2 && !receives--) { acknowledge(ev, 0x63); return; }
        if (done[slot] == 2) sprintf(completions + strlen(completions), "imm:%u:%u,", imms[slot], imm_bytes[slot]);
    }
    if (flags & 0xA0 || mark || msn != before) sack(ev, mark, 0, 0x8000);
    if (msn != before) acknowledge(ev, 0x1F);
}

static void take_sack(const u8 *in) {
    uint32_t count = (next_psn - psn_first) & 0xFFFFFF, cack = (get(in + 24, 4) - psn_first + 1) & 0xFFFFFF;
    uint64_t bits = get(in + 32, 8);
    int top = 63;
    if (cack > count || !open_write) return;
    while (top >= 0 && !(bits >> top & 1)) top--;
    for (int n = 0; n < top; n++)
        if (!(bits >> n & 1) && sent[cack + n] == 1) data(cack + n, 1), sent[cack + n] = 2;
    acked = cack;
    if (acked == count) finish("success");
}

static void receive(u8 *frame, long size) {
    u8 *ip = frame + 14, *in = frame + FRONT;
    if (size < FRONT + 12 || ip[6] != 41 || memcmp(ip + 24, device_usid, 16) || frame[93] != 2) return;
    int class = get(ip, 4) >> 22 & 0x3F, opcode = in[0], flags = in[8], mark = (get(ip, 4) >> 20 & 3) == 3;
    uint32_t ev = (get(ip + 40, 4) & 0xFFFF) << 16 | get(frame + 94, 2), psn = get(in + 9, 3), to = get(in + 5, 3);
    long end = 54 + 40 + get(frame + 98, 2);
    if (end > size) { /* trimmed: the UDP length is that of the whole packet */
        uint32_t ahead = (psn - psn_in) & 0xFFFFFF;
        if ((class == 20 || class == 22) && to == qpn && ahead < 1024 && !got[psn % WINDOW]) nack(ev, psn, class == 20 ? 1 : 2);
        return;
    }
    uint32_t crc = icrc(frame + 54, end - 54 - 4), found = 0;
    for (int n = 0; n < 4; n++) found |= (uint32_t)frame[end - 4 + n] << 8 * n;
    if (crc != found) return;
    if (opcode == 0xD8 && to == 2) {
        u8 body[48] = {0};
        bth(body, 0xD9, 2, 0, psn), body[13] = (u8)((in[13] & 3) << 2), put(body + 16, 4, 3), memcpy(body + 40, in + 24, 2);
        if (!(in[13] & 3)) up = get(in + 16, 4);
        transmit(body, 48, ev, CONTROL);
    }
    if (to != qpn) return;
    if (opcode >= 0xC6 && opcode <= 0xCB) take_write(in, frame + end, ev, opcode, psn, flags, mark);
    if (opcode == 0xDE) sack(ev, mark, 1, get(in + 16, 2)), acknowledge(ev, 0x1F);
    if (opcode == 0xDC) take_sack(in);
    if (opcode == 0xD1 && in[12] >= 0x60) finish("error");
    if (opcode == 0xDD && in[14] == 0x19) finish("error");
    uint32_t n = (psn - psn_first) & 0xFFFFFF;
    if (opcode == 0xDD && in[14] != 0x19 && open_write && n >= acked && n < ((next_psn - psn_first) & 0xFFFFFF)) data(n, 1);
}

static uint64_t value(const char *line, const char *key) {
    const char *at = strstr(line, key);
    return at ? strtoull(at + strlen(key), NULL, 0) : 0;
}

static void request(char *line) {
    char *hex = strstr(line, "hex="), *list = strstr(line, "evs=");
    uint32_t offset = value(line, "offset="), bytes = value(line, "bytes=");
    printf("ok");
    if (!strncmp(line, "reset", 5)) {
        memset(memory, 0, MEMORY), memset(got, 0, WINDOW), memset(sent, 0, WINDOW), *completions = 0, up = 3;
        open_write = dead = 0, msn = units_bytes = acked = receives = 0, msn_out = rqmsn_out = -1u;
    } else if (!strncmp(line, "open", 4)) {
        next_psn = psn_first = value(line, "psn="), qpn = 300;
        printf(" qpn=300 va=65536 rkey=77 bytes=%d", MEMORY);
    } else if (!strncmp(line, "connect", 7)) {
        psn_in = value(line, " psn="), peer_qpn = value(line, "qpn="), ev_count = 0;
        for (char *at = list + 4; ev_count < 64 && *at > ' '; at += *at == ',') evs[ev_count++] = strtoul(at, &at, 0);
    } else if (!strncmp(line, "receive", 7)) {
        receives += value(line, "count=");
    } else if (!strncmp(line, "fill", 4)) {
        for (hex += 4; hex[0] > ' ' && hex[1] > ' ' && offset < MEMORY; hex += 2) {
            char pair[3] = {hex[0], hex[1], 0};
            source[offset++] = (u8)strtoul(pair, NULL, 16);
        }
    } else if (!strncmp(line, "read", 4)) {
        printf(" hex=");
        for (uint32_t n = 0; n < bytes && offset + n < MEMORY; n++) printf("%02x", memory[offset + n]);
    } else if (!strncmp(line, "write", 5)) {
        post_bytes = bytes, post_id = value(line, "id="), peer_va = value(line, "va="), peer_rkey = value(line, "rkey=");
        post_imm = value(line, "imm="), has_imm = !!strstr(line, "imm="), open_write = 1, acked = 0;
        msn_out++, rqmsn_out += has_imm, psn_first = next_psn, memset(sent, 0, WINDOW);
        next_psn = (next_psn + (bytes ? (bytes + 255) / 256 : 1)) & 0xFFFFFF;
        for (uint32_t n = 0; n < (bytes ? (bytes + 255) / 256 : 1); n++) data(n, 0);
    } else if (!strncmp(line, "completions", 11)) {
        printf(" done=%s", completions), *completions = 0;
    }
    printf("\n"), fflush(stdout);
}

int main(int count, char **words) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char line[32768];
    u8 frame[65536];
    size_t held = 0;
    if (count != 2) return 2;
    wire = socket(AF_UNIX, SOCK_SEQPACKET, 0), strncpy(to.sun_path, words[1], sizeof to.sun_path - 1);
    if (connect(wire, (struct sockaddr *)&to, sizeof to)) return 1;
    for (;;) {
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(0, &ready);
        FD_SET(wire, &ready);
        if (select(wire + 1, &ready, NULL, NULL, NULL) < 0) return 1;
        if (FD_ISSET(wire, &ready)) {
            long size = recv(wire, frame, sizeof frame, 0);
            if (size <= 0) return 0;
            receive(frame + 1, size - 1);
        } else if (FD_ISSET(0, &ready)) {
            long size = read(0, line + held, sizeof line - 1 - held);
            if (size <= 0) return 0;
            line[held += size] = 0;
            for (char *end; (end = strchr(line, '\n')); memmove(line, end + 1, held -= end + 1 - line), line[held] = 0)
                *end = 0, request(line);
        }
    }
}
