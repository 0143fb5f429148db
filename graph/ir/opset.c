/* graph/ir/opset.c: the table of operators, filled by families as they register, read by importers and
 * passes.
 *
 * Entries are never removed or moved, so that pointers to operators stay valid for the life of the process.
 * Operators are copied: a plugin's ortc_op may be of another size than ours. Schemas are parsed when first
 * needed: a process that runs one model meets few of them.
 */
#include "graph.h"

#include <pthread.h>

#include "schema.h"

#define MAX_OPS 4096 /* the standard has 227; the rest is plugins' */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t parsing = PTHREAD_MUTEX_INITIALIZER;
static ortc_op_entry *table[512]; /* by hash, chained */
static size_t n_ops;

static const char *plain_domain(const char *domain) { return strcmp(domain, "ai.onnx") ? domain : ""; }

/* Where the entry is hung, or would be: behind the last of its chain. */
static ortc_op_entry **slot_of(const char *domain, const char *name)
{
    ortc_op_entry **at = &table[ortc_hash_string(name) % ORTC_LENGTH(table)];
    while (*at && (strcmp((*at)->op.name, name) || strcmp((*at)->op.domain, domain))) at = &(*at)->next;
    return at;
}

const ortc_op *ortc_op_find(const char *domain, const char *name)
{
    pthread_rwlock_rdlock(&lock);
    const ortc_op_entry *e = *slot_of(plain_domain(domain), name);
    pthread_rwlock_unlock(&lock);
    return e ? &e->op : NULL;
}

void ortc_op_each(void (*each)(void *arg, const ortc_op *), void *arg)
{
    pthread_rwlock_rdlock(&lock);
    for (size_t i = 0; i < ORTC_LENGTH(table); i++)
        for (const ortc_op_entry *e = table[i]; e; e = e->next) each(arg, &e->op);
    pthread_rwlock_unlock(&lock);
}

const char *ortc_op_family(const ortc_op *op)
{
    return op == &ortc_op_group ? ""
                                : ((const ortc_op_entry *)op)->family; /* all but that one are in the table */
}

/* The oldest of "13 6 1", below which there are no nodes; 0: they are not versions below `since`, newest
 * first. */
static int32_t first_version(const ortc_op *op)
{
    long first = op->since;
    for (const char *s = op->older; s && *s;) {
        char *end;
        const long v = strtol(s, &end, 10);
        if (end == s || v < 1 || v >= first) return 0;
        first = v;
        s = end;
    }
    return (int32_t)first;
}

enum {
    OP_FLAGS = ORTC_OP_RANDOM | ORTC_OP_CONTROL | ORTC_OP_STATE | ORTC_OP_HEAVY | ORTC_OP_COMPOSED |
               ORTC_OP_MODULE | ORTC_OP_PICKS
};

ortc_status ortc_op_add(const ortc_op *op, const char *family, bool at_once, ortc_error *error)
{
    if (op->size < offsetof(ortc_op, infer) || op->size % sizeof(void *) || !op->domain || !op->name ||
        !*op->name || !op->inputs || !op->outputs || !op->attributes || !op->types || op->since < 1 ||
        op->form < 1 || op->form > op->since)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "operator '%s': a field of its ortc_op is missing or wrong",
                         op->name ? op->name : "?");
    if (op->flags & ~(uint32_t)OP_FLAGS)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "operator '%s' has unknown flags %#x", op->name,
                         (unsigned)(op->flags & ~(uint32_t)OP_FLAGS));
    const int32_t first = first_version(op);
    if (!first)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "operator '%s': older versions '%s' are not numbers below %d, newest first",
                         op->name, op->older, op->since);
    if ((op->flags & ORTC_OP_COMPOSED) && (op->size < sizeof *op || !op->lift))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "operator '%s' is composed, but nothing lifts it",
                         op->name);
    ortc_op_entry *e = calloc(1, sizeof *e);
    if (!e) return ortc_no_memory(error, sizeof *e);
    memcpy(&e->op, op, op->size < sizeof *op ? op->size : sizeof *op);
    e->op.domain = plain_domain(op->domain);
    e->family = family;
    if (!e->op.older) e->op.older = "";
    if (e->op.form < first) e->op.form = first;
    ortc_status s = at_once ? ortc_schema_parse(&e->op, &e->schema, error) : ORTC_OK;
    if (s != ORTC_OK) {
        free(e);
        return s;
    }
    atomic_init(&e->ready, at_once);
    pthread_rwlock_wrlock(&lock);
    ortc_op_entry **at = slot_of(e->op.domain, e->op.name);
    if (n_ops == MAX_OPS)
        s = ortc_fail(error, ORTC_LIMIT, "more than %d operators", MAX_OPS);
    else if (*at) /* the first one stays: pointers to it are in use */
        s = ortc_fail(error, ORTC_INVALID_ARGUMENT, "operator '%s' of domain '%s' is registered already",
                      e->op.name, e->op.domain);
    else {
        *at = e;
        n_ops++;
    }
    pthread_rwlock_unlock(&lock);
    if (s != ORTC_OK) {
        ortc_arena_deinit(&e->schema.arena);
        free(e);
    }
    return s;
}

ortc_status ortc_op_ready(const ortc_op *op, ortc_error *error)
{
    ortc_op_entry *e = (ortc_op_entry *)(uintptr_t)op; /* all but that one are in the table */
    if (op == &ortc_op_group || atomic_load_explicit(&e->ready, memory_order_acquire)) return ORTC_OK;
    pthread_mutex_lock(&parsing);
    ortc_status s = ORTC_OK;
    if (!atomic_load_explicit(&e->ready, memory_order_relaxed)) {
        s = ortc_schema_parse(op, &e->schema, error);
        atomic_store_explicit(&e->ready, s == ORTC_OK, memory_order_release);
    }
    pthread_mutex_unlock(&parsing);
    return s;
}

const ortc_schema *ortc_op_schema(const ortc_op *op)
{
    static ortc_formal any = {.name = "values",
                              .constraint = -1,
                              .flags = ORTC_FORMAL_VARIADIC | ORTC_FORMAL_HETEROGENEOUS,
                              .mask = UINT64_MAX};
    static const ortc_schema group = {.n_in = 1, .n_out = 1, .in = &any, .out = &any};
    if (op == &ortc_op_group) return &group;
    return ortc_op_ready(op, NULL) == ORTC_OK ? &((const ortc_op_entry *)op)->schema.schema : NULL;
}

int32_t ortc_op_bind(const ortc_op *op, int64_t opset)
{
    if (opset >= op->since) return op->since;
    for (const char *s = op->older; *s;) {
        char *end;
        long v = strtol(s, &end, 10);
        if (end == s) break;
        if (v <= opset) return (int32_t)v;
        s = end;
    }
    return 0;
}
