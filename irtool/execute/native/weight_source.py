"""Gradients of convolutions for the weight in C, on the skeleton of `irtool.execute.native.convolution_source`.

A gradient of an element of the weight is a sum over positions of an element of the input with one of the result's gradient. The latter
are turned, so that those of neighbouring outs are a vector; the former are read where they lie, in planes with zeros around them, at a
distance per element of the kernel. A tile of sums stays in registers over all positions of a block: as many planes, or lines of a plane,
as the cache holds.
"""
from __future__ import annotations

FUNCTIONS = """
/* Channels together; turned elements of a block, and its positions: sums of sums round less than one long sum. */
enum { SOME = 8, AT_ONCE = 1 << 17, LEAST = 256, LARGEST = 768 };

/* sums = or += for each of `rows` places `at` the products of x there with rows of g, at `count` positions of each line. */
FUSED void added(const REAL *x, const long *at, const long *lines, long number, long count, long step, const REAL *g, REAL *sums,
                 long next, int more, int rows, int vectors)
{
    vector sum[ROWS][3];
    long place[ROWS];
    for (int i = 0; i < rows; i++) {
        place[i] = at[i];
        for (int v = 0; v < vectors; v++)
            sum[i][v] = more ? *(const vector *)(sums + i * next + v * LANES) : (vector){0};
    }
    for (long line = 0; line < number; line++) {
        const REAL *from = x + lines[line];
        for (long j = 0; j < count; j++, from += step, g += vectors * LANES) {
            vector right[3];
            for (int v = 0; v < vectors; v++)
                right[v] = *(const vector *)(g + v * LANES);
            for (int i = 0; i < rows; i++)
                for (int v = 0; v < vectors; v++)
                    sum[i][v] += from[place[i]] * right[v];
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            *(vector *)(sums + i * next + v * LANES) = sum[i][v];
}

#define ADDED(R, V) case R * 4 + V: added(x, at, lines, number, count, step, g, sums, next, more, R, V); break;
PRODUCT void add(const REAL *x, const long *at, const long *lines, long number, long count, long step, const REAL *g, REAL *sums,
                 long next, int more, int rows, int vectors)
{
    switch (rows * 4 + vectors) {
    ADDED(1, 1) ADDED(1, 2) ADDED(1, 3) ADDED(2, 1) ADDED(2, 2) ADDED(2, 3) ADDED(3, 1) ADDED(3, 2) ADDED(3, 3) ADDED(4, 1) ADDED(4, 2)
    ADDED(4, 3)
#if defined(__AVX512F__) || defined(__aarch64__)
    ADDED(8, 1) ADDED(8, 2) ADDED(8, 3)
#endif
    }
}

static int vectors_at(long rest)
{
    const long vectors = (rest + LANES - 1) / LANES;
    return vectors == 4 ? 2 : vectors > 3 ? 3 : vectors;
}

/* `count` elements of each of `outs` rows, `step` elements apart, as rows `first` on of tiles of outs that have `all` rows. */
static void turn(const REAL *from, long outs, long step, long count, long first, long all, REAL *tile)
{
    for (long column = 0; column < outs; ) {
        const long width = vectors_at(outs - column) * LANES;
        REAL *const to = tile + first * width;
        for (long i = 0; i < width; i += LANES)
            for (long j = 0; j < count; j++)
                for (long lane = 0; lane < LANES; lane++)
                    to[j * width + i + lane] = column + i + lane < outs ? from[(column + i + lane) * step + j] : 0;
        column += width, tile += all * width;
    }
}

/* `height` rows of a plane from `top` on, `wide` columns from the padding on, with zeros outside. */
static void framed(const struct sizes *g, const REAL *x, long top, long height, long wide, REAL *to)
{
    const long begin = g->p2 < wide ? g->p2 : wide, end = g->i2 + begin < wide ? g->i2 + begin : wide;
    for (long row = top; row < top + height; row++, to += wide) {
        const int inside = row >= 0 && row < g->i1;
        for (long j = 0; j < (inside ? begin : wide); j++)
            to[j] = 0;
        if (!inside)
            continue;
        copy(to + begin, x + row * g->i2, end - begin, 1, 0, 0);
        for (long j = end; j < wide; j++)
            to[j] = 0;
    }
}
"""

BODY = """        const long all = taps * g->channels, wide = (g->o2 - 1) * g->s2 + (g->k2 - 1) * g->d2 + 1;
        const long planes = g->samples * g->o0, plane = g->o1 * g->o2, full = (outs + LANES - 1) / LANES * LANES;
        const long fit = AT_ONCE / ((g->outs + LANES - 1) / LANES * LANES), most = fit < LEAST ? LEAST : fit < LARGEST ? fit : LARGEST;
        const long many = plane < most ? most / plane < planes ? most / plane : planes : 1;
        const long few = plane < most ? g->o1 : g->o2 < most ? most / g->o2 : 1, tall = (few - 1) * g->s1 + (g->k1 - 1) * g->d1 + 1;
        const long each_plane = g->k0 * tall * wide, each_channel = many * each_plane, is_whole = many == planes && few == g->o1;
        REAL *const sums = aligned_alloc(64, ((is_whole && g->channels > SOME ? SOME * taps : all) * full * sizeof(REAL) + 63) / 64 * 64);
        REAL *const turned = aligned_alloc(64, (many * few * g->o2 * full * sizeof(REAL) + 63) / 64 * 64);
        REAL *const frame = malloc(SOME * each_channel * sizeof(REAL));
        long *const lines = malloc(many * few * sizeof(long)), at[ROWS];
        for (long begin = 0; begin < planes; begin += many)
            for (long top = 0; top < g->o1; top += few) {
                const long here = planes - begin < many ? planes - begin : many, low = g->o1 - top < few ? g->o1 - top : few;
                const long count = low * g->o2;
                for (long p = 0; p < here; p++) {
                    const long sample = (begin + p) / g->o0, depth = (begin + p) % g->o0;
                    const REAL *const ws = w + ((sample * g->groups + unit) * g->outs + from) * positions + depth * plane;
                    for (long line = 0; line < low; line++)
                        lines[p * low + line] = p * each_plane + line * g->s1 * wide;
                    turn(ws + top * g->o2, outs, positions, count, p * count, here * count, turned);
                }
                for (long c = 0; c < g->channels; c += SOME) {
                    const long channels = g->channels - c < SOME ? g->channels - c : SOME, rows = channels * taps;
                    REAL *const into = sums + (is_whole ? 0 : c * taps * full);
                    for (long k = 0; k < channels; k++)
                        for (long p = 0; p < here; p++)
                            for (long t0 = 0; t0 < g->k0; t0++) {
                                const long sample = (begin + p) / g->o0, depth = (begin + p) % g->o0 * g->s0 - g->p0 + t0 * g->d0;
                                const long is_inside = depth >= 0 && depth < g->i0;
                                const REAL *const xs = x + (((sample * g->groups + unit) * g->channels + c + k) * g->i0
                                                            + (is_inside ? depth : 0)) * g->i1 * g->i2;
                                framed(g, xs, is_inside ? top * g->s1 - g->p1 : g->i1, (low - 1) * g->s1 + (g->k1 - 1) * g->d1 + 1, wide,
                                       frame + k * each_channel + p * each_plane + t0 * tall * wide);
                            }
                    for (long row = 0; row < rows; ) {
                        const int height = rows - row >= ROWS ? ROWS : rows - row > 4 ? 4 : rows - row;
                        for (int i = 0; i < height; i++) {
                            const long tap = (row + i) % taps, t0 = tap / (g->k1 * g->k2), t1 = tap / g->k2 % g->k1, t2 = tap % g->k2;
                            at[i] = (row + i) / taps * each_channel + (t0 * tall + t1 * g->d1) * wide + t2 * g->d2;
                        }
                        for (long column = 0; column < outs; ) {
                            const int vectors = vectors_at(outs - column);
                            add(frame, at, lines, here * low, g->o2, g->s2, turned + column * here * count,
                                into + row * full + column, full, begin || top, height, vectors);
                            column += vectors * LANES;
                        }
                        row += height;
                    }
                    if (begin + here == planes && top + low == g->o1)
                        for (long i = 0; i < outs; i += LANES)
                            for (long row = 0; row < rows; row++)
                                for (long lane = 0; lane < LANES && i + lane < outs; lane++)
                                    out[(unit * g->outs + from + i + lane) * all + c * taps + row] = into[row * full + i + lane];
                }
            }
        free(sums), free(turned), free(frame), free(lines);
"""

__all__ = ["BODY", "FUNCTIONS"]
