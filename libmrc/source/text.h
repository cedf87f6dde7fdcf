/* JSON as the agent writes it: values found by their path, in a text that nothing is assumed of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value under a path of keys such as "result.lkey"; NULL if there is none, or the text is no JSON up to there. */
const char *text_find(const char *json, const char *path);

/* The first element of an array, or the element behind `item`; NULL at the end. */
const char *text_first(const char *array);
const char *text_next(const char *item);

/* Each returns whether the value is of this type and fits. A string without its escapes' meaning, cut at `size`. */
bool text_integer(const char *value, uint64_t *found); /* negative numbers as two's complement */
uint64_t text_integer_at(const char *json, const char *path); /* 0 where there is none */
bool text_number(const char *value, double *found); /* finite, in any locale of the program */
bool text_string(const char *value, char *found, size_t size);
bool text_true(const char *value);

/* A float as JSON writes it, in any locale of the program; false for infinity and what is no number. */
bool text_write_number(double value, char *written, size_t size);

/* A string as JSON writes it, with its quotation marks; cut where it does not fit. */
void text_quote(const char *plain, char *quoted, size_t size);
