/* kernels/index/ref.c: what the family's kernels on ref share (index.h), and their table. */
#include "kernels/index/index.h"

#include <stdlib.h>

static const char *const updates[] = {"none", "add", "mul", "min", "max"};

ortc_status ortc_index_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *how = ortc_node_string(n, "reduction", "none");
    ortc_index_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (ortc_index_state){ortc_node_int(n, "axis", 0), ortc_node_int(n, "batch_dims", 0), ORTC_UPDATE_SET};
    while (strcmp(updates[s->update], how) != 0)
        if (++s->update > ORTC_UPDATE_MAX) {
            free(s);
            return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                                  "attribute reduction is '%s', expected none, add, mul, min or max", how);
        }
    *out = s;
    return ORTC_OK;
}

ortc_status ortc_index_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *how = ortc_node_string(n, "reduction", "none");
    const ortc_dtype t = ortc_node_in(n, 0).dtype;
    if (t == ORTC_STRING && strcmp(how, "none") != 0) return ortc_no(why, "strings have no %s", how);
    if ((t == ORTC_C64 || t == ORTC_C128) && (!strcmp(how, "min") || !strcmp(how, "max")))
        return ortc_no(why, "complex numbers have no %s", how);
    return ORTC_OK;
}

#define UPDATE(type, load, store) \
    { \
        const type a = load(y, t, i), b = load(u, t, k); \
        store(y, t, i, \
              update == ORTC_UPDATE_ADD   ? a + b \
              : update == ORTC_UPDATE_MUL ? a * b \
              : update == ORTC_UPDATE_MIN ? (a < b || a != a ? a : b) \
                                          : (a > b || a != a ? a : b)); \
    }

static void update_complex(int update, ortc_dtype part, void *y, int64_t i, const void *u, int64_t k)
{
    const double ar = ortc_load_f64(y, part, 2 * i), ai = ortc_load_f64(y, part, 2 * i + 1);
    const double br = ortc_load_f64(u, part, 2 * k), bi = ortc_load_f64(u, part, 2 * k + 1);
    ortc_store_f64(y, part, 2 * i, update == ORTC_UPDATE_ADD ? ar + br : ar * br - ai * bi);
    ortc_store_f64(y, part, 2 * i + 1, update == ORTC_UPDATE_ADD ? ai + bi : ar * bi + ai * br);
}

void ortc_index_update(int update, ortc_dtype t, void *y, int64_t i, const void *u, int64_t k, int64_t n)
{
    if (update == ORTC_UPDATE_SET) {
        ortc_move_elements(y, i, u, k, n, ortc_dtype_bits(t));
        return;
    }
    for (const int64_t end = i + n; i < end; i++, k++) switch (ortc_class_of(t)) {
        case ORTC_CLASS_FLOAT: UPDATE(double, ortc_load_f64, ortc_store_f64) break;
        case ORTC_CLASS_INT: { /* sums and products wrap: they are those of unsigned numbers */
            const int64_t a = ortc_load_i64(y, t, i), b = ortc_load_i64(u, t, k);
            const uint64_t v = update == ORTC_UPDATE_ADD ? (uint64_t)a + (uint64_t)b
                               : update == ORTC_UPDATE_MUL
                                   ? (uint64_t)a * (uint64_t)b
                                   : (uint64_t)((update == ORTC_UPDATE_MIN) == (a < b) ? a : b);
            ortc_store_u64(y, t, i, v);
            break;
        }
        case ORTC_CLASS_UINT: UPDATE(uint64_t, ortc_load_u64, ortc_store_u64) break;
        case ORTC_CLASS_NONE: update_complex(update, t == ORTC_C64 ? ORTC_F32 : ORTC_F64, y, i, u, k); break;
        }
}

typedef struct copy_job {
    const void *from;
    void *to;
    uint32_t bits;
} copy_job;

static void copy_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const copy_job *j = arg;
    ortc_move_elements(j->to, begin, j->from, begin, end - begin, j->bits);
}

ortc_status ortc_index_copy(ortc_call *c)
{
    copy_job j = {c->in[0].data, c->out[0].data, ortc_dtype_bits(c->in[0].dtype)};
    return j.from == j.to ? ORTC_OK
                          : ortc_parallel(c, ortc_view_count(&c->in[0]), ortc_grain(1), copy_chunk, &j);
}

#define PLAIN \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_C64) | \
     ORTC_TYPE(ORTC_C128))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
#define K(op, since, kernel, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), kernel)
ORTC_KERNELS(ref, index, K("Gather", 13, &ortc_ref_gather, PLAIN, INDEX),
             K("GatherElements", 13, &ortc_ref_gather_elements, PLAIN, INDEX),
             K("GatherND", 13, &ortc_ref_gather_nd, PLAIN),
             K("ScatterElements", 18, &ortc_ref_scatter_elements, PLAIN, INDEX),
             K("ScatterND", 18, &ortc_ref_scatter_nd, PLAIN));
