/* kernels/recurrent/activations.c: activation functions by name. Those with parameters take them from
 * activation_alpha and activation_beta in turn, and have the defaults of the operators of the same name.
 */
#include <math.h>
#include <strings.h>

#include "kernels/recurrent/recurrent.h"

static double affine(double x, double a, double b) { return a * x + b; }
static double relu(double x, double a, double b) { return x < 0 ? 0 : x; }
static double leaky_relu(double x, double a, double b) { return x < 0 ? a * x : x; }
static double thresholded_relu(double x, double a, double b) { return x > a ? x : 0; }
static double tanh_(double x, double a, double b) { return tanh(x); }
static double scaled_tanh(double x, double a, double b) { return a * tanh(b * x); }
static double sigmoid(double x, double a, double b) { return 1 / (1 + exp(-x)); }
static double hard_sigmoid(double x, double a, double b) { return fmin(fmax(a * x + b, 0), 1); }
static double elu(double x, double a, double b) { return x < 0 ? a * expm1(x) : x; }
static double softsign(double x, double a, double b) { return x / (1 + fabs(x)); }
static double softplus(double x, double a, double b) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

static const struct named { /* as ORTC_GATE_* counts them */
    const char *name;
    double (*fn)(double, double, double);
    int parameters;
    double alpha, beta;
} functions[] = {
    {"Affine", affine, 2, 1, 0},
    {"Relu", relu, 0, 0, 0},
    {"LeakyRelu", leaky_relu, 1, (double)0.01F, 0},
    {"ThresholdedRelu", thresholded_relu, 1, 1, 0},
    {"Tanh", tanh_, 0, 0, 0},
    {"ScaledTanh", scaled_tanh, 2, 1, 1},
    {"Sigmoid", sigmoid, 0, 0, 0},
    {"HardSigmoid", hard_sigmoid, 2, (double)0.2F, 0.5},
    {"Elu", elu, 1, 1, 0},
    {"Softsign", softsign, 0, 0, 0},
    {"Softplus", softplus, 0, 0, 0},
};

const char *ortc_gate_functions(const ortc_node *n, int32_t directions, int32_t count,
                                const char *const *standard, ortc_gate_function *out)
{
    const ortc_attr names = ortc_node_attr(n, "activations");
    size_t n_alpha, n_beta, alpha = 0, beta = 0;
    const float *alphas = ortc_node_floats(n, "activation_alpha", &n_alpha),
                *betas = ortc_node_floats(n, "activation_beta", &n_beta);
    const bool listed = names.kind == ORTC_ATTR_STRINGS && names.count > 0;
    if (listed && names.count < (size_t)(directions * count))
        return "activations has fewer functions than there are gates";
    for (int32_t i = 0; i < directions * count; i++) {
        const char *name = listed ? names.u.strings[i] : standard[i % count];
        size_t k = 0;
        while (strcasecmp(functions[k].name, name) != 0)
            if (++k == sizeof functions / sizeof *functions) return "activations names an unknown function";
        out[i] = (ortc_gate_function){functions[k].fn, functions[k].alpha, functions[k].beta, (int)k};
        if (functions[k].parameters > 0 && alpha < n_alpha) out[i].alpha = (double)alphas[alpha++];
        if (functions[k].parameters > 1 && beta < n_beta) out[i].beta = (double)betas[beta++];
    }
    return NULL;
}
