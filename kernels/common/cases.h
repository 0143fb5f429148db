/* kernels/common/cases.h: the table of cases that every provider must pass for a family's operators.
 *
 * A family's cases.c defines `ortc_cases_<family>`; tests/providers makes a model of one node of each line,
 * runs it on every provider configuration and compares with ref. The table ends with a line without an
 * operator. A family without it does not link into that test.
 *
 *   op      "Conv"; "Softmax@11" in the form of opset 11, where the newest is not meant; "my.domain:Op@1"
 *   in      one word per input:   f32[2,3,4]            at random, -2 .. 2; integers -8 .. 8,
 *                                                       unsigned 0 .. 15
 *                                 f32[2,3]~             with NaN, infinities and -0 among them
 *                                 f32[3]=0.5..9         at random from a range
 *                                 i64[2]={1,-1}         these elements (nan, inf, -inf too); one fills the
 *                                                       tensor,
 *                                 i64[6]={1,-1,..}      and so do more, over and over
 *                                 i64[2]={1,-1}!        a constant of the model instead of an input of the
 *                                                       run
 *                                 string[2]={a,bc}
 *                                 seq(f32[2];f32[3])    a sequence; opt(f32[2]) an optional; without
 *                                                       elements, the type behind a
 *                                                       colon: seq(:f32), opt(:seq(:f32)); a map:
 *                                                       map(string[2]={a,b};f32[2])
 *                                 -                     left out
 *                                 f32[] is a scalar, f32[0,3] has no elements. A constant with ~ or at
 *                                 random: f32[3]!
 *   attrs   "axis=-1 alpha=0.5 pads=[0,0,1,1] mode='tanh' value=f32[1]={3} keys=['a','b'] scale=[0.5,1]
 *           type=<seq(:f32)>";
 *           floats have a point or an exponent, in a list at least one of them
 *   types   "T=f32,f16 I=i32,i64": the line is run for every combination; the word T stands in `in` and
 *           `attrs` for a
 *           type, and for its number where an attribute is `to=T`
 */
#ifndef ORTC_KERNELS_CASES_H
#define ORTC_KERNELS_CASES_H

#include "ortc/types.h"

typedef struct ortc_case {
    const char *op, *in, *attrs, *types;
    /* "cpu:f32 cpu:f16": these providers must take the node for these types; "cpu": for any */
    const char *needs;
    const char *except; /* "cpu: why": a failure on this provider is known; a success is an error */
    const char *alone;  /* why it may give other results between other nodes */
    const char *fixed;  /* why this form needs extents that are known when the model is loaded */
    double tolerance;   /* times the type's own; 0: 1 */
    ortc_status fails;  /* the model must be refused with this code */
    int outputs;        /* how many are asked for; 0: 1 */
} ortc_case;

#endif
