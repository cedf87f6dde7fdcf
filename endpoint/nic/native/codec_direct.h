/* Functions of `endpoint/nic/codec.py` in C, which compiled Python calls instead of the Python of the same name.
 *
 * A `size_t` is mypyc's integer: twice the number, or the address of a Python integer plus one. A `char` is a bool, 2
 * for an exception; of an integer, 1 is an exception.
 */
#pragma once
#include <stddef.h>

struct _object;

char codec_usual(struct _object *frame, struct _object *address, struct _object *addresses, size_t trimmed, size_t port,
                 char counted);
char codec_has(struct _object *frame, size_t at, struct _object *part);
size_t codec_u16(struct _object *frame, size_t at);
size_t codec_u32(struct _object *frame, size_t at);
size_t codec_u64(struct _object *frame, size_t at);
struct _object *codec_write(struct _object *headers, size_t traffic_class, size_t opcode, size_t second,
                            size_t destination, size_t flags_psn, size_t meth, size_t va, size_t rkey, size_t length,
                            struct _object *memory, size_t start, size_t size, struct _object *immediate);
struct _object *codec_sack(struct _object *headers, size_t traffic_class, size_t destination, size_t cack, size_t first,
                           size_t answer, size_t ev, size_t mpr, size_t start, size_t bitmap, size_t stamp,
                           size_t beyond, size_t congestion);
