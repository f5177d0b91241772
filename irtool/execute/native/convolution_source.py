"""Convolutions in C, one source for each use and each type of elements: all sizes are arguments, so that one compilation serves all.

A convolution is a product of the weight, as it lies, with windows of the input as columns. Only a tile of columns exists at a time: it is
gathered into a small buffer that stays in the cache, and `irtool.execute.native.small_products` multiplies it with all rows of the
weight. A transposed convolution multiplies a tile of the input with the transposed weight, and adds the products to where they belong.
Depthwise convolutions are in `irtool.execute.native.depthwise_source`, those by Winograd's algorithm in
`irtool.execute.native.winograd_source`, gradients for the weight in `irtool.execute.native.weight_source`.

The sums of an element are added in one order, whatever the number of samples or of threads.
"""
from __future__ import annotations

from irtool.execute.native import depthwise_source as depthwise
from irtool.execute.native import weight_source as weight
from irtool.execute.native import winograd_source as winograd
from irtool.execute.native.c_source import direct
from irtool.execute.native.small_products import declarations

FIELDS = ("samples groups channels outs i0 i1 i2 o0 o1 o2 k0 k1 k2 s0 s1 s2 d0 d1 d2 p0 p1 p2 u0 u1 u2 bias parts together "
          "first last bounded low high epilogue operands").split()
"""The sizes, in order: channels and outs of a group; extents of the input, of the output, of the kernel; stride, dilation, padding in
front, distance of elements of the input (depthwise only); is there a bias? In how many parts a group is computed, and how many samples
together; the first and last part to compute; do results have bounds, and the bits of these as doubles; the address of an epilogue, and the
number of its operands."""

_HEAD = """
#include <stdlib.h>
#include <string.h>
struct sizes { long long FIELDS; };
#if WIDEST == 64
typedef REAL_64 vector;
#elif WIDEST == 32
typedef REAL_32 vector;
#else
typedef REAL_16 vector;
#endif
enum { LANES = WIDEST / sizeof(REAL), WIDE = 4 * LANES, DEPTH = 1536 / sizeof(REAL), PIECES = WIDE };
struct piece { long i0, i1, i2, count, at, sample; };
typedef void loop(const long long *n, char *const *base, const long long *stride);

/* Positions `first` to `first + count` of an array of these extents, row by row: where each row begins, and how many there are in it. */
static int pieces_of(long first, long count, long n1, long n2, struct piece *to)
{
    int number = 0;
    for (long at = 0; at < count; number++) {
        const long row = (first + at) / n2, column = (first + at) % n2;
        const long rest = n2 - column < count - at ? n2 - column : count - at;
        to[number] = (struct piece){row / n1, row % n1, column, rest, at, 0};
        at += rest;
    }
    return number;
}

/* As many vectors as a tile has that begins `rest` positions in front of the end: 3, or less at the end, but not 3 and 1. */
static int vectors_of(long rest)
{
    const long vectors = (rest + LANES - 1) / LANES;
    return vectors == 4 && ROWS == 8 ? 4 : vectors > 3 ? 3 : vectors;
}

/* c = a b, or c += a b, of some rows and `width` columns, which b fills up to whole vectors. */
#define CASE(R, V) case R * 8 + V: BOUNDED(a, ai, ak, b, bk, into, ci, depth, more, bounds, R, V); break;
PRODUCT void rows_of(const REAL *a, long ai, long ak, const REAL *b, long bk, REAL *c, long ci, long depth, int more,
                     const REAL *bounds, int rows, int vectors, long width)
{
    REAL whole[ROWS * WIDE], *into = c, *const to = c;
    const long step = ci;
    if (width < vectors * LANES) {
        into = whole, ci = WIDE;
        if (more)
            for (int i = 0; i < rows; i++)
                memcpy(whole + i * WIDE, to + i * step, width * sizeof(REAL));
    }
    switch (rows * 8 + vectors) {
    CASE(1, 1) CASE(1, 2) CASE(1, 3) CASE(2, 1) CASE(2, 2) CASE(2, 3) CASE(3, 1) CASE(3, 2) CASE(3, 3) CASE(4, 1) CASE(4, 2) CASE(4, 3)
#if defined(__AVX512F__) || defined(__aarch64__)
    CASE(8, 1) CASE(8, 2) CASE(8, 3) CASE(1, 4) CASE(2, 4) CASE(3, 4) CASE(4, 4) CASE(6, 4)
#endif
    }
    if (into != to)
        for (int i = 0; i < rows; i++)
            memcpy(to + i * step, whole + i * WIDE, width * sizeof(REAL));
}

static int rows_at(long rest, int vectors)
{
    const int most = vectors == 4 ? 6 : ROWS;
    return rest >= most ? most : rest > 4 ? 4 : rest;
}

/* `count` elements of each of `rows` rows. */
#define ROWS_OF(V) case V * LANES: for (long k = 0; k < rows; k++, to += next, from += step) for (int j = 0; j < V; j++) \
    *(vector *)(to + j * LANES) = *(const vector *)(from + j * LANES); break;
__attribute__((unused)) static inline void copy(REAL *to, const REAL *from, long count, long rows, long next, long step)
{
    enum { NARROW = 16 / sizeof(REAL) };
    switch (count) {
    ROWS_OF(1) ROWS_OF(2) ROWS_OF(3) ROWS_OF(4)
    default:
        for (long k = 0; k < rows; k++, to += next, from += step)
            if (count >= LANES) {
                for (long j = 0; j + LANES < count; j += LANES)
                    *(vector *)(to + j) = *(const vector *)(from + j);
                *(vector *)(to + count - LANES) = *(const vector *)(from + count - LANES);
            } else if (count >= NARROW) {
                for (long j = 0; j + NARROW < count; j += NARROW)
                    *(REAL_16 *)(to + j) = *(const REAL_16 *)(from + j);
                *(REAL_16 *)(to + count - NARROW) = *(const REAL_16 *)(from + count - NARROW);
            } else
                for (long j = 0; j < count; j++)
                    to[j] = from[j];
    }
}

/* Pairs of elements as two rows. */
__attribute__((unused)) static inline void apart(const REAL *from, long pairs, REAL *even, REAL *odd)
{
    for (long j = 0; j < pairs; j++)
        even[j] = from[2 * j], odd[j] = from[2 * j + 1];
}

/* The elements of the windows at the pieces, as rows `from` to `from + depth` of the columns. */
__attribute__((unused)) static void gather(const struct sizes *g, const REAL *x, const struct piece *pieces, int number, long from,
                                           long depth, long width, REAL *b)
{
    const long taps = g->k0 * g->k1 * g->k2, plane = g->i0 * g->i1 * g->i2;
    const long end = pieces[number - 1].at + pieces[number - 1].count;
    for (long tap = 0; tap < taps && tap < depth; tap++) {
        const long at = (from + tap) % taps, t0 = at / (g->k1 * g->k2), t1 = at / g->k2 % g->k1, t2 = at % g->k2;
        const long rows = (depth - tap + taps - 1) / taps, next = taps * WIDE;
        const REAL *const xs = x + (from + tap) / taps * plane;
        REAL *const bs = b + tap * WIDE;
        for (int each = 0; each < number; each++) {
            const struct piece p = pieces[each];
            const long i0 = p.i0 * g->s0 - g->p0 + t0 * g->d0, i1 = p.i1 * g->s1 - g->p1 + t1 * g->d1;
            const long i2 = p.i2 * g->s2 - g->p2 + t2 * g->d2;
            const REAL *row = xs + (i0 * g->i1 + i1) * g->i2 + i2;
            REAL *to = bs + p.at;
            long low = 0, high = p.count;
            if (i0 < 0 || i0 >= g->i0 || i1 < 0 || i1 >= g->i1)
                high = 0;
            else {
                if (i2 < 0)
                    low = (g->s2 - 1 - i2) / g->s2 < high ? (g->s2 - 1 - i2) / g->s2 : high;
                if (i2 + (high - 1) * g->s2 >= g->i2)
                    high = i2 >= g->i2 ? low : (g->i2 - i2 + g->s2 - 1) / g->s2;
                if (high < low)
                    high = low;
            }
            if (g->s2 == 1)
                copy(to + low, row + low, high - low, rows, next, plane);
            else if (g->s2 == 2)
                for (long k = 0; k < rows; k++)
                    for (long j = low; j < high; j++)
                        to[k * next + j] = row[k * plane + j * 2];
            else
                for (long k = 0; k < rows; k++)
                    for (long j = low; j < high; j++)
                        to[k * next + j] = row[k * plane + j * g->s2];
            if (low || high < p.count)
                for (long k = 0; k < rows; k++) {
                    for (long j = 0; j < low; j++)
                        to[k * next + j] = 0;
                    for (long j = high; j < p.count; j++)
                        to[k * next + j] = 0;
                }
        }
        if (end < width)
            for (long k = 0; k < rows; k++)
                for (long j = end; j < width; j++)
                    bs[k * next + j] = 0;
    }
}

/* The pointwise operators behind a convolution: on `rows` times `count` elements at `some`, where rows lie `step` elements apart, of a
   sample from out `out` and position `first` on. Rows are outs or, if `by_row`, rows of positions. Operands have strides by sample, out,
   position. */
__attribute__((unused)) static void finish_some(const struct sizes *g, char *const *base, const long long *stride, long sample, long out,
                                                long first, long rows, long count, const REAL *some, long step, int by_row)
{
    const long positions = g->o0 * g->o1 * g->o2;
    char *at[OPERANDS + 2];
    long long steps[2 * OPERANDS + 4];
    const long long extents[] = {rows, count};
    const int last = g->operands + 1;
    const long long own[] = {sizeof(REAL) * positions * g->groups * g->outs, sizeof(REAL) * positions, sizeof(REAL)};
    for (int k = 0; k <= last; k++) {
        const long long *s = k == 0 || k == last ? own : stride + 3 * (k - 1);
        at[k] = base[k == 0 || k == last ? 3 : 3 + k] + s[0] * sample + s[1] * out + s[2] * first;
        steps[2 * k] = by_row ? s[2] * count : s[1];
        steps[2 * k + 1] = s[2];
    }
    at[0] = (char *)some, steps[0] = step * sizeof(REAL);
    ((loop *)(size_t)g->epilogue)(extents, at, steps);
}

/* The same on the result where it lies: `outs` outs and `count` positions. */
__attribute__((unused)) static void finish(const struct sizes *g, char *const *base, const long long *stride, long sample, long out,
                                           long outs, long first, long count)
{
    const long positions = g->o0 * g->o1 * g->o2;
    if (g->epilogue && outs)
        finish_some(g, base, stride, sample, out, first, outs, count,
                    (const REAL *)base[3] + (sample * g->groups * g->outs + out) * positions + first, positions, 0);
}

/* `rows` rows of positions to the result, with what follows. */
__attribute__((unused)) static void finish_rows(const struct sizes *g, char *const *base, const long long *stride, long sample, long out,
                                                long first, long rows, long count, const REAL *some, long step)
{
    const long positions = g->o0 * g->o1 * g->o2;
    REAL *const to = (REAL *)base[3] + (sample * g->groups * g->outs + out) * positions + first;
    if (g->epilogue && count >= 2 * LANES)
        finish_some(g, base, stride, sample, out, first, rows, count, some, step, 1);
    else {
        copy(to, some, count, rows, count, step);
        if (g->epilogue)        /* which is slow between short rows */
            finish_some(g, base, stride, sample, out, first, 1, rows * count, to, 0, 0);
    }
}
"""

_KERNEL = """
void kernel(const long long *n, char *const *base, const long long *stride)
{
    const struct sizes *g = (const struct sizes *)n;
    const REAL *x = (const REAL *)base[0], *w = (const REAL *)base[1], *bias = g->bias ? (const REAL *)base[2] : 0;
    REAL *out = (REAL *)base[3];
    double low, high;
    memcpy(&low, &g->low, sizeof low), memcpy(&high, &g->high, sizeof high);
    const REAL both[] = {low, high}, *const bounds = g->bounded ? both : 0;
    const long taps = g->k0 * g->k1 * g->k2, inside = g->i0 * g->i1 * g->i2, positions = g->o0 * g->o1 * g->o2;
BEFORE    for (long each = g->first; each < g->last; each++) {
        const long part = each % g->parts, unit = each / g->parts;
        const long from = g->outs * part / g->parts, outs = g->outs * (part + 1) / g->parts - from;
BODY    }
AFTER}
"""

_FORWARD = """        const long all = taps * g->channels, group = unit % g->groups, most = 3 * LANES;
        const long begin = positions / most * part / g->parts * most;
        const long stop = part + 1 < g->parts ? positions / most * (part + 1) / g->parts * most : positions;
        const REAL *xs = x + unit * g->channels * inside, *ws = w + group * g->outs * all;
        REAL *os = out + unit * g->outs * positions, b[DEPTH * WIDE] __attribute__((aligned(64)));
        struct piece pieces[PIECES];
        for (long first = begin; first < stop; ) {
            const int vectors = vectors_of(stop - first);
            const long width = stop - first < vectors * LANES ? stop - first : vectors * LANES;
            const int number = pieces_of(first, width, g->o1, g->o2, pieces);
            for (long k = 0; k < all; k += DEPTH) {
                const long depth = all - k < DEPTH ? all - k : DEPTH;
                gather(g, xs, pieces, number, k, depth, vectors * LANES, b);
                for (long i = 0; i < g->outs; ) {
                    const int rows = rows_at(g->outs - i, vectors);
                    REAL *c = some ? some + i * WIDE : os + i * positions + first;
                    const long step = some ? WIDE : positions;
                    if (!k && bias)
                        for (int r = 0; r < rows; r++)
                            for (long j = 0; j < width; j++)
                                c[r * step + j] = bias[group * g->outs + i + r];
                    rows_of(ws + i * all + k, all, 1, b, WIDE, c, step, depth, k || bias,
                            k + depth == all ? bounds : 0, rows, vectors, some ? vectors * LANES : width);
                    i += rows;
                }
            }
            if (some)
                finish_some(g, base, stride, unit / g->groups, group * g->outs, first, g->outs, width, some, WIDE, 0);
            else
                finish(g, base, stride, unit / g->groups, group * g->outs, g->outs, first, width);
            first += width;
        }
"""

_TRANSPOSED = """        const long all = taps * g->outs, group = unit % g->groups, most = (ROWS == 8 ? 4 : 3) * LANES;
        const long begin = unit / g->groups * g->together;
        const long end = begin + g->together < g->samples ? begin + g->together : g->samples;
        const REAL *ws = w + group * g->channels * all;
        REAL c[ROWS * WIDE];
        struct piece pieces[PIECES];
        /* A tile is a part of a sample, or several samples as a whole, so that the order of sums does not depend on their number. */
        for (long sample = begin, count; sample < end; sample += count) {
            count = 2 * inside > most ? 1 : most / inside < end - sample ? most / inside : end - sample;
            const REAL *xs = x + (sample * g->groups + group) * g->channels * inside;
            REAL *os = out + (sample * g->groups + group) * g->outs * positions;
            const long next_x = g->groups * g->channels * inside, next_o = g->groups * g->outs * positions;
            for (long each = 0; each < count; each++)
                for (long i = from; i < from + outs; i++)
                    for (long j = 0; j < positions; j++)
                        os[each * next_o + i * positions + j] = bias ? bias[group * g->outs + i] : 0;
            for (long first = 0; first < inside; ) {
                const int vectors = count > 1 ? (count * inside + LANES - 1) / LANES : vectors_of(inside - first);
                const long width = inside - first < vectors * LANES ? inside - first : vectors * LANES;
                int number = 0;
                for (long each = 0; each < count; each++) {
                    const int more = pieces_of(first, width, g->i1, g->i2, pieces + number);
                    for (int k = 0; k < more; k++, number++)
                        pieces[number].at += each * width, pieces[number].sample = each;
                    copy(b + each * width, xs + each * next_x + first, width, g->channels, WIDE, inside);
                }
                for (long k = 0; k < g->channels; k++)
                    for (long j = count * width; j < vectors * LANES; j++)
                        b[k * WIDE + j] = 0;
                places_of(g, pieces, number, next_o, places);
                for (long i = from * taps; i < (from + outs) * taps; ) {
                    const int rows = rows_at((from + outs) * taps - i, vectors);
                    rows_of(ws + i, 1, all, b, WIDE, c, WIDE, g->channels, 0, 0, rows, vectors, vectors * LANES);
                    for (int r = 0; r < rows; r++) {
                        const struct place *each = places + (i + r) % taps * number;
                        REAL *plane = os + (i + r) / taps * positions;
                        for (int at = 0; at < number; at++, each++) {
                            REAL *to = plane + each->at;
                            const REAL *some = c + r * WIDE + pieces[at].at;
                            if (g->s2 == 1)
                                for (int j = each->low; j < each->high; j++)
                                    to[j] += some[j];
                            else
                                for (int j = each->low; j < each->high; j++)
                                    to[j * g->s2] += some[j];
                        }
                    }
                    i += rows;
                }
                first += width;
            }
            for (long each = 0; each < count; each++)
                finish(g, base, stride, sample + each, group * g->outs + from, outs, 0, positions);
        }
"""

_SOME = """    /* A tile of results, for what follows: where they lie at the end, they are not in the cache yet. */
    const size_t room = g->outs * WIDE * sizeof(REAL);
    REAL *const some = g->epilogue && room <= 1 << 18 ? aligned_alloc(64, room) : 0;
"""
_PLACES = """
/* Where the products of a piece with an element of the kernel are added: the place of the first one in the results of an out, some samples
   of which lie `next` elements apart, and those in the piece that are inside of the result. */
struct place { long at; int low, high; };
static void places_of(const struct sizes *g, const struct piece *pieces, int number, long next, struct place *to)
{
    for (long tap = 0; tap < g->k0 * g->k1 * g->k2; tap++)
        for (int each = 0; each < number; each++) {
            const struct piece p = pieces[each];
            const long o0 = p.i0 * g->s0 - g->p0 + tap / (g->k1 * g->k2) * g->d0;
            const long o1 = p.i1 * g->s1 - g->p1 + tap / g->k2 % g->k1 * g->d1;
            const long o2 = p.i2 * g->s2 - g->p2 + tap % g->k2 * g->d2;
            long low = o2 < 0 ? (g->s2 - 1 - o2) / g->s2 : 0, high = p.count;
            if (o2 + (high - 1) * g->s2 >= g->o2)
                high = o2 >= g->o2 ? 0 : (g->o2 - o2 + g->s2 - 1) / g->s2;
            if (o0 < 0 || o0 >= g->o0 || o1 < 0 || o1 >= g->o1)
                high = 0;
            *to++ = (struct place){p.sample * next + (o0 * g->o1 + o1) * g->o2 + o2, (int)low, (int)high};
        }
}
"""

_COLUMNS = """    REAL *const b = aligned_alloc(64, g->channels * WIDE * sizeof(REAL));
    struct place *const places = malloc(taps * PIECES * sizeof(struct place));
"""

MOST_TAPS = 512
"""Elements of the largest kernel of a depthwise convolution."""
MOST_OPERANDS = 6
"""Operands of an epilogue."""
USES = {
    "forward": ("", _SOME, _FORWARD, "    free(some);\n"), "transposed": (_PLACES, _COLUMNS, _TRANSPOSED, "    free(b), free(places);\n"),
    "weight": (weight.FUNCTIONS, "", weight.BODY, ""),
    "winograd": (winograd.TILES, winograd.BEFORE, winograd.BODY, winograd.AFTER),
    **depthwise.USES,
}
"""Use -> functions in C, and the C in front of the parts, of one part, and behind them. Uses for gradients of the weight take the input as
x, the gradient of the output as w, and the gradient of the weight as out."""


TRANSFORM = "transform"
"""The use that transforms a weight for "winograd"; its arguments are its own."""


def text(use: str, type: str) -> str:
    """The source of a use of convolutions of elements of a C type."""
    if use == TRANSFORM:
        parts = _HEAD + winograd.WEIGHT
    else:
        functions, before, body, after = USES[use]
        parts = _HEAD + functions + _KERNEL.replace("BEFORE", before).replace("BODY", body).replace("AFTER", after)
    for name, value in (("FIELDS", ", ".join(FIELDS)), ("OPERANDS", str(MOST_OPERANDS)), ("MOST", str(MOST_TAPS)), ("REAL", type)):
        parts = parts.replace(name, value)
    return declarations({type}) + parts + direct(4 + MOST_OPERANDS)


__all__ = ["FIELDS", "MOST_OPERANDS", "MOST_TAPS", "TRANSFORM", "USES", "text"]
