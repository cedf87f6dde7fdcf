#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

static const char *blank(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++) {
        if (*at == '\\')
            at++;
        if (*at == '\0')
            return NULL;
    }
    return at + 1;
}

/* What stands behind a value; NULL if it is none. */
static const char *skip(const char *at, int depth)
{
    at = blank(at);
    if (*at == '"')
        return skip_string(at);
    if (*at == '{' || *at == '[') {
        char end = *at == '{' ? '}' : ']';
        if (depth >= DEPTH_MAX)
            return NULL;
        at = blank(at + 1);
        if (*at == end)
            return at + 1;
        for (;;) {
            if (end == '}') {
                at = blank(at);
                if (*at != '"' || !(at = skip_string(at)) || *(at = blank(at)) != ':')
                    return NULL;
                at++;
            }
            if (!(at = skip(at, depth + 1)))
                return NULL;
            at = blank(at);
            if (*at == end)
                return at + 1;
            if (*at++ != ',')
                return NULL;
        }
    }
    size_t length = strspn(at, "+-.0123456789abcdefghijklmnopqrstuvwxyzEIN");
    return length ? at + length : NULL;
}

static const char *member(const char *at, const char *key, size_t length)
{
    at = blank(at);
    if (*at != '{')
        return NULL;
    at = blank(at + 1);
    while (*at == '"') {
        const char *name = at + 1;
        if (!(at = skip_string(at)))
            return NULL;
        bool same = (size_t)(at - 1 - name) == length && !memcmp(name, key, length);
        at = blank(at);
        if (*at++ != ':')
            return NULL;
        if (same)
            return skip(at, 0) ? blank(at) : NULL;
        if (!(at = skip(at, 0)))
            return NULL;
        at = blank(at);
        if (*at == ',')
            at = blank(at + 1);
    }
    return NULL;
}

const char *text_find(const char *json, const char *path)
{
    const char *at = json;
    while (at && *path) {
        size_t length = strcspn(path, ".");
        at = member(at, path, length);
        path += length + (path[length] == '.');
    }
    return at;
}

const char *text_first(const char *array)
{
    if (!array || *(array = blank(array)) != '[' || !skip(array, 0))
        return NULL;
    array = blank(array + 1);
    return *array == ']' ? NULL : array;
}

const char *text_next(const char *item)
{
    const char *at = skip(item, 0);
    if (!at || *(at = blank(at)) != ',')
        return NULL;
    at = blank(at + 1);
    return skip(at, 0) ? at : NULL;
}

bool text_integer(const char *value, uint64_t *found)
{
    char *end;
    if (!value || (!isdigit((unsigned char)*value) && *value != '-'))
        return false;
    int before = errno;
    errno = 0;
    *found = *value == '-' ? (uint64_t)strtoll(value, &end, 10) : strtoull(value, &end, 10);
    bool fits = !errno;
    errno = before;
    return end != value && fits && *end != '.' && *end != 'e' && *end != 'E';
}

static locale_t plain;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* JSON has a decimal point, and the program's locale may have a comma. Only this thread changes. */
static locale_t leave_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return uselocale(plain);
}

uint64_t text_integer_at(const char *json, const char *path)
{
    uint64_t value;
    return text_integer(text_find(json, path), &value) ? value : 0;
}

bool text_number(const char *value, double *found)
{
    char *end;
    if (!value || (!isdigit((unsigned char)*value) && *value != '-'))
        return false;
    locale_t before = leave_locale();
    double number = strtod(value, &end);
    uselocale(before);
    if (end == value || !isfinite(number))
        return false;
    *found = number;
    return true;
}

bool text_write_number(double value, char *written, size_t size)
{
    if (!isfinite(value))
        return false;
    locale_t before = leave_locale();
    snprintf(written, size, "%.9g", value);
    uselocale(before);
    return true;
}

bool text_string(const char *value, char *found, size_t size)
{
    const char *end;
    if (!value || *value != '"' || !(end = skip_string(value)))
        return false;
    size_t length = 0;
    for (const char *at = value + 1; at < end - 1 && length + 1 < size; at++) {
        if (*at == '\\')
            at++;
        found[length++] = *at;
    }
    found[length] = '\0';
    return true;
}

bool text_true(const char *value)
{
    return value && !strncmp(value, "true", 4);
}

void text_quote(const char *plain, char *quoted, size_t size)
{
    size_t at = 0;
    quoted[at++] = '"';
    for (; *plain && at + 3 < size; plain++) {
        unsigned char one = (unsigned char)*plain;
        if (one == '"' || one == '\\')
            quoted[at++] = '\\';
        quoted[at++] = one < 0x20 || one > 0x7e ? '?' : (char)one;
    }
    quoted[at++] = '"';
    quoted[at] = '\0';
}
