/* examples/operator.c: an operator of your own as a plugin, from the installed headers alone. C11 and C++17.
 *
 *   cc -shared -fPIC operator.c $(pkg-config --cflags ortc) -o relu6.so
 *   ortc run --plugin ./relu6.so model.onnx ...
 *
 * A program calls ortc_plugin_load before it loads the model. Models call it as Relu6 of the domain
 * test.domain. docs/add-an-op.md says what else there is: attributes, threads, tests.
 */
#include <ortc/op.h>

static ortc_status infer(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }

static ortc_status run(const void *state, const void *plan, ortc_call *call)
{
    (void)state, (void)plan;
    const float *x = (const float *)call->in[0].data;
    float *y = (float *)call->out[0].data;
    for (int64_t i = 0, n = ortc_view_count(&call->in[0]); i < n; i++)
        y[i] = x[i] < 0 ? 0 : x[i] > 6 ? 6 : x[i];
    return ORTC_OK;
}

static const ortc_kernel relu6 = {
    ORTC_SIZED(ortc_kernel), 0, "relu6", 0, 0, NULL, NULL, NULL, run, NULL, NULL, NULL, NULL};
static const ortc_op ops[] = {
    ORTC_OP("test.domain", "Relu6", 1, 1, "", "X:T", "Y:T", "", "T=f32", infer, NULL, 0)};
ORTC_KERNELS(cpu, relu6, ORTC_KERNEL_IN("test.domain", "Relu6", 1, 1, (ORTC_TYPE(ORTC_F32)), &relu6));
ORTC_FAMILY(relu6, ops, &ortc_kernels_cpu_relu6);

static ortc_status init(const ortc_host *host) { return ortc_host_add_family(host, &ortc_family_relu6); }
ORTC_PLUGIN("relu6", "1.0", init)
