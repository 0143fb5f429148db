/* kernels/training/op.c: one step of an optimiser: Adagrad, Adam, Momentum, as the standard's elementwise
 * operators.
 *
 * R is the learning rate and T counts steps. Then come the tensors X, their gradients G, and what is kept of
 * earlier steps (V: gradients, H: their squares); the results are the new X and what is to be kept. Rates
 * are computed in f64.
 */
#include <string.h>

#include "kernels/common/shape.h"

static double number(ortc_lift *l, const char *name, float otherwise)
{
    return (double)ortc_node_float(ortc_lift_node(l), name, otherwise);
}

/* Of `kinds` inputs for each tensor, `kinds` - 1 outputs: how many tensors there are. */
static ortc_status count(ortc_lift *l, int kinds, int *out)
{
    const int rest = (int)ortc_node_n_in(ortc_lift_node(l)) - 2;
    *out = rest / kinds;
    if (rest < kinds || rest % kinds || (int)ortc_node_n_out(ortc_lift_node(l)) > *out * (kinds - 1))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "%d tensors cannot be told apart by %d", rest, kinds);
    return ORTC_OK;
}

/* g%i: the gradient with that of the norm; x, g: ports */
static ortc_status gradient(ortc_lift *l, int i, int n, double norm)
{
    return ortc_lift_write(l,
                           "norm%d = Mul(inputs[%d], %.17g:inputs[%d])\n"
                           "g%d = Add(norm%d, inputs[%d])",
                           i, i, norm, i, i, i, n + i);
}

static ortc_status lift_adagrad(ortc_lift *l)
{
    const double norm = number(l, "norm_coefficient", 0), epsilon = number(l, "epsilon", 1e-6F);
    int n;
    ORTC_TRY(count(l, 3, &n));
    ORTC_TRY(ortc_lift_write(l,
                             "r = Cast(R) to=11\n"
                             "t = Cast(T) to=11\n"
                             "slow = Mul(t, %.17g:f64)\n"
                             "slower = Add(slow, 1:f64)\n"
                             "rate = Div(r, slower)",
                             number(l, "decay_factor", 0)));
    for (int i = 0; i < n; i++) {
        ORTC_TRY(gradient(l, i, n, norm));
        ORTC_TRY(ortc_lift_write(l,
                                 "square%d = Mul(g%d, g%d)\n"
                                 "outputs[%d] = Add(inputs[%d], square%d)\n"
                                 "root%d = Sqrt(outputs[%d])\n"
                                 "adaptive%d = Add(root%d, %.17g:inputs[%d])\n"
                                 "rate%d = Cast(rate) to=@inputs[%d]\n"
                                 "scaled%d = Mul(g%d, rate%d)\n"
                                 "step%d = Div(scaled%d, adaptive%d)\n"
                                 "outputs[%d] = Sub(inputs[%d], step%d)",
                                 i, i, i, n + i, 2 * n + i, i, i, n + i, i, i, epsilon, i, i, i, i, i, i, i,
                                 i, i, i, i, i));
    }
    return ORTC_OK;
}

static ortc_status lift_adam(ortc_lift *l)
{
    const double norm = number(l, "norm_coefficient", 0), post = number(l, "norm_coefficient_post", 0),
                 epsilon = number(l, "epsilon", 1e-6F), alpha = number(l, "alpha", 0.9F),
                 beta = number(l, "beta", 0.999F);
    int n;
    ORTC_TRY(count(l, 4, &n));
    ORTC_TRY(ortc_lift_write(l,
                             "r = Cast(R) to=11\n"
                             "t = Cast(T) to=11\n"
                             "beta_t = Pow(%.17g:f64, t)\n"
                             "alpha_t = Pow(%.17g:f64, t)\n"
                             "beta_rest = Sub(1:f64, beta_t)\n"
                             "alpha_rest = Sub(1:f64, alpha_t)\n"
                             "root = Sqrt(beta_rest)\n"
                             "raised = Mul(r, root)\n"
                             "adjusted = Div(raised, alpha_rest)\n"
                             "begun = Greater(T, 0)\n"
                             "rate = Where(begun, adjusted, r)",
                             beta, alpha));
    for (int i = 0; i < n; i++) {
        ORTC_TRY(gradient(l, i, n, norm));
        ORTC_TRY(ortc_lift_write(l,
                                 "old_v%d = Mul(inputs[%d], %.17g:inputs[%d])\n"
                                 "new_v%d = Mul(g%d, %.17g:inputs[%d])\n"
                                 "outputs[%d] = Add(old_v%d, new_v%d)\n"
                                 "old_h%d = Mul(inputs[%d], %.17g:inputs[%d])\n"
                                 "square%d = Mul(g%d, g%d)\n"
                                 "new_h%d = Mul(square%d, %.17g:inputs[%d])\n"
                                 "outputs[%d] = Add(old_h%d, new_h%d)",
                                 i, 2 * n + i, alpha, i, i, i, 1 - alpha, i, n + i, i, i, i, 3 * n + i, beta,
                                 i, i, i, i, i, i, 1 - beta, i, 2 * n + i, i, i));
        ORTC_TRY(ortc_lift_write(l,
                                 "root%d = Sqrt(outputs[%d])\n"
                                 "adaptive%d = Add(root%d, %.17g:inputs[%d])\n"
                                 "rate%d = Cast(rate) to=@inputs[%d]\n"
                                 "scaled%d = Mul(outputs[%d], rate%d)\n"
                                 "step%d = Div(scaled%d, adaptive%d)\n"
                                 "moved%d = Sub(inputs[%d], step%d)\n"
                                 "outputs[%d] = Mul(moved%d, %.17g:inputs[%d])",
                                 i, 2 * n + i, i, i, epsilon, i, i, i, i, n + i, i, i, i, i, i, i, i, i, i,
                                 1 - post, i));
    }
    return ORTC_OK;
}

static ortc_status lift_momentum(ortc_lift *l)
{
    const double norm = number(l, "norm_coefficient", 0), alpha = number(l, "alpha", 0),
                 beta = number(l, "beta", 0);
    const char *mode = ortc_node_string(ortc_lift_node(l), "mode", "");
    const bool nesterov = !strcmp(mode, "nesterov");
    int n;
    if (!nesterov && strcmp(mode, "standard") != 0)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "attribute mode is '%s', expected standard or nesterov",
                              mode);
    ORTC_TRY(count(l, 3, &n));
    ORTC_TRY(ortc_lift_write(l,
                             "begun = Greater(T, 0)\n"
                             "weight = Where(begun, %.17g:f64, 1:f64)",
                             beta));
    for (int i = 0; i < n; i++) {
        ORTC_TRY(gradient(l, i, n, norm));
        ORTC_TRY(ortc_lift_write(l,
                                 "rate%d = Cast(R) to=@inputs[%d]\n"
                                 "weight%d = Cast(weight) to=@inputs[%d]\n"
                                 "old%d = Mul(inputs[%d], %.17g:inputs[%d])\n"
                                 "new%d = Mul(g%d, weight%d)\n"
                                 "outputs[%d] = Add(old%d, new%d)",
                                 i, i, i, i, i, 2 * n + i, alpha, i, i, i, i, n + i, i, i));
        if (nesterov)
            ORTC_TRY(ortc_lift_write(l,
                                     "ahead%d = Mul(outputs[%d], %.17g:inputs[%d])\n"
                                     "way%d = Add(g%d, ahead%d)",
                                     i, n + i, alpha, i, i, i, i));
        else
            ORTC_TRY(ortc_lift_write(l, "way%d = Identity(outputs[%d])", i, n + i));
        ORTC_TRY(ortc_lift_write(l,
                                 "step%d = Mul(way%d, rate%d)\n"
                                 "outputs[%d] = Sub(inputs[%d], step%d)",
                                 i, i, i, i, i, i));
    }
    return ORTC_OK;
}

#define OPTIMISER(name, attributes, lift) \
    ORTC_COMPOSED("ai.onnx.preview.training", name, 1, "", "R:T1 T:T2 inputs:T3+~", "outputs:T3+~", \
                  attributes, "T1=f32,f64 T2=i64 T3=f32,f64", lift)
static const ortc_op ops[] = {
    OPTIMISER("Adagrad", "decay_factor:f=0 epsilon:f=1e-6 norm_coefficient:f=0", lift_adagrad),
    OPTIMISER("Adam",
              "alpha:f=0.9 beta:f=0.999 epsilon:f=1e-6 norm_coefficient:f=0 norm_coefficient_post:f=0",
              lift_adam),
    OPTIMISER("Momentum", "alpha:f! beta:f! mode:s! norm_coefficient:f!", lift_momentum),
};
ORTC_FAMILY(training, ops, NULL); /* no kernels */
