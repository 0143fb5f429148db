/* kernels/image/op.c: ImageDecoder: its schema. Its kernel and the codecs are a module of their own
 * (codec.h). */
#include "kernels/common/shape.h"

static ortc_status infer_decoder(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const bool grey = !strcmp(ortc_node_string(ortc_infer_node(c), "pixel_format", "RGB"), "Grayscale");
    const ortc_dim dims[3] = {ORTC_DIM_UNKNOWN, ORTC_DIM_UNKNOWN, grey ? 1 : 3};
    if (x.rank >= 0 && x.rank != 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the encoded stream has rank %d, expected 1", x.rank);
    return ortc_infer_out(c, 0, ORTC_U8, 3, dims);
}

static const ortc_op ops[] = {
    ORTC_OP("", "ImageDecoder", 20, 20, "", "encoded_stream:T1", "image:T2", "pixel_format:s=RGB",
            "T1=u8 T2=u8", infer_decoder, NULL, ORTC_OP_MODULE),
};
ORTC_FAMILY(image, ops, NULL);
