/* kernels/einsum/equation.c: the grammar: terms of letters and at most one "...", by commas, then perhaps
 * "->" and the result's term; blanks mean nothing.
 */
#include "kernels/einsum/equation.h"

#include <string.h>

static int letter(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

static const char *terms_end(const char *equation)
{
    const char *arrow = strstr(equation, "->");
    return arrow ? arrow : equation + strlen(equation);
}

uint32_t ortc_einsum_count(const char *equation)
{
    uint32_t n = 1;
    for (const char *s = equation; s < terms_end(equation); s++) n += *s == ',';
    return n;
}

static int32_t ellipsis_label(int32_t dim, int32_t dims)
{
    return ORTC_EINSUM_LETTERS + ORTC_RANK_LIMIT - dims + dim;
}

/* A term between two places. `dots`: dims that an ellipsis stands for; -1: find out, from the rank. */
static const char *read_term(const char *s, const char *end, int32_t rank, int32_t *dots, uint8_t *labels,
                             int32_t *count)
{
    int32_t letters = 0;
    bool ellipsis = false;
    for (const char *p = s; p < end; p++) letters += letter(*p) >= 0;
    const int32_t under = *dots >= 0 ? *dots : rank - letters;
    *count = 0;
    if (letters + (under > 0 ? under : 0) > ORTC_EINSUM_LABELS || under > ORTC_RANK_LIMIT)
        return "has too many labels";
    for (; s < end; s++) {
        if (*s == ' ') continue;
        if (letter(*s) >= 0) {
            labels[(*count)++] = (uint8_t)letter(*s);
            continue;
        }
        if (end - s < 3 || strncmp(s, "...", 3) != 0 || ellipsis)
            return "holds what is neither a letter nor the one ellipsis of a term";
        ellipsis = true;
        s += 2;
        for (int32_t d = 0; d < under; d++) labels[(*count)++] = (uint8_t)ellipsis_label(d, under);
    }
    if (*dots < 0 && (ellipsis ? under < 0 : under != 0))
        return "has another number of labels than the operand has dims";
    *dots = ellipsis && under > 0 ? under : 0;
    return NULL;
}

const char *ortc_einsum_operand(const char *equation, uint32_t which, int32_t rank, uint8_t *labels,
                                ortc_einsum_result *r)
{
    const char *s = equation, *end = terms_end(equation);
    int32_t dots = -1, count;
    for (; which > 0 && s < end; s++) which -= *s == ',';
    const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;
    int32_t letters = 0; /* a term longer than the operand has dims never gets into `labels` */
    for (const char *p = s; p < stop; p++) letters += letter(*p) >= 0;
    if (letters > rank) return "has another number of labels than the operand has dims";
    const char *wrong = read_term(s, stop, rank, &dots, labels, &count);
    if (wrong) return wrong;
    r->ellipsis = dots > r->ellipsis ? dots : r->ellipsis;
    for (int32_t d = 0; d < count; d++) r->times[labels[d]]++;
    return NULL;
}

const char *ortc_einsum_output(const char *equation, ortc_einsum_result *r)
{
    const char *s = terms_end(equation);
    int32_t dots = r->ellipsis;
    bool used[ORTC_EINSUM_LABELS] = {false};
    if (*s) { /* "->" */
        const char *wrong = read_term(s + 2, s + strlen(s), 0, &dots, r->labels, &r->rank);
        if (wrong) return wrong;
        if (dots != r->ellipsis) return "drops the dims under the ellipsis";
    } else { /* the ellipsis, then labels that are used once, in the order of the alphabet */
        for (int32_t d = 0; d < r->ellipsis; d++)
            r->labels[r->rank++] = (uint8_t)ellipsis_label(d, r->ellipsis);
        for (int32_t l = 0; l < ORTC_EINSUM_LETTERS; l++)
            if (r->times[l] == 1) r->labels[r->rank++] = (uint8_t)l;
    }
    for (int32_t d = 0; d < r->rank; d++) {
        if (used[r->labels[d]] || r->times[r->labels[d]] == 0)
            return "has a label of the result twice, or one that no operand has";
        used[r->labels[d]] = true;
    }
    return r->rank > ORTC_RANK_LIMIT ? "makes a result of too many dims" : NULL;
}
