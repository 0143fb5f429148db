/* kernels/einsum/cases.c: cases for Einsum: sums, diagonals, transposes, ellipses, any number of operands. */
#include "kernels/common/cases.h"

#define NUM "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64"

const ortc_case ortc_cases_einsum[] = {
    {"Einsum", "T[3,4] T[4,5]", "equation='ij,jk->ik'", NUM, .tolerance = 4},
    {"Einsum", "f32[3,4]", "equation='ij->ji'"},
    {"Einsum", "f32[3,4]", "equation='ji'"},
    {"Einsum", "f32[3,4]", "equation='ij->'"},
    {"Einsum", "f32[4,4]", "equation='ii->i'"},
    {"Einsum", "f32[4,4]", "equation='ii'"},
    {"Einsum", "f32[4] f32[5]", "equation='i,j'"},
    {"Einsum", "f32[4] f32[4]", "equation='i,i'"},
    {"Einsum", "f32[2,3,4] f32[2,4,5]", "equation='bij,bjk->bik'"},
    {"Einsum", "f32[2,3,4,5] f32[5,6]", "equation='...ij,jk->...ik'"},
    {"Einsum", "f32[2,1,4] f32[3,4]", "equation='...i,...i->...'"},
    {"Einsum", "f32[2,3,4] f32[4]", "equation='...i,...i'"},
    {"Einsum", "f32[2,3,4,4]", "equation='...ii->...i'"},
    {"Einsum", "f32[3,4] f32[4,5] f32[5,2]", "equation='ij,jk,kl->il'"},
    {"Einsum", "f32[2,3] f32[2,1]", "equation=' i j , i j -> j i '"},
    {"Einsum", "f32[2,3,4] f32[2,3,4]", "equation='aBc,aBc->Ba'"},
    {"Einsum", "f32[] f32[3]", "equation=',i->i'"},
    {"Einsum", "f32[3,0] f32[0,2]", "equation='ij,jk->ik'"},
    {"Einsum", "f32[0,3]", "equation='ij->ji'"},
    {"Einsum@12", "f32[2,3] f32[3]", "equation='ij,j->i'"},
    {"Einsum", "f32[2,3]", "equation='ijk->i'", .fails = ORTC_INVALID_MODEL},
    {"Einsum", "f32[2,3]", "equation='i->i'", .fails = ORTC_INVALID_MODEL},
    {"Einsum", "f32[2,3]", "equation='ij,j->i'", .fails = ORTC_INVALID_MODEL},
    {"Einsum", "f32[2,3]", "equation='ij->ik'", .fails = ORTC_INVALID_MODEL},
    {"Einsum", "f32[2,3]", "equation='ij->ii'", .fails = ORTC_INVALID_MODEL},
    {"Einsum", "f32[2,3]", "equation='i.j->i'", .fails = ORTC_INVALID_MODEL},
    {"Einsum", "f32[2,3]", "equation='...j->j'", .fails = ORTC_INVALID_MODEL},
    {"Einsum", "f32[2,3]", "equation='i......'", .fails = ORTC_INVALID_MODEL},
    {"Einsum", "f32[2,3] f32[2,3]", "equation='ij,jk->ik'", .fails = ORTC_SHAPE_MISMATCH},
    {0},
};
