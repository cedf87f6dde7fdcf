/* mrc_ctl.h: EV profiles. An EV is a name of 32 bits here, in the first bytes of its value. */
#include <mrc_ctl.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrc_context.h"

enum { FIELDS_MAX = 32, ROWS_TEXT = 14000 };
static const char *const states[] = {"init", "offline", "online"};

struct text {
    char at[ROWS_TEXT];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list given;
    va_start(given, format);
    text->length += (size_t)vsnprintf(text->at + text->length, sizeof text->at - text->length, format, given);
    va_end(given);
    if (text->length >= sizeof text->at)
        text->length = sizeof text->at - 1; /* the agent refuses what is cut off */
}

static uint32_t value_of(const struct mrc_ctl_ev *ev)
{
    uint32_t value;
    memcpy(&value, ev->val, sizeof value);
    return value;
}

static struct mrc_ctl_ev named(uint64_t value, uint64_t port)
{
    struct mrc_ctl_ev ev = {.port = (uint8_t)port};
    memcpy(ev.val, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    return ev;
}

static int no_format(void)
{
    return failed(refuse(EOPNOTSUPP, "formats of EVs: there is one, a field of 32 bits, and it is fixed"));
}

PUBLIC int mrc_ctl_modify_ev_fmt_profile(struct mrc_context *context, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr,
                                         int mask)
{
    (void)context, (void)id, (void)attr, (void)mask;
    return no_format();
}

PUBLIC int mrc_ctl_query_ev_fmt_profile(struct mrc_context *context, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr,
                                        int mask)
{
    (void)context, (void)id, (void)attr, (void)mask;
    return no_format();
}

static int add_operation(struct text *text, const struct mrc_ctl_ev_profile_attr *attr)
{
    bool replace = attr->ev_op.op == MRC_CTL_EV_OP_REPLACE_EV;
    if (!replace && attr->ev_op.op != MRC_CTL_EV_OP_MODIFY_EV_STATE)
        return refuse(EINVAL, "EV operation %d does not modify a profile", attr->ev_op.op);
    if (attr->ev_op.entry_count < 0 || attr->ev_op.entry_count > OP_ENTRIES_MAX)
        return refuse(EINVAL, "%d entries: at most %d go together", attr->ev_op.entry_count, OP_ENTRIES_MAX);
    add(text, ",\"%s\":[", replace ? "replace_ev" : "modify_ev_state");
    for (int at = 0; at < attr->ev_op.entry_count; at++) {
        const struct mrc_ctl_ev_op_entry *entry = &attr->ev_op.entries[at];
        if (entry->flags)
            return refuse(EINVAL, "flags %#x of an EV operation: no EV is in a profile twice", entry->flags);
        add(text, "%s[%u", at ? "," : "", value_of(&entry->ev));
        if (replace)
            add(text, ",%u,%u,%u]", entry->ev.port, value_of(&entry->ev_new), entry->ev_new.port);
        else
            add(text, ",%u]", (unsigned int)entry->state);
    }
    add(text, "]");
    return 0;
}

static int add_fields(struct text *text, const struct mrc_ctl_ev_profile_attr *attr)
{
    if (attr->ev_fields_op.op != MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS)
        return refuse(EINVAL, "field operation %d does not modify a profile", attr->ev_fields_op.op);
    if (attr->ev_fields_op.field_count < 1 || attr->ev_fields_op.field_count > FIELDS_MAX)
        return refuse(EINVAL, "%d fields: an EV has 1 to %d", attr->ev_fields_op.field_count, FIELDS_MAX);
    add(text, ",\"fields\":[");
    for (int at = 0; at < attr->ev_fields_op.field_count; at++) {
        const struct mrc_ctl_ev_field *field = &attr->ev_fields_op.fields[at];
        add(text, "%s[%u,%u,%u,%u,%u]", at ? "," : "", field->width, field->init_val, field->min_val, field->max_val,
            field->mask);
    }
    add(text, "]");
    return 0;
}

static int attribute_text(const struct mrc_ctl_ev_profile_attr *attr, int mask, struct text *text)
{
    const char *mode = attr->ev_mode == MRC_CTL_EV_MODE_AUTO  ? "auto"
                       : attr->ev_mode == MRC_CTL_EV_MODE_EXP ? "explicit"
                       : attr->ev_mode == MRC_CTL_EV_MODE_GEN ? "generated"
                                                              : NULL;
    if (mask & (int)MRC_CTL_EV_PROFILE_VENDOR_CFG || (mask & MRC_CTL_EV_PROFILE_MODE && !mode))
        return refuse(EINVAL, "an EV profile has no vendor, and the modes AUTO, EXP and GEN");
    if ((mask & MRC_CTL_EV_PROFILE_STATE && (unsigned int)attr->profile_state > MRC_CTL_PROFILE_ONLINE) ||
        (mask & MRC_CTL_EV_PROFILE_CUR_STATE && (unsigned int)attr->cur_profile_state > MRC_CTL_PROFILE_ONLINE))
        return refuse(EINVAL, "an EV profile's states are INIT, OFFLINE and ONLINE");
    if (mask & MRC_CTL_EV_PROFILE_EV_OP && mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP)
        return refuse(EINVAL, "EV_OP and EV_FIELDS_OP exclude each other");
    if (mask & MRC_CTL_EV_PROFILE_STATE)
        add(text, ",\"profile_state\":\"%s\"", states[attr->profile_state]);
    if (mask & MRC_CTL_EV_PROFILE_CUR_STATE)
        add(text, ",\"cur_profile_state\":\"%s\"", states[attr->cur_profile_state]);
    if (mask & MRC_CTL_EV_PROFILE_MODE)
        add(text, ",\"ev_mode\":\"%s\"", mode);
    if (mask & MRC_CTL_EV_PROFILE_FMT_ID)
        add(text, ",\"ev_fmt_profile_id\":%lu", (unsigned long)attr->ev_fmt_profile_id);
    if (mask & MRC_CTL_EV_PROFILE_COUNT)
        add(text, ",\"ev_count\":%u", attr->ev_count);
    if (mask & MRC_CTL_EV_PROFILE_MIN_ACTIVE)
        add(text, ",\"ev_min_active\":%u", attr->ev_min_active);
    if (mask & MRC_CTL_EV_PROFILE_EVENT_MASK)
        add(text, ",\"ev_event_mask\":%d", attr->ev_event_mask);
    int error = mask & MRC_CTL_EV_PROFILE_EV_OP ? add_operation(text, attr) : 0;
    return !error && mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP ? add_fields(text, attr) : error;
}

PUBLIC int mrc_ctl_modify_ev_profile(struct mrc_context *context, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask)
{
    struct nic *nic = context->nic;
    struct text text = {.length = 0};
    int error = attribute_text(attr, mask, &text);
    if (error)
        return failed(error);
    pthread_mutex_lock(&nic->lock);
    error = uverbs_call(nic, "modify_ev_profile", ",\"profile\":%lu,\"attributes\":{%s}", (unsigned long)id,
                      text.length ? text.at + 1 : "");
    pthread_mutex_unlock(&nic->lock);
    return failed(error);
}

/* --- queries ------------------------------------------------------------------------------------------------------ */

static int ask(struct nic *nic, uint64_t id, uint64_t first)
{
    return uverbs_call(nic, "query_ev_profile", ",\"profile\":%lu,\"first\":%lu", (unsigned long)id, (unsigned long)first);
}

static bool take_row(const char *row, uint64_t *values, int count)
{
    const char *item = text_first(row);
    for (int at = 0; at < count; at++, item = item ? text_next(item) : NULL)
        if (!text_integer(item, &values[at]))
            return false;
    return true;
}

/* The profile's array, page by page: all of it, or the states of the EVs that the entries name. Locked. */
static int take_array(struct nic *nic, uint64_t id, struct mrc_ctl_ev_profile_attr *attr)
{
    bool whole = attr->ev_op.op == MRC_CTL_EV_OP_QUERY_EV_ARRAY;
    uint64_t present = text_integer_at(nic->answer, "result.evs_present"), seen = 0, found = 0, values[3];
    int wanted = attr->ev_op.entry_count, error = 0;
    if (whole && (wanted < 0 || (uint64_t)wanted < present)) {
        attr->ev_op.entry_count = (int)present;
        return E2BIG;
    }
    for (int at = 0; !whole && at < wanted; at++)
        attr->ev_op.entries[at].state = MRC_CTL_EV_UNKNOWN;
    while (!error && seen < present) {
        const char *row = text_first(text_find(nic->answer, "result.evs"));
        if (!row)
            return EPROTO;
        for (; row && seen < present; row = text_next(row), seen++) {
            if (!take_row(row, values, 3))
                return EPROTO;
            if (whole)
                attr->ev_op.entries[seen] =
                    (struct mrc_ctl_ev_op_entry){.ev = named(values[0], values[1]), .state = (enum mrc_ctl_ev_state)values[2]};
            for (int at = 0; !whole && at < wanted; at++)
                if (value_of(&attr->ev_op.entries[at].ev) == values[0] && attr->ev_op.entries[at].ev.port == values[1]) {
                    attr->ev_op.entries[at].state = (enum mrc_ctl_ev_state)values[2];
                    found++;
                }
        }
        if (seen < present)
            error = ask(nic, id, seen);
    }
    if (whole)
        attr->ev_op.entry_count = (int)present;
    return error ? error : !whole && found < (uint64_t)wanted ? ENOENT : 0;
}

static int take_fields(struct nic *nic, struct mrc_ctl_ev_profile_attr *attr)
{
    int room = attr->ev_fields_op.field_count, count = 0;
    uint64_t values[5];
    for (const char *row = text_first(text_find(nic->answer, "result.fields")); row; row = text_next(row), count++)
        if (count < room && take_row(row, values, 5))
            attr->ev_fields_op.fields[count] = (struct mrc_ctl_ev_field){(uint32_t)values[0], (uint32_t)values[1],
                                                                         (uint32_t)values[2], (uint32_t)values[3],
                                                                         (uint32_t)values[4]};
    attr->ev_fields_op.field_count = count;
    return count > room ? E2BIG : 0;
}

PUBLIC int mrc_ctl_query_ev_profile(struct mrc_context *context, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask)
{
    struct nic *nic = context->nic;
    char word[16] = "";
    if (mask & MRC_CTL_EV_PROFILE_EV_OP && mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP)
        return failed(refuse(EINVAL, "EV_OP and EV_FIELDS_OP exclude each other"));
    if (mask & MRC_CTL_EV_PROFILE_EV_OP && attr->ev_op.op != MRC_CTL_EV_OP_QUERY_EV_ARRAY &&
        attr->ev_op.op != MRC_CTL_EV_OP_QUERY_EV_STATE)
        return failed(refuse(EINVAL, "EV operation %d does not query a profile", attr->ev_op.op));
    pthread_mutex_lock(&nic->lock);
    int error = ask(nic, id, 0);
    if (!error) {
        text_string(text_find(nic->answer, "result.profile_state"), word, sizeof word);
        for (int state = 0; state < 3; state++)
            if (!strcmp(word, states[state]))
                attr->profile_state = attr->cur_profile_state = (enum mrc_ctl_profile_state)state;
        text_string(text_find(nic->answer, "result.ev_mode"), word, sizeof word);
        attr->ev_mode = *word == 'a' ? MRC_CTL_EV_MODE_AUTO : *word == 'e' ? MRC_CTL_EV_MODE_EXP : MRC_CTL_EV_MODE_GEN;
        attr->ev_fmt_profile_id = 0;
        attr->ev_count = (uint32_t)text_integer_at(nic->answer, "result.ev_count");
        attr->ev_min_active = (uint32_t)text_integer_at(nic->answer, "result.ev_min_active");
        attr->ev_event_mask = (int)text_integer_at(nic->answer, "result.ev_event_mask");
        if (mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP)
            error = take_fields(nic, attr);
        else if (mask & MRC_CTL_EV_PROFILE_EV_OP)
            error = take_array(nic, id, attr);
    }
    pthread_mutex_unlock(&nic->lock);
    return failed(error);
}
