/* kernels/contrib/op_weights.c: weights in blocks of 2, 4 or 8 bits: MatMulNBits and GatherBlockQuantized, by
 * DequantizeLinear over blocks.
 *
 * Packed bytes hold elements as tensors of such types do, the first in the low bits: a constant is renamed to
 * that type where it lies, anything else is taken apart by shifts.
 */
#include "kernels/contrib/contrib.h"

static ortc_dtype unsigned_of(int64_t bits) { return bits == 8 ? ORTC_U8 : bits == 4 ? ORTC_U4 : ORTC_U2; }

ortc_status ortc_contrib_unpack(ortc_lift *l, const char *to, const char *name, int64_t bits, int64_t rows,
                                int64_t columns, const char *like)
{
    const int64_t each = 8 / bits, width = (columns + each - 1) / each * each, dims[2] = {rows, columns};
    const ortc_dtype t = like ? ortc_lift_look(l, like).dtype : unsigned_of(bits);
    if (t == unsigned_of(bits) && width == columns && ortc_lift_look(l, name).flags & ORTC_PORT_CONST)
        return ortc_lift_recast(l, to, name, t, 2, dims);
    ORTC_TRY(ortc_lift_write(l,
                             "%s_bytes = Reshape(%s, [%lld,%lld,1])\n"
                             "%s_shifted = BitShift(%s_bytes, %s:u8) direction='RIGHT'\n"
                             "%s_low = BitwiseAnd(%s_shifted, %d:u8)\n"
                             "%s_wide = Reshape(%s_low, [%lld,%lld])\n"
                             "%s_all = Slice(%s_wide, [0], [%lld], [1])",
                             to, name, (long long)rows, (long long)(width / each), to, to,
                             bits == 8   ? "[0]"
                             : bits == 4 ? "[0,4]"
                                         : "[0,2,4,6]",
                             to, to, (1 << bits) - 1, to, to, (long long)rows, (long long)width, to, to,
                             (long long)columns));
    return ortc_lift_write(l, "%s = Cast(%s_all) to=%d", to, to, like ? (int)t : ORTC_U8);
}

ortc_status ortc_contrib_middle(ortc_lift *l, const char *to, const char *like, int64_t bits, int64_t rows,
                                int64_t columns)
{
    const ortc_dtype t = ortc_lift_look(l, like).dtype;
    const int64_t dims[2] = {rows, columns};
    const uint32_t width = ortc_dtype_bits(t);
    int64_t count;
    if (__builtin_mul_overflow(rows, columns, &count) || count > INT32_MAX)
        return ortc_lift_fail(l, ORTC_LIMIT, "there are too many blocks");
    uint8_t *data = malloc(ortc_bytes_of(width, count) + 1);
    if (!data) return ortc_lift_fail(l, ORTC_OUT_OF_MEMORY, "no memory for zero points");
    const int each = width < 8 ? 8 / (int)width : 1;
    uint8_t byte = 0;
    for (int i = 0; i < each; i++) byte |= (uint8_t)(1 << (bits - 1) << (i * (int)width));
    memset(data, byte, ortc_bytes_of(width, count) + 1);
    const ortc_status status = ortc_lift_name(l, to, t, 2, dims, data);
    free(data);
    return status;
}

enum { MOST_DIMS = 64 }; /* no model has more */

/* Elements of a port, where they are known, are as many as they must be. */
static ortc_status check_count(ortc_infer *c, uint32_t port, const char *name, int64_t expected)
{
    const ortc_port p = ortc_infer_in(c, port);
    int64_t count = 1;
    if (!p.type || p.rank < 0) return ORTC_OK;
    for (int32_t d = 0; d < p.rank; d++) {
        if (p.dims[d] < 0) return ORTC_OK;
        if (__builtin_mul_overflow(count, p.dims[d], &count)) count = -1;
    }
    return count == expected ? ORTC_OK
                             : ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%s has %lld elements, expected %lld",
                                               name, (long long)count, (long long)expected);
}

/* Y [.., N]. What the attributes must be, the lifting has checked. */
ortc_status ortc_contrib_infer_nbits(ortc_infer *c)
{
    const ortc_node *node = ortc_infer_node(c);
    const ortc_port a = ortc_infer_in(c, 0), zeros = ortc_infer_in(c, 3);
    const int64_t k = ortc_node_int(node, "K", 0), n = ortc_node_int(node, "N", 0),
                  bits = ortc_node_int(node, "bits", 4), block = ortc_node_int(node, "block_size", 0),
                  blocks = (k + block - 1) / block;
    ortc_dim dims[MOST_DIMS], same;
    ORTC_TRY(check_count(c, 1, "B", n * (blocks * (block / 8 * bits))));
    ORTC_TRY(check_count(c, 2, "scales", n * blocks));
    ORTC_TRY(
        check_count(c, 3, "zero_points", n * (zeros.dtype == ORTC_U8 ? (blocks * bits + 7) / 8 : blocks)));
    ORTC_TRY(check_count(c, 5, "bias", n));
    if (a.rank < 0) return ortc_infer_out(c, 0, a.dtype, -1, NULL);
    if (a.rank == 0 || a.rank > MOST_DIMS)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "A has %d dims", a.rank);
    ORTC_TRY(ortc_infer_same(c, "last dim of A and K", a.dims[a.rank - 1], k, &same));
    for (int32_t d = 0; d < a.rank - 1; d++) dims[d] = a.dims[d];
    dims[a.rank - 1] = n;
    return ortc_infer_out(c, 0, a.dtype, a.rank, dims);
}

/* A [.., K], B [N, K / block, bytes of a block]: A times the transpose of [N, K]. */
ortc_status ortc_contrib_matmul_nbits(ortc_lift *l)
{
    const int64_t k = ortc_lift_int(l, "K", 0), n = ortc_lift_int(l, "N", 0),
                  bits = ortc_lift_int(l, "bits", 4), block = ortc_lift_int(l, "block_size", 0);
    const ortc_dtype zero_type = ortc_lift_look(l, "zero_points").dtype;
    if ((bits != 2 && bits != 4 && bits != 8) || block < 16 || block > INT32_MAX || block & (block - 1) ||
        k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || ortc_lift_int(l, "weight_prepacked", 0))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "%lld x %lld elements of %lld bits in blocks of %lld",
                              (long long)n, (long long)k, (long long)bits, (long long)block);
    const int64_t blocks = (k + block - 1) / block, width = blocks * block;
    const bool real = zero_type && zero_type != ORTC_U8, bias = ortc_given(l, "bias"),
               groups =
                   ortc_given(l, "g_idx"); /* columns in an order of their own: which block each belongs to */
    ORTC_TRY(ortc_contrib_unpack(l, "packed", "B", bits, n, width, NULL));
    ORTC_TRY(ortc_lift_write(l, "steps = Reshape(scales, [%lld,%lld])", (long long)n, (long long)blocks));
    if (zero_type == ORTC_U8)
        ORTC_TRY(ortc_contrib_unpack(l, "zeros", "zero_points", bits, n, blocks, "packed"));
    else if (!real)
        ORTC_TRY(ortc_contrib_middle(l, "zeros", "packed", bits, n, blocks));
    if (groups) {
        const char *given = real ? "zero_points" : "zeros";
        return ortc_lift_write(l,
                               "group = Slice(g_idx, [0], [%lld])\n"
                               "step_of = Gather(steps, group) axis=1\n"
                               "%s_wide = Cast(%s) to=@scales\n"
                               "offsets = Reshape(%s_wide, [%lld,%lld])\n"
                               "offset_of = Gather(offsets, group) axis=1\n"
                               "all_numbers = Cast(packed) to=@scales\n"
                               "numbers = Slice(all_numbers, [0], [%lld], [1])\n"
                               "moved = Sub(numbers, offset_of)\n"
                               "weights = Mul(moved, step_of)\n"
                               "turned = Transpose(weights) perm=[1,0]\n"
                               "%s = MatMul(A, turned)\n%s",
                               (long long)k, given, given, given, (long long)n, (long long)blocks,
                               (long long)k, bias ? "product" : "Y", bias ? "Y = Add(product, bias)" : "");
    }
    ORTC_TRY(ortc_lift_write(l, "all = DequantizeLinear(packed, steps, %s) axis=1 block_size=%lld",
                             real ? "_" : "zeros", (long long)block));
    if (real) /* zero points that are no whole numbers */
        ORTC_TRY(ortc_lift_write(l,
                                 "offsets = Reshape(zero_points, [%lld,%lld])\n"
                                 "typed = Cast(offsets) to=@scales\n"
                                 "lift = Mul(typed, steps)\n"
                                 "tall = Unsqueeze(lift, [2])\n"
                                 "apart = Reshape(all, [%lld,%lld,%lld])\n"
                                 "moved = Sub(apart, tall)\n"
                                 "whole = Reshape(moved, [%lld,%lld])",
                                 (long long)n, (long long)blocks, (long long)n, (long long)blocks,
                                 (long long)block, (long long)n, (long long)width));
    if (width > k)
        ORTC_TRY(ortc_lift_write(l, "weights = Slice(%s, [0], [%lld], [1])", real ? "whole" : "all",
                                 (long long)k));
    ORTC_TRY(ortc_lift_write(l,
                             "turned = Transpose(%s) perm=[1,0]\n"
                             "%s = MatMul(A, turned)",
                             width > k ? "weights"
                             : real    ? "whole"
                                       : "all",
                             bias ? "product" : "Y"));
    return bias ? ortc_lift_write(l, "Y = Add(product, bias)") : ORTC_OK;
}

/* Rows of bytes of a tensor of fewer bits, [rows, bytes]; false: a row is no whole number of them, or the
 * tensor is no constant that could be seen so. */
static bool rows_of_bytes(ortc_lift *l, const char *to, const char *name, int64_t rows, int64_t columns,
                          int64_t bits, ortc_status *status)
{
    const ortc_port p = ortc_lift_look(l, name);
    const int64_t dims[2] = {rows, columns * bits / 8};
    if (columns * bits % 8) return false;
    if (ortc_dtype_bits(p.dtype) == 8) {
        *status = ortc_lift_write(l, "%s = Identity(%s)", to, name);
        return true;
    }
    if (!(p.flags & ORTC_PORT_CONST)) return false;
    *status = ortc_lift_recast(l, to, name, ORTC_U8, 2, dims);
    return true;
}

/* What a byte holds, [256, elements of it]; those with a sign are raised. */
static ortc_status name_elements(ortc_lift *l, int64_t bits, bool with_sign)
{
    const int64_t each = 8 / bits, dims[2] = {256, each};
    uint8_t table[256 * 4];
    for (int i = 0; i < 256 * (int)each; i++)
        table[i] = (uint8_t)(i / each >> (i % each * bits) & ((1 << bits) - 1)) ^
                   (uint8_t)(with_sign ? 1 << (bits - 1) : 0);
    return ortc_lift_name(l, "elements", ORTC_U8, 2, dims, table);
}

/* The rows that indices name, a byte for each element, in blocks of `block`: [blocks, block]. */
static ortc_status pick(ortc_lift *l, const char *to, const char *bytes, int64_t block, int64_t bits)
{
    ORTC_TRY(ortc_lift_write(l, "%s_rows = Gather(%s, indices)", to, bytes));
    if (bits < 8)
        ORTC_TRY(ortc_lift_write(l,
                                 "%s_at = Cast(%s_rows) to=%d\n"
                                 "%s_parts = Gather(elements, %s_at)",
                                 to, to, ORTC_I32, to, to));
    return ortc_lift_write(l,
                           "%s_bytes = Reshape(%s_%s, [-1,%lld])\n"
                           "%s = Cast(%s_bytes) to=@scales",
                           to, to, bits < 8 ? "parts" : "rows", (long long)block, to, to);
}

/* GatherBlockQuantized of the rows of a matrix: only those are dequantised. *done false: not of this one. */
static ortc_status gather_rows(ortc_lift *l, int64_t bits, int64_t block, bool *done)
{
    const ortc_port data = ortc_lift_look(l, "data"), scales = ortc_lift_look(l, "scales");
    const bool zeros = ortc_given(l, "zero_points"), packed = data.dtype == ORTC_U8,
               with_sign = data.dtype == ORTC_I4 || data.dtype == ORTC_I2;
    const int64_t columns = data.dims[1] * (packed ? 8 / bits : 1), blocks = scales.dims[1];
    ortc_status status = ORTC_OK;
    if (data.dims[0] < 0 || columns < 1 || blocks < 1) return ORTC_OK;
    bits = packed ? bits : ortc_dtype_bits(data.dtype);
    if (columns != blocks * block || (zeros && blocks * bits % 8)) return ORTC_OK;
    if (!rows_of_bytes(l, "some", "data", data.dims[0], columns, bits, &status)) return ORTC_OK;
    ORTC_TRY(status);
    if (zeros && !rows_of_bytes(l, "some_zeros", "zero_points", data.dims[0], blocks, bits, &status))
        return ORTC_OK;
    ORTC_TRY(status);
    *done = true;
    if (bits < 8) ORTC_TRY(name_elements(l, bits, with_sign));
    ORTC_TRY(pick(l, "numbers", "some", block, bits));
    if (zeros)
        ORTC_TRY(pick(l, "zeros", "some_zeros", 1, bits));
    else
        ORTC_TRY(
            ortc_lift_write(l, "zeros = Cast(%d:u8) to=@scales", packed || with_sign ? 1 << (bits - 1) : 0));
    return ortc_lift_write(l,
                           "step_rows = Gather(scales, indices)\n"
                           "steps = Reshape(step_rows, [-1,1])\n"
                           "moved = Sub(numbers, zeros)\n"
                           "real = Mul(moved, steps)\n"
                           "lead = Shape(indices)\n"
                           "shape = Concat(lead, [%lld]) axis=0\n"
                           "output = Reshape(real, shape)",
                           (long long)columns);
}

/* Rows of an embedding whose elements are quantised in blocks. */
ortc_status ortc_contrib_gather_block_quantized(ortc_lift *l)
{
    const ortc_port data = ortc_lift_look(l, "data"), scales = ortc_lift_look(l, "scales");
    const int64_t bits = ortc_lift_int(l, "bits", 4), block = ortc_lift_int(l, "block_size", 128);
    int32_t axis = 0;
    if (bits != 2 && bits != 4 && bits != 8)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "attribute bits is %lld", (long long)bits);
    if (data.rank < 0 || scales.rank != data.rank)
        return ortc_lift_fail(l, data.rank < 0 || scales.rank < 0 ? ORTC_UNSUPPORTED : ORTC_SHAPE_MISMATCH,
                              "data and scales must be known to have the same rank");
    if (!ortc_axis_of(ortc_lift_int(l, "quantize_axis", 1), data.rank, &axis))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "quantize_axis is outside of data's rank");
    if (axis == 1 && data.rank == 2 && ortc_lift_int(l, "gather_axis", 0) == 0) {
        bool done = false;
        ORTC_TRY(gather_rows(l, bits, block, &done));
        if (done) return ORTC_OK;
    }
    if (data.dtype == ORTC_U8) { /* elements of `bits` bits in bytes; their rows are flat here */
        int64_t rows = 1, blocks;
        if (axis != data.rank - 1)
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "packed data must be quantised along its last axis");
        for (int32_t d = 0; d < data.rank; d++)
            if (data.dims[d] < 0 || scales.dims[d] < 0)
                return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the shapes of data and scales must be known");
        for (int32_t d = 0; d < data.rank - 1; d++)
            if (__builtin_mul_overflow(rows, data.dims[d], &rows))
                return ortc_lift_fail(l, ORTC_LIMIT, "data has too many elements");
        blocks = scales.dims[axis];
        if (data.dims[axis] > INT32_MAX || blocks > INT32_MAX)
            return ortc_lift_fail(l, ORTC_LIMIT, "data has too many elements");
        const int64_t columns = data.dims[axis] * (8 / bits);
        ORTC_TRY(ortc_contrib_unpack(l, "flat", "data", bits, rows, columns, NULL));
        if (ortc_given(l, "zero_points"))
            ORTC_TRY(ortc_contrib_unpack(l, "zeros", "zero_points", bits, rows, blocks, "flat"));
        else
            ORTC_TRY(ortc_contrib_middle(l, "zeros", "flat", bits, rows, blocks));
        ORTC_TRY(ortc_lift_write(l,
                                 "steps = Reshape(scales, [%lld,%lld])\n"
                                 "lines = DequantizeLinear(flat, steps, zeros) axis=1 block_size=%lld\n"
                                 "lead = Shape(data) start=0 end=-1\n"
                                 "shape = Concat(lead, [%lld]) axis=0\n"
                                 "real = Reshape(lines, shape)\n"
                                 "output = Gather(real, indices) axis=%lld",
                                 (long long)rows, (long long)blocks, (long long)block, (long long)columns,
                                 (long long)ortc_lift_int(l, "gather_axis", 0)));
        return ORTC_OK;
    }
    return ortc_lift_write(l,
                           "real = DequantizeLinear(data, scales, zero_points) axis=%d block_size=%lld\n"
                           "output = Gather(real, indices) axis=%lld",
                           axis, (long long)block, (long long)ortc_lift_int(l, "gather_axis", 0));
}

/* B: N * K codes of 4 bits, the first of a byte in its high bits, in blocks of one scale; a code stands for
 * one of 16 numbers. A times the transpose of [N, K], or [N, K] itself. */
ortc_status ortc_contrib_matmul_bnb4(ortc_lift *l)
{
    static const float tables[2][16] = {/* FP4: a sign and three bits */
                                        {0, 0.00520833333F, 0.66666667F, 1, 0.33333333F, 0.5F, 0.16666667F,
                                         0.25F, 0, -0.00520833333F, -0.66666667F, -1, -0.33333333F, -0.5F,
                                         -0.16666667F, -0.25F},
                                        /* NF4: quantiles of the normal distribution */
                                        {-1, -0.6961928F, -0.52507305F, -0.3949175F, -0.28444138F,
                                         -0.18477343F, -0.091050036F, 0, 0.0795803F, 0.1609302F, 0.2461123F,
                                         0.33791524F, 0.44070983F, 0.562617F, 0.72295684F, 1}};
    const int64_t k = ortc_lift_int(l, "K", 0), n = ortc_lift_int(l, "N", 0),
                  kind = ortc_lift_int(l, "quant_type", 0), block = ortc_lift_int(l, "block_size", 0),
                  sixteen = 16;
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || kind < 0 || kind > 1 || block < 16 ||
        block > INT32_MAX)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "%lld x %lld elements in blocks of %lld", (long long)n,
                              (long long)k, (long long)block);
    const long long count = n * k, blocks = (count + block - 1) / block;
    ORTC_TRY(ortc_lift_name(l, "table", ORTC_F32, 1, &sixteen, tables[kind]));
    ORTC_TRY(ortc_lift_write(l,
                             "bytes = Reshape(B, [-1,1])\n"
                             "shifted = BitShift(bytes, [4,0]:u8) direction='RIGHT'\n"
                             "low = BitwiseAnd(shifted, 15:u8)\n"
                             "flat = Reshape(low, [-1])\n"
                             "codes = Slice(flat, [0], [%lld])\n"
                             "places = Cast(codes) to=6\n"
                             "unscaled = Gather(table, places)\n"
                             "padded = Pad(unscaled, [0,%lld])\n"
                             "lines = Reshape(padded, [%lld,%lld])\n"
                             "wide = Cast(absmax) to=1\n"
                             "column = Reshape(wide, [%lld,1])\n"
                             "scaled = Mul(lines, column)\n"
                             "all = Reshape(scaled, [-1])\n"
                             "real = Slice(all, [0], [%lld])\n"
                             "shaped = Reshape(real, [%lld,%lld])\n"
                             "weights = Cast(shaped) to=@A",
                             count, blocks * block - count, blocks, (long long)block, blocks, count,
                             (long long)n, (long long)k));
    return ortc_lift_write(l, ortc_lift_int(l, "transB", 1) ? "turned = Transpose(weights) perm=[1,0]\n"
                                                              "Y = MatMul(A, turned)"
                                                            : "Y = MatMul(A, weights)");
}

/* B: for each column of [K, N] its blocks of 32, one behind the other: a scale in f32, a zero point in a byte
 * (but 8 where blk_quant_type is 0), and 16 bytes, whose low bits are elements 0 to 15, the high ones 16 to
 * 31. Laid out here as DequantizeLinear takes it. */
static ortc_status name_blocks(ortc_lift *l, const uint8_t *from, bool points, int64_t n, int64_t blocks)
{
    enum { BLOCK = 32, HALF = BLOCK / 2 };
    const int64_t count = n * blocks, width[2] = {n, blocks * BLOCK}, each[2] = {n, blocks};
    uint8_t *packed = malloc((size_t)count * HALF), *zeros = calloc((size_t)count / 2 + 1, 1);
    float *steps = malloc((size_t)count * sizeof *steps);
    ortc_status s = packed && zeros && steps ? ORTC_OK : ortc_lift_fail(l, ORTC_OUT_OF_MEMORY, "no memory");
    for (int64_t i = 0; i < count && s == ORTC_OK; i++) {
        memcpy(&steps[i], from, sizeof *steps);
        from += sizeof *steps;
        const uint8_t zero = points ? *from++ : 8;
        if (zero > 15) s = ortc_lift_fail(l, ORTC_UNSUPPORTED, "B has a zero point of %d", zero);
        zeros[i / 2] |= (uint8_t)((zero & 15) << (i % 2 * 4));
        for (int k = 0; k < HALF; k += 2) {
            packed[i * HALF + k / 2] = (uint8_t)((from[k] & 15) | from[k + 1] << 4);
            packed[i * HALF + HALF / 2 + k / 2] = (uint8_t)(from[k] >> 4 | (from[k + 1] & 0xf0));
        }
        from += HALF;
    }
    if (s == ORTC_OK) s = ortc_lift_name(l, "packed", ORTC_U4, 2, width, packed);
    if (s == ORTC_OK) s = ortc_lift_name(l, "zeros", ORTC_U4, 2, each, zeros);
    if (s == ORTC_OK) s = ortc_lift_name(l, "steps", ORTC_F32, 2, each, steps);
    free(packed);
    free(zeros);
    free(steps);
    return s;
}

ortc_status ortc_contrib_matmul_fpq4(ortc_lift *l)
{
    const ortc_port b = ortc_lift_look(l, "B"), shape = ortc_lift_look(l, "B_shape");
    const bool points = ortc_lift_int(l, "blk_quant_type", 1) != 0;
    int64_t kn[2];
    if (!(b.flags & ORTC_PORT_CONST) || !(shape.flags & ORTC_PORT_CONST))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "B and B_shape must be constants");
    if (b.rank != 1 || shape.rank != 1 || shape.dims[0] != 2)
        return ortc_lift_fail(l, ORTC_SHAPE_MISMATCH, "B must be a vector of bytes, B_shape of two numbers");
    memcpy(kn, shape.data, sizeof kn);
    const int64_t k = kn[0], n = kn[1];
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX)
        return ortc_lift_fail(l, ORTC_INVALID_ARGUMENT, "B_shape is %lld, %lld", (long long)k, (long long)n);
    const int64_t blocks = (k + 31) / 32, bytes = n * blocks * (points ? 21 : 20);
    if (b.dims[0] != bytes)
        return ortc_lift_fail(l, ORTC_SHAPE_MISMATCH, "B has %lld bytes, expected %lld", (long long)b.dims[0],
                              (long long)bytes);
    ORTC_TRY(name_blocks(l, b.data, points, n, blocks));
    ORTC_TRY(ortc_lift_write(l, "all = DequantizeLinear(packed, steps, zeros) axis=1 block_size=32"));
    if (blocks * 32 > k) ORTC_TRY(ortc_lift_write(l, "weights = Slice(all, [0], [%lld], [1])", (long long)k));
    return ortc_lift_write(l,
                           "turned = Transpose(%s) perm=[1,0]\n"
                           "Y = MatMul(A, turned)",
                           blocks * 32 > k ? "weights" : "all");
}
