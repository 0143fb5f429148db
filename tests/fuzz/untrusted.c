/* tests/fuzz/untrusted.c: a model from a stranger, tried in ways that a seed chooses (targets.h). */
#include <stdio.h>
#include <unistd.h>

#include "graph/onnx/onnx.h"
#include "targets.h"

enum { MAX_ENDS = 16, MAX_ELEMENTS = 1 << 14, LIMIT_BYTES = 32 << 20 };
#define RUN_NS INT64_C(100000000)
/* Sanitizers take several times as long, a busy machine too. */
#define GRACE_NS INT64_C(5000000000)

typedef struct trial {
    ortc_model *model;
    uint64_t dice;
} trial;

static uint32_t roll(trial *t, uint32_t below)
{
    t->dice = t->dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->dice >> 33) % below;
}

static void broken(const char *what, const char *more)
{
    fprintf(stderr, "%s: %s\n", what, more);
    abort();
}

/* What every call owes: no INTERNAL, and a text with every other failure. */
static ortc_status owed(const char *what, ortc_status s, const ortc_error *e)
{
    if (s == ORTC_INTERNAL) broken(what, e->text);
    if (s != ORTC_OK && !e->text[0]) broken(what, "a failure without a text");
    return s;
}

static void in_time(const char *what, int64_t begun, int64_t allowed)
{
    int64_t ns = ortc_now_ns() - begun;
    char text[64];
    snprintf(text, sizeof text, "it took %.2f s", (double)ns / 1e9);
    if (ns > allowed + GRACE_NS) broken(what, text);
}

/* ---- Inputs -------------------------------------------------------------------------------------------- */

/* Small numbers, for they may be extents, axes or indices; now and then one that is none of these. */
static void fill(trial *t, ortc_value *v)
{
    uint8_t *bytes = ortc_value_data(v);
    const size_t size = (size_t)ortc_dtype_bits(ortc_value_dtype(v)) / 8;
    const uint32_t how = roll(t, 8);
    for (int64_t i = 0; i < ortc_value_count(v) && size; i++) {
        const uint32_t n = roll(t, 5);
        switch (ortc_value_dtype(v)) {
        case ORTC_F32: ((float *)(void *)bytes)[i] = how ? (float)n / 2 - 1 : 1e30f; break;
        case ORTC_F64: ((double *)(void *)bytes)[i] = (double)n / 2 - 1; break;
        case ORTC_F16: ((uint16_t *)(void *)bytes)[i] = (uint16_t)(n << 10); break;
        case ORTC_BF16: ((uint16_t *)(void *)bytes)[i] = (uint16_t)(n << 7); break;
        case ORTC_I64: ((int64_t *)(void *)bytes)[i] = how ? (int64_t)n - (how == 1) : INT64_MAX - n; break;
        case ORTC_I32:
            ((int32_t *)(void *)bytes)[i] = how ? (int32_t)n - (how == 1) : INT32_MIN + (int32_t)n;
            break;
        case ORTC_BOOL: bytes[i] = n & 1; break;
        default: memset(bytes + (size_t)i * size, (int)n, 1);
        }
    }
}

static ortc_value *make_input(trial *t, const ortc_io *io, const int64_t extents[4])
{
    int64_t dims[8], count = 1;
    ortc_value *v = NULL;
    if (!io->dtype || io->rank > 8) return NULL;
    const int32_t rank = io->rank < 0 ? (int32_t)roll(t, 4) : io->rank;
    for (int32_t k = 0; k < rank; k++) {
        const char *symbol = io->rank < 0 ? NULL : io->symbols[k];
        dims[k] = io->rank >= 0 && io->dims[k] >= 0 ? io->dims[k]
                                                    : extents[symbol ? symbol[0] & 3 : (int)roll(t, 4)];
        if (dims[k] > MAX_ELEMENTS || (count *= dims[k]) > MAX_ELEMENTS) return NULL;
    }
    if (io->dtype == ORTC_STRING) {
        static const char *const words[] = {"a", "", "b c", "1.5"};
        const char *strings[64];
        if (count > 64) return NULL;
        for (int64_t i = 0; i < count; i++) strings[i] = words[roll(t, 4)];
        if (ortc_value_create_strings(rank, dims, strings, NULL, &v, NULL) != ORTC_OK) return NULL;
    } else if (ortc_value_create(io->dtype, rank, dims, &v, NULL) == ORTC_OK) {
        memset(ortc_value_data(v), 0, ortc_value_bytes(v));
        fill(t, v);
    }
    return v;
}

/* ---- Runs ---------------------------------------------------------------------------------------------- */

typedef struct results {
    ortc_status status;
    size_t n;
    ortc_out out[MAX_ENDS];
} results;

static void release(results *r)
{
    for (size_t i = 0; i < r->n; i++) ortc_value_release(r->out[i].value);
}

static void run(trial *t, const char *providers, uint32_t flags, const ortc_in *in, size_t n_in,
                const char *const *names, size_t n_out, results *r)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *s = NULL;
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    int64_t begun = ortc_now_ns();
    o.providers = providers;
    o.flags = flags;
    o.max_bytes = LIMIT_BYTES;
    r->n = 0;
    r->status = owed("session", ortc_session_create(t->model, &o, &s, &e), &e);
    in_time("session", begun, 0);
    if (r->status != ORTC_OK) {
        if (s) broken("session", "a failure that leaves a session");
        return;
    }
    for (int again = 0; again < 2 && r->status == ORTC_OK; again++) {
        release(r);
        r->n = n_out;
        for (size_t i = 0; i < n_out; i++) r->out[i] = (ortc_out){names[i], NULL, 0, 0};
        a.in = in, a.n_in = n_in, a.out = r->out, a.n_out = n_out;
        begun = ortc_now_ns();
        a.deadline_ns = begun + RUN_NS;
        r->status = owed("run", ortc_run(s, &a, &e), &e);
        in_time("run", begun, RUN_NS);
        for (size_t i = 0; i < n_out; i++)
            if ((r->status == ORTC_OK) != (r->out[i].value != NULL)) broken("run", "status and results");
    }
    ortc_session_stats stats = ORTC_SESSION_STATS_INIT;
    ortc_session_statistics(s, &stats);
    if (stats.arena_bytes > LIMIT_BYTES) broken("run", "arenas over the limit");
    ortc_session_release(s);
}

/* Whether extents are counts of elements that satisfy something. */
static bool counts(const ortc_model *m)
{
    const ortc_model_info *info = ortc_model_describe(m);
    bool any = false;
    for (size_t i = 0; i < info->n_ops; i++)
        any |= strstr(info->op_names[i], "NonZero") || strstr(info->op_names[i], "Unique") ||
               strstr(info->op_names[i], "Compress") || strstr(info->op_names[i], "NonMaxSuppression");
    return any;
}

/* Both run: types and shapes are the same, and the elements where no provider may round; where one may, and
 * elements are counted, ranks alone. */
static void agree(const results *a, const results *b, bool whole, bool counted)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        const ortc_value *x = a->out[i].value, *y = b->out[i].value;
        const bool exact = whole || !counted;
        if (ortc_value_dtype(x) != ortc_value_dtype(y) || ortc_value_rank(x) != ortc_value_rank(y) ||
            (exact && ortc_value_count(x) != ortc_value_count(y)) ||
            (exact && ortc_value_rank(x) &&
             memcmp(ortc_value_dims(x), ortc_value_dims(y), (size_t)ortc_value_rank(x) * sizeof(int64_t))))
            broken("cpu and ref", "types or shapes differ");
        if (whole && ortc_value_host(x) &&
            memcmp(ortc_value_host(x), ortc_value_host(y), ortc_value_bytes(x)))
            broken("cpu and ref", "integers differ");
    }
}

/* Whether floats come in: then integers may follow from rounding. */
static bool has_floats(const ortc_model *m)
{
    const ortc_model_info *info = ortc_model_describe(m);
    const ortc_io *io;
    bool whole = true;
    for (size_t i = 0; (io = ortc_model_input(m, i)); i++)
        whole &= io->dtype == ORTC_I64 || io->dtype == ORTC_I32;
    for (size_t i = 0; (io = ortc_model_output(m, i)); i++)
        whole &= io->dtype == ORTC_I64 || io->dtype == ORTC_I32;
    for (size_t i = 0; i < info->n_ops; i++)
        whole &= !strstr(info->op_names[i], "Random") && !strstr(info->op_names[i], "Cast") &&
                 !strstr(info->op_names[i], "Range") && !strstr(info->op_names[i], "Resize") &&
                 !strstr(info->op_names[i], "Search") && !strstr(info->op_names[i], "Sampling");
    return !whole;
}

static ortc_status run_all(trial *t)
{
    ortc_in in[MAX_ENDS];
    const char *names[MAX_ENDS];
    size_t n_in = 0, n_out = 0;
    const ortc_io *io;
    bool small = true;
    int64_t extents[4];
    results ref, cpu;
    for (int i = 0; i < 4; i++) extents[i] = (int64_t[]){0, 1, 2, 2, 3, 4, 5, 17}[roll(t, 8)];
    for (size_t i = 0; (io = ortc_model_input(t->model, i)) && small; i++) {
        if ((io->flags & ORTC_IO_OPTIONAL) && roll(t, 2)) continue;
        ortc_value *v = i < MAX_ENDS ? make_input(t, io, extents) : NULL;
        small = v != NULL;
        if (v) in[n_in++] = (ortc_in){io->name, v};
    }
    const bool some = roll(t, 3) == 0;
    for (size_t i = 0; (io = ortc_model_output(t->model, i)) && n_out < MAX_ENDS; i++)
        if (!some || roll(t, 2)) names[n_out++] = io->name;
    ref.status = ORTC_LIMIT;
    if (small) {
        static const char *const others[] = {
            "cpu", "cpu", "cpu", "sim:memory=268435456",
            "sim:memory=268435456:layout=1,cpu"}; /* which fills what it gives */
        const char *providers = others[roll(t, 5)];
        run(t, "ref", 0, in, n_in, names, n_out, &ref);
        run(t, providers, roll(t, 2) ? ORTC_SESSION_NO_FUSION : 0, in, n_in, names, n_out, &cpu);
        if (ref.status == ORTC_OK && cpu.status == ORTC_OK)
            agree(&ref, &cpu, !has_floats(t->model), counts(t->model));
        else if ((ref.status == ORTC_OK) != (cpu.status == ORTC_OK)) {
            const ortc_status s = ref.status == ORTC_OK ? cpu.status : ref.status;
            if (s != ORTC_DEADLINE && s != ORTC_OUT_OF_MEMORY && s != ORTC_LIMIT && s != ORTC_NOT_FOUND)
                broken("cpu and ref",
                       ref.status == ORTC_OK ? "cpu fails where ref runs" : "ref fails where cpu runs");
        }
        release(&ref);
        release(&cpu);
    }
    for (size_t i = 0; i < n_in; i++) ortc_value_release(in[i].value);
    return ref.status;
}

/* ---- Saving -------------------------------------------------------------------------------------------- */

/* With the options that it was loaded with: passes find out more, and refuse what could not be run. */
static void save_and_load(trial *t, const ortc_model_options *loaded)
{
    char path[128];
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *again = NULL;
    ortc_save_options o = ORTC_SAVE_OPTIONS_INIT;
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/ortc-untrusted-%ld.onnx", folder, (long)getpid());
    o.flags = roll(t, 2) ? ORTC_SAVE_RAISED : 0;
    if (owed("save", ortc_model_save(t->model, path, &o, &e), &e) == ORTC_OK) {
        if (owed("load what was saved", ortc_model_load(path, loaded, &again, &e), &e) != ORTC_OK)
            broken("what was saved does not load", e.text);
        ortc_model_release(again);
    }
    unlink(path);
}

ortc_status fuzz_untrusted(const uint8_t *data, size_t bytes, uint32_t seed, char *text, size_t text_bytes)
{
    trial t = {NULL, seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model_options o = ORTC_MODEL_OPTIONS_INIT;
    int64_t begun = ortc_now_ns();
    o.max_bytes = 2 * (uint64_t)LIMIT_BYTES;
    if (roll(&t, 4) == 0) o.flags = ORTC_MODEL_NO_PASSES;
    ortc_status s = owed("load", ortc_model_load_memory(data, bytes, &o, &t.model, &e), &e);
    in_time("load", begun, INT64_C(2000000000));
    if ((s == ORTC_OK) != (t.model != NULL)) broken("load", "status and model");
    if (t.model) {
        if (roll(&t, 4) == 0) save_and_load(&t, &o);
        s = run_all(&t);
    }
    if (text_bytes) snprintf(text, text_bytes, "%s", s == ORTC_OK ? "" : e.text);
    ortc_model_release(t.model);
    return s;
}
