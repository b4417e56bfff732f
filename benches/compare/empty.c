/* A module with one command, BENCH.EMPTY, that takes any arguments and does nothing: the floor
 * under every module command. It asks for the three API functions by name, so it needs no header. */
#include <stddef.h>

typedef int (*GetApi)(const char *name, void *function);
typedef int (*Command)(void *ctx, void **words, int count);

static int (*reply_with_long_long)(void *ctx, long long number);

static int empty(void *ctx, void **words, int count) {
    (void)words;
    (void)count;
    return reply_with_long_long(ctx, 0);
}

int RedisModule_OnLoad(void *ctx) {
    void (*set_attributes)(void *ctx, const char *name, int version, int api) = NULL;
    int (*create_command)(void *ctx, const char *name, Command run, const char *flags, int first,
                          int last, int step) = NULL;
    /* The first word of every context points to the function that finds the others. */
    GetApi get_api = *(GetApi *)ctx;
    get_api("RedisModule_SetModuleAttribs", &set_attributes);
    get_api("RedisModule_CreateCommand", &create_command);
    get_api("RedisModule_ReplyWithLongLong", &reply_with_long_long);
    if (!set_attributes || !create_command || !reply_with_long_long) return 1;
    set_attributes(ctx, "bench-empty", 1, 1);
    return create_command(ctx, "bench.empty", empty, "write deny-oom fast", 1, 1, 1);
}
