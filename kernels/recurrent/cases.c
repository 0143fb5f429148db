/* kernels/recurrent/cases.c: cases for RNN, GRU, LSTM: directions, layouts, lengths, initial states,
 * activations. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define NEED "cpu:f32 cpu:f16 cpu:bf16"
/* clang-format off */
#define ALL(op, rows, twice, more) \
    {op, "T[5,2,3] T[1," rows ",3] T[1," rows ",4]", "hidden_size=4" more, F, .needs = NEED, .outputs = 2}, \
        {op, "f32[5,2,3] f32[1," rows ",3] f32[1," rows ",4] f32[1," twice "]", \
             "hidden_size=4 direction='reverse'" more, .outputs = 2}, \
        {op, "f32[5,2,3] f32[2," rows ",3] f32[2," rows ",4] f32[2," twice "] i32[2]={3,5} f32[2,2,4]", \
         "hidden_size=4 direction='bidirectional'" more, .outputs = 2}, \
        {op, "f32[2,5,3] f32[1," rows ",3] f32[1," rows ",4] - i32[2]={0,4} f32[2,1,4]", "layout=1" more, \
             .outputs = 2}, \
        {op, "f32[5,2,3] f32[1," rows ",3] f32[1," rows ",4]", "hidden_size=4 clip=0.5" more, .outputs = 2}, \
        {op, "f32[0,2,3] f32[1," rows ",3] f32[1," rows ",4] - - f32[1,2,4]", "hidden_size=4" more, \
             .outputs = 2}, \
        {op "@7", "f32[3,2,3] f32[1," rows ",3] f32[1," rows ",4]", "hidden_size=4" more, .outputs = 2}, \
        {op "@1", "f32[3,2,3] f32[1," rows ",3] f32[1," rows ",4]", "hidden_size=4 output_sequence=1", \
             .outputs = 2}, \
        {op, "f32[5,2,3] f32[1," rows ",3] f32[1," rows ",4]", "hidden_size=5", \
             .fails = ORTC_SHAPE_MISMATCH}, \
        {op, "f32[5,2,3] f32[1," rows ",3] f32[1," rows ",4] - i32[2]={6,1}", "", \
             .fails = ORTC_INVALID_ARGUMENT}, \
        {op, "f32[5,2,3] f32[1," rows ",3] f32[1," rows ",4]", "direction='sideways'", \
             .fails = ORTC_INVALID_MODEL}, \
        {op, "f32[5,2,3] f32[1," rows ",3] f32[1," rows ",4]", "activations=['Sine']", \
             .fails = ORTC_INVALID_MODEL}
/* clang-format on */

const ortc_case ortc_cases_recurrent[] = {
    ALL("RNN", "4", "8", ""),
    {"RNN", "f32[4,2,3] f32[2,4,3] f32[2,4,4]",
     "hidden_size=4 direction='bidirectional' activations=['LeakyRelu','ScaledTanh'] "
     "activation_alpha=[0.1,0.5] activation_beta=[2.0]",
     .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['Affine'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['Relu'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['LeakyRelu'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['ThresholdedRelu'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['Tanh'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['ScaledTanh'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['Sigmoid'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['HardSigmoid'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['Elu'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['Softsign'] clip=2.0", .outputs = 2},
    {"RNN", "f32[4,2,3] f32[1,20,3] f32[1,20,20]", "activations=['Softplus'] clip=2.0", .outputs = 2},
    ALL("GRU", "12", "24", ""),
    ALL("GRU", "12", "24", " linear_before_reset=1"),
    {"GRU", "f32[4,2,3] f32[1,12,3] f32[1,12,4]",
     "activations=['HardSigmoid','Softsign'] activation_alpha=[0.3] activation_beta=[0.4]", .outputs = 2},
    ALL("LSTM", "16", "32", ""),
    {"LSTM", "T[4,2,3] T[1,16,3] T[1,16,4] T[1,32] i32[2]={4,2} T[1,2,4] T[1,2,4] T[1,12]", "hidden_size=4",
     F, .outputs = 3},
    {"LSTM", "f32[4,2,3] f32[1,16,3] f32[1,16,4]", "input_forget=1 activations=['sigmoid','relu','softplus']",
     .outputs = 3},
    /* constants, of which the cpu's kernels make packed forms; many steps and rows, one hidden unit, none. R
     * is small where steps are many: else what was rounded grows from step to step, on ref as well */
    {"LSTM", "T[70,3,5] T[2,68,5]! T[2,68,17]=-0.1..0.1! T[2,136]! i32[3]={70,1,33}",
     "direction='bidirectional'", F, .outputs = 3},
    {"LSTM", "T[3,300,5] T[2,68,5]! T[2,68,17]=-0.1..0.1! T[2,136] - T[3,2,17] T[3,2,17] T[2,51]!",
     "direction='bidirectional' layout=1 clip=1.5", F, .outputs = 3},
    {"GRU", "T[70,3,5] T[2,51,5]! T[2,51,17]=-0.1..0.1! T[2,102]!", "direction='bidirectional'", F,
     .outputs = 2},
    {"GRU", "T[70,3,5] T[1,51,5] T[1,51,17]=-0.1..0.1! T[1,102] i32[3]={7,0,70}",
     "direction='reverse' linear_before_reset=1", F, .outputs = 2},
    {"GRU", "f32[9,2,3] f32[1,3,3]! f32[1,3,1]! f32[1,6]", "", .outputs = 2},
    {"RNN", "T[9,2,1] T[1,1,1]! T[1,1,1]! T[1,2]", "", F, .outputs = 2},
    {"LSTM", "f32[20,2,40] f32[2,1040,40]! f32[2,1040,260]=-0.1..0.1! f32[2,2080]!",
     "direction='bidirectional'", .outputs = 3},
    {"LSTM", "f32[2,40,40] f32[1,1040,40]! f32[1,1040,260]=-0.1..0.1! f32[1,2080]!", "", .outputs = 3},
    {"GRU", "f32[2,40,40] f32[1,780,40]! f32[1,780,260]=-0.1..0.1!", "", .outputs = 2},
    {"LSTM", "f32[4,0,3] f32[1,16,3]! f32[1,16,4]!", "", .outputs = 3},
    {"LSTM", "f32[4,2,0] f32[1,16,0] f32[1,16,4]!", "", .outputs = 3},
    {"LSTM", "f32[4,2,3] f32[1,16,3] f32[1,16,4] - i32[]={4}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"LSTM", "f32[4,2,3] f32[1,16,3] f32[1,16,4] - - f32[1,1,4]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"LSTM", "f32[4,2,3] f32[1,16,3] f32[1,16,4] - - - - f32[1,8]", "", .fails = ORTC_SHAPE_MISMATCH},
    {0},
};
