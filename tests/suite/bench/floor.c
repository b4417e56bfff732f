/* The floors under SLIDEWIN.CHECK, as a module:
 *
 * BENCH.EMPTY takes any arguments and does nothing.
 * BENCH.CALLS key ... makes the calls of the module API without which an allowed CHECK cannot keep
 * its promises, and nothing else: it reads no argument but the key and decides nothing.
 * BENCH.PACKED key ... makes those of an allowed CHECK on a packed log, which it never rewrites.
 *
 * It asks the server for the API by name, so it needs no header. */
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

enum { READ_ONLY = 1, READ_WRITE = 3, ADD_NEW_ONLY = 2, GENERIC_EVENT = 4, STRING_EVENT = 8, ZSET_EVENT = 128, SIGNAL_BY_HAND = 2 };

static void *(*open_key)(void *ctx, void *name, int mode);
static void (*close_key)(void *key);
static int (*key_type)(void *key);
static int (*first_in_range)(void *key, double min, double max, int min_ex, int max_ex);
static int (*range_ended)(void *key);
static void *(*current)(void *key, double *score);
static void (*stop_range)(void *key);
static int (*zset_rem)(void *key, void *member, int *removed);
static int (*zset_add)(void *key, double score, void *member, int *flags);
static long long (*expiry_of)(void *key);
static int (*set_expiry)(void *key, long long at_ms);
static char *(*bytes_of)(void *key, size_t *length, int mode);
static int (*resize)(void *key, size_t length);
static void *(*string_of)(void *ctx, long long number);
static void (*free_string)(void *ctx, void *string);
static int (*replicate)(void *ctx, const char *command, const char *format, ...);
static int (*signal_modified)(void *ctx, void *name);
static int (*notify)(void *ctx, int type, const char *event, void *name);
static int (*reply_with_long_long)(void *ctx, long long number);
static void (*set_attributes)(void *ctx, const char *name, int version, int api);
static void (*set_options)(void *ctx, int options);
static int (*create_command)(void *ctx, const char *name, int (*run)(void *, void **, int),
                             const char *flags, int first, int last, int step);

static const struct {
    const char *name;
    void *function;
} api[] = {
    {"RedisModule_OpenKey", &open_key},
    {"RedisModule_CloseKey", &close_key},
    {"RedisModule_KeyType", &key_type},
    {"RedisModule_ZsetFirstInScoreRange", &first_in_range},
    {"RedisModule_ZsetRangeEndReached", &range_ended},
    {"RedisModule_ZsetRangeCurrentElement", &current},
    {"RedisModule_ZsetRangeStop", &stop_range},
    {"RedisModule_ZsetRem", &zset_rem},
    {"RedisModule_ZsetAdd", &zset_add},
    {"RedisModule_GetAbsExpire", &expiry_of},
    {"RedisModule_SetAbsExpire", &set_expiry},
    {"RedisModule_StringDMA", &bytes_of},
    {"RedisModule_StringTruncate", &resize},
    {"RedisModule_CreateStringFromLongLong", &string_of},
    {"RedisModule_FreeString", &free_string},
    {"RedisModule_Replicate", &replicate},
    {"RedisModule_SignalModifiedKey", &signal_modified},
    {"RedisModule_NotifyKeyspaceEvent", &notify},
    {"RedisModule_ReplyWithLongLong", &reply_with_long_long},
    {"RedisModule_SetModuleAttribs", &set_attributes},
    {"RedisModule_SetModuleOptions", &set_options},
    {"RedisModule_CreateCommand", &create_command},
};

static int empty(void *ctx, void **words, int count) {
    (void)words;
    (void)count;
    return reply_with_long_long(ctx, 0);
}

static int calls(void *ctx, void **words, int count) {
    (void)count;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    long long now = time.tv_sec * 1000000LL + time.tv_nsec / 1000;
    long long expiry = now / 1000 + 3600000;

    void *name = words[1], *key = open_key(ctx, name, READ_WRITE), *oldest = NULL;
    double score;
    int removed, flags = ADD_NEW_ONLY;
    key_type(key);
    first_in_range(key, -INFINITY, INFINITY, 0, 0);
    if (!range_ended(key)) oldest = current(key, &score);
    stop_range(key);
    if (oldest) zset_rem(key, oldest, &removed);
    void *stamp = string_of(NULL, now);
    zset_add(key, (double)now, stamp, &flags);
    set_expiry(key, expiry);
    close_key(key);

    replicate(ctx, "ZREMRANGEBYRANK", "scc", name, "0", "0");
    replicate(ctx, "ZADD", "sss", name, stamp, stamp);
    replicate(ctx, "PEXPIREAT", "sl", name, expiry);
    signal_modified(ctx, name);
    notify(ctx, ZSET_EVENT, "zremrangebyrank", name);
    notify(ctx, ZSET_EVENT, "zadd", name);
    notify(ctx, GENERIC_EVENT, "expire", name);
    free_string(NULL, stamp);
    if (oldest) free_string(ctx, oldest);
    return reply_with_long_long(ctx, 1);
}

static int packed(void *ctx, void **words, int count) {
    (void)count;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    long long now = time.tv_sec * 1000000LL + time.tv_nsec / 1000;
    long long expiry = now / 1000 + 3600000, entry[2] = {now, 1};

    size_t length;
    void *name = words[1], *key = open_key(ctx, name, READ_WRITE);
    key_type(key);
    bytes_of(key, &length, READ_ONLY);
    resize(key, length + sizeof entry);
    memcpy(bytes_of(key, &length, READ_WRITE) + length - sizeof entry, entry, sizeof entry);
    if (expiry_of(key) < expiry) set_expiry(key, expiry);
    close_key(key);

    replicate(ctx, "APPEND", "sb", name, (char *)entry, sizeof entry);
    replicate(ctx, "PEXPIREAT", "sl", name, expiry);
    signal_modified(ctx, name);
    notify(ctx, STRING_EVENT, "append", name);
    notify(ctx, GENERIC_EVENT, "expire", name);
    return reply_with_long_long(ctx, 1);
}

int RedisModule_OnLoad(void *ctx) {
    /* The first word of every context points to the function that finds the others. */
    int (*get_api)(const char *name, void *function) = *(int (**)(const char *, void *))ctx;
    for (size_t i = 0; i < sizeof api / sizeof *api; i++)
        if (get_api(api[i].name, api[i].function)) return 1;
    set_attributes(ctx, "bench-floor", 1, 1);
    set_options(ctx, SIGNAL_BY_HAND);
    return create_command(ctx, "bench.empty", empty, "write deny-oom fast", 1, 1, 1) ||
           create_command(ctx, "bench.calls", calls, "write deny-oom fast", 1, 1, 1) ||
           create_command(ctx, "bench.packed", packed, "write deny-oom fast", 1, 1, 1);
}
