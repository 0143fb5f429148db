/* tools/ortc/providers.c: `ortc providers`: where models can run on this machine, and why not elsewhere. */
#include <stdlib.h>

#include "args.h"
#include "json.h"
#include "session.h"
#include "term.h"

typedef struct listing {
    table t;
    json j;
} listing;

static char *memory_text(uint64_t bytes)
{
    return bytes ? mem_printf("%.1f GiB", (double)bytes / (1 << 30)) : mem_copy("");
}

static int each(void *arg, const ortc_provider_info *p)
{
    listing *l = arg;
    if (cli.json) {
        json_object(&l->j);
        json_pair_text(&l->j, "provider", p->provider);
        json_pair_integer(&l->j, "ordinal", p->ordinal);
        json_pair_text(&l->j, "device", p->device);
        json_pair_unsigned(&l->j, "kernels", p->n_kernels);
        json_pair_unsigned(&l->j, "memory_bytes", p->memory_bytes);
        json_pair_unsigned(&l->j, "memory_free", p->memory_free);
        json_pair_text(&l->j, "notes", p->notes);
        json_object_end(&l->j);
        return 0;
    }
    char *total = memory_text(p->memory_bytes), *left = memory_text(p->memory_free);
    table_format(&l->t, p->ordinal ? "%s:%u" : "%s", p->provider, p->ordinal);
    table_cell(&l->t, p->device && p->device[0] ? p->device : "not available");
    table_format(&l->t, "%u", p->n_kernels);
    table_cell(&l->t, total);
    table_cell(&l->t, left);
    table_cell(&l->t, p->notes ? p->notes : "");
    free(total);
    free(left);
    return 0;
}

int command_providers(int argc, char **argv)
{
    arg_list plugins = {0}, none;
    const arg_option options[] = {
        {.kind = ARG_LIST,
         .name = "plugin",
         .value = "FILE",
         .to = &plugins,
         .help = "load a plugin first; may be repeated"},
        ARGS_COMMON,
    };
    const arg_command command = {
        "providers",
        "[options]",
        "Lists execution providers, their devices and what they can do on this machine.",
        "",
        "",
        0,
        0,
        options};
    int code = args_parse(&command, argc, argv, &none);
    if (code < 0) code = plugins_load(&plugins);
    if (code >= 0) return code;
    listing l = {0};
    if (cli.json) {
        json_begin(&l.j, "providers");
        json_key(&l.j, "providers");
        json_array(&l.j);
        ortc_providers(each, &l);
        json_array_end(&l.j);
        json_finish(&l.j);
        return finish(EXIT_GOOD);
    }
    static const char *const heading[] = {"provider", "device", "kernels", "memory", "free", "notes"};
    table_init(&l.t, "llrrrl");
    for (size_t i = 0; i < COUNT_OF(heading); i++) table_cell(&l.t, heading[i]);
    ortc_providers(each, &l);
    table_print(&l.t, 0, true);
    return finish(EXIT_GOOD);
}
