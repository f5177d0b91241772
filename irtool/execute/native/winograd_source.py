"""Convolutions with kernels of 3 x 3 and stride 1 in C, by Winograd's algorithm F(2 x 2, 3 x 3): 16 products for four results, not 36.

A tile of 2 x 2 results is the inverse transform of 16 sums over channels, of products of an element of the transformed weight with one of
the transformed 4 x 4 window: 16 products of matrices. As many rows of tiles as half of the second-level cache holds are computed together.
The four elements of each 2 x 2 block of the input lie in four planes, so that windows of neighbouring tiles are neighbours; there is one
tile too many between rows, whose sums nobody reads. Small samples are computed together.
"""
from __future__ import annotations

WEIGHT = """
typedef REAL filters __attribute__((vector_size(ROWS * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
/* G w G' of each filter of w, as (16, groups, outs / ROWS, channels, ROWS), with zeros for missing outs. n: groups, outs, channels, the
   strides of both in filters, and whether filters are turned around. */
void kernel(const long long *n, char *const *base, const long long *stride)
{
    const long groups = n[0], outs = n[1], channels = n[2], whole = (outs + 7) / 8 * 8, all = groups * whole * channels + 16;
    const REAL *w = (const REAL *)base[0];
    REAL *to = (REAL *)base[1];
    for (long group = 0; group < groups; group++, w += outs * channels * 9)
        for (long out = 0; out < whole; out += ROWS)
            for (long channel = 0; channel < channels; channel++, to += ROWS) {
                REAL some[9][ROWS];
                filters half[4][3];
                if (out + ROWS > outs)
                    memset(some, 0, sizeof some);
                for (long i = 0; i < ROWS && out + i < outs; i++)
                    for (int k = 0; k < 9; k++)
                        some[k][i] = w[((out + i) * n[3] + channel * n[4]) * 9 + (n[5] ? 8 - k : k)];
                for (int j = 0; j < 3; j++) {
                    const filters a = *(filters *)some[j], b = *(filters *)some[3 + j], c = *(filters *)some[6 + j];
                    half[0][j] = a, half[1][j] = (a + c + b) * (REAL)0.5, half[2][j] = (a + c - b) * (REAL)0.5, half[3][j] = c;
                }
                for (int i = 0; i < 4; i++) {
                    const filters a = half[i][0], b = half[i][1], c = half[i][2];
                    REAL *const at = to + i * 4 * all;
                    *(filters *)at = a, *(filters *)(at + all) = (a + c + b) * (REAL)0.5;
                    *(filters *)(at + 2 * all) = (a + c - b) * (REAL)0.5, *(filters *)(at + 3 * all) = c;
                }
            }
}
"""

TILES = """
/* Four planes of the rows of a channel from `top` on: elements of even or odd rows, and of even or odd columns, with zeros around. */
static void fill(const struct sizes *g, const REAL *x, long top, long rows, long wide, long size, REAL *planes)
{
    for (long row = 0; row < rows; row++) {
        const long i1 = top + row - g->p1, begin = g->p2 & 1;
        REAL *const even = planes + (row & 1) * 2 * size + (row >> 1) * wide, *const odd = even + size;
        long at = g->p2 / 2, from = 0;
        if (i1 < 0 || i1 >= g->i1) {
            memset(even, 0, wide * sizeof(REAL)), memset(odd, 0, wide * sizeof(REAL));
            continue;
        }
        const REAL *const xs = x + i1 * g->i2;
        for (long j = 0; j < at; j++)
            even[j] = odd[j] = 0;
        if (begin)
            even[at] = 0, odd[at++] = xs[from++];
        const long pairs = (g->i2 - from) / 2;
        apart(xs + from, pairs, even + at, odd + at);
        at += pairs, from += 2 * pairs;
        if (from < g->i2)
            even[at] = xs[from], odd[at++] = 0;
        for (; at < wide; at++)
            even[at] = odd[at] = 0;
    }
}

/* B' d B of the windows at `count` tiles, as 16 rows that lie `apart` elements from each other. */
static void windows(const REAL *planes, long size, long wide, long count, REAL *to, long step)
{
    for (long at = 0; at < count; at += LANES) {
        vector half[4][4];
        for (int j = 0; j < 4; j++) {
            const REAL *const d = planes + (j & 1) * size + (j >> 1) + at;
            const vector d0 = *(const vector *)d, d1 = *(const vector *)(d + 2 * size);
            const vector d2 = *(const vector *)(d + wide), d3 = *(const vector *)(d + 2 * size + wide);
            half[0][j] = d0 - d2, half[1][j] = d1 + d2, half[2][j] = d2 - d1, half[3][j] = d1 - d3;
        }
        for (int i = 0; i < 4; i++) {
            REAL *const row = to + i * 4 * step + at;
            *(vector *)row = half[i][0] - half[i][2], *(vector *)(row + step) = half[i][1] + half[i][2];
            *(vector *)(row + 2 * step) = half[i][2] - half[i][1], *(vector *)(row + 3 * step) = half[i][1] - half[i][3];
        }
    }
}

/* A' m A of the sums of `count` tiles, as four rows of `room` results: of even or odd rows, and even or odd columns. */
static void results(const REAL *m, long step, long count, REAL bias, const REAL *bounds, REAL *to, long room)
{
    for (long at = 0; at < count; at += LANES) {
        vector half[2][4];
        for (int j = 0; j < 4; j++) {
            const REAL *const each = m + j * step + at;
            const vector m0 = *(const vector *)each, m1 = *(const vector *)(each + 4 * step);
            const vector m2 = *(const vector *)(each + 8 * step), m3 = *(const vector *)(each + 12 * step);
            half[0][j] = m0 + m1 + m2, half[1][j] = m1 - m2 - m3;
        }
        for (int i = 0; i < 2; i++) {
            const vector even = half[i][0] + half[i][1] + half[i][2] + bias, odd = half[i][1] - half[i][2] - half[i][3] + bias;
            *(vector *)(to + 2 * i * room + at) = bounds ? WITHIN(even, bounds) : even;
            *(vector *)(to + (2 * i + 1) * room + at) = bounds ? WITHIN(odd, bounds) : odd;
        }
    }
}

enum { HALF = 1 << 19 };
/* How many rows of tiles are computed together: such that whole vectors are as full as can be. */
static long rows_of_tiles(const struct sizes *g)
{
    const long tall = (g->o1 + 1) / 2, wide = (g->o2 + 1) / 2 + 1;
    if (g->together > 1)
        return tall;
    const long most = HALF / (16 * sizeof(REAL) * wide * (g->channels + g->outs));
    long best = 1;
    double least = 1e30;
    for (long rows = 1; rows <= (tall + g->parts - 1) / g->parts && (rows <= most || rows * wide <= 3 * LANES); rows++) {
        const double each = (double)((rows * wide + LANES - 2) / LANES) / rows;
        if (each <= least)
            best = rows, least = each;
    }
    return best;
}
"""

BEFORE = """    const long across = (g->o2 + 1) / 2 + 1, widest = rows_of_tiles(g) * across * g->together + LANES;
    const long elements = 16 * (widest + LANES) * (g->channels + g->outs + 10) + 12 * (widest + across + LANES);
    REAL *const tiles = aligned_alloc(64, (elements + 16) / 16 * 16 * sizeof(REAL));
"""
BODY = """        const long group = unit % g->groups, tall = (g->o1 + 1) / 2, wide = (g->o2 + 1) / 2 + 1, whole = (g->outs + 7) / 8 * 8;
        const long some = rows_of_tiles(g), steps = (tall + some - 1) / some;
        const long begin = unit / g->groups * g->together, number = g->samples - begin < g->together ? g->samples - begin : g->together;
        const REAL *const xs = x + (begin * g->groups + group) * g->channels * inside;
        REAL *const os = out + (begin * g->groups + group) * g->outs * positions;
        for (long step = steps * part / g->parts; step < steps * (part + 1) / g->parts; step++) {
            const long top = step * some, rows = tall - top < some ? tall - top : some, count = rows * wide - 1;
            const long room = (number * count + LANES - 1) / LANES * LANES, size = (rows + 1) * wide + 2 * LANES;
            const long in = g->channels * room + LANES, behind = whole * room + LANES;
            REAL *const m = tiles + 16 * in, *const planes = m + 16 * behind, *const done = planes + 4 * size;
            for (long c = 0; c < g->channels; c++)
                for (long s = 0; s < number; s++) {         /* in this order, since the last vector writes into what comes next */
                    fill(g, xs + (s * g->groups * g->channels + c) * inside, 2 * top, 2 * rows + 2, wide, size, planes);
                    windows(planes, size, wide, count, tiles + c * room + s * count, in);
                }
            for (int k = 0; k < 16; k++)
                for (long first = 0; first < room; ) {
                    const long rest = (room - first) / LANES;
                    const int vectors = rest == 4 ? 2 : rest > 3 ? 3 : rest;
                    const REAL *const ws = w + k * (g->groups * whole * g->channels + 16) + group * whole * g->channels;
                    for (long c = 0; c < g->channels; c += 256) {
                        const long depth = g->channels - c < 256 ? g->channels - c : 256;
                        for (long i = 0; i < whole; i += ROWS)
                            rows_of(ws + i * g->channels + c * ROWS, 1, ROWS, tiles + k * in + c * room + first, room,
                                    m + k * behind + i * room + first, room, depth, c > 0, 0, ROWS, vectors, vectors * LANES);
                    }
                    first += vectors * LANES;
                }
            for (long i = 0; i < g->outs; i++) {
                results(m + i * room, behind, room, bias ? bias[group * g->outs + i] : 0, bounds, done, room);
                for (long s = 0; s < number; s++)
                    for (long row = 0; row < 2 * rows && 2 * top + row < g->o1; row++) {
                        const REAL *const even = done + (row & 1) * 2 * room + s * count + (row >> 1) * wide, *const odd = even + room;
                        REAL *const to = os + (s * g->groups * g->outs + i) * positions + (2 * top + row) * g->o2;
                        for (long j = 0; j < g->o2 / 2; j++)
                            to[2 * j] = even[j], to[2 * j + 1] = odd[j];
                        if (g->o2 & 1)
                            to[g->o2 - 1] = even[g->o2 / 2];
                    }
            }
            const long last = 2 * (top + rows) < g->o1 ? 2 * (top + rows) : g->o1;
            for (long s = 0; s < number; s++)
                finish(g, base, stride, begin + s, group * g->outs, g->outs, 2 * top * g->o2, (last - 2 * top) * g->o2);
        }
"""
AFTER = "    free(tiles);\n"

__all__ = ["AFTER", "BEFORE", "BODY", "TILES", "WEIGHT"]
