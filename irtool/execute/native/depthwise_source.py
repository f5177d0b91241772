"""Depthwise convolutions and pools in C: sums over the elements of the kernel, or their largest, for some rows of a channel at a time.

The input of these rows is copied to a buffer with zeros around, where an offset leads from each position to each element of its window, and
sums stay in registers. Rows are so few that all this stays in the first-level cache.
"""
from __future__ import annotations

PLANES = """
/* The input of `rows` rows of a channel with zeros around, as planes of the positions that a stride reads together, so that each element of
   a window is at one distance from its position in every row. */
struct planes { long rows, e0, e1, e2, q0, q1, q2, columns, size, flat, whole, lead; long taps[MOST]; };
enum { ROOM = 12288 / sizeof(REAL) };
static inline long over(long count, long step)
{
    return step == 1 ? count : step == 2 ? count >> 1 : count / step;       /* a division takes longer than a short row */
}

static long whole_vectors(long count)
{
    return (count + LANES - 1) / LANES * LANES;
}

static struct planes planes_of(const struct sizes *g)
{
    struct planes f;
    f.e2 = (g->o2 - 1) * g->s2 + (g->k2 - 1) * g->d2 + 1, f.q2 = (f.e2 + g->s2 - 1) / g->s2;
    f.columns = whole_vectors(g->o2), f.lead = 0;
    if (f.columns * 3 <= g->o2 * 4)     /* rows of whole vectors, whose input begins at one */
        f.q2 = whole_vectors(f.q2 < f.columns ? f.columns : f.q2), f.lead = whole_vectors(g->p2 / g->s2) - g->p2 / g->s2;
    else
        f.columns = 0;
    f.rows = ROOM / (f.q2 * g->s1 * g->s2);
    if (f.rows < 8)
        f.rows = 8;
    if (f.rows > g->o1 || g->i0 * g->k0 > 1)
        f.rows = g->o1;
    const long bands = (g->o1 + f.rows - 1) / f.rows;
    f.rows = (g->o1 + bands - 1) / bands;
    f.e0 = (g->o0 - 1) * g->s0 + (g->k0 - 1) * g->d0 + 1, f.q0 = (f.e0 + g->s0 - 1) / g->s0;
    f.e1 = (f.rows - 1) * g->s1 + (g->k1 - 1) * g->d1 + 1, f.q1 = (f.e1 + g->s1 - 1) / g->s1;
    f.size = f.q0 * f.q1 * f.q2;
    f.flat = ((g->o0 - 1) * f.q1 + f.rows - 1) * f.q2 + (f.columns ? f.columns : g->o2);
    f.flat = whole_vectors(f.flat);
    f.whole = whole_vectors(f.lead + f.size * g->s0 * g->s1 * g->s2 + WIDE);
    for (long tap = 0; tap < g->k0 * g->k1 * g->k2; tap++) {
        const long t0 = tap / (g->k1 * g->k2) * g->d0, t1 = tap / g->k2 % g->k1 * g->d1, t2 = tap % g->k2 * g->d2;
        f.taps[tap] = (((t0 % g->s0) * g->s1 + t1 % g->s1) * g->s2 + t2 % g->s2) * f.size
            + (t0 / g->s0 * f.q1 + t1 / g->s1) * f.q2 + t2 / g->s2;
    }
    return f;
}

/* One row of the input as a row of each plane. */
static void fill_row(const struct sizes *g, const struct planes *f, const REAL *row, REAL *to)
{
    const long room = (f->e2 - g->p2 + g->u2 - 1) / g->u2, count = g->i2 < room ? g->i2 : room;
    if (g->s2 == 1 && g->u2 == 1)
        copy(to + g->p2, row, count, 1, 0, 0);
    else if (g->s2 == 1)
        for (long j = 0; j < count; j++)
            to[g->p2 + j * g->u2] = row[j];
    else if (g->s2 == 2 && count > 1) {
        const long begin = g->p2 & 1, pairs = (count - begin) / 2;
        REAL *const even = to + (g->p2 + 1) / 2, *const odd = to + f->size + g->p2 / 2;
        if (begin)
            odd[0] = row[0];
        apart(row + begin, pairs, even, odd + begin);
        if (begin + 2 * pairs < count)
            even[pairs] = row[begin + 2 * pairs];
    } else
        for (long phase = 0; phase < g->s2; phase++) {
            const long begin = (phase + g->s2 - g->p2 % g->s2) % g->s2;
            REAL *into = to + phase * f->size + (begin + g->p2) / g->s2;
            for (long j = begin, k = 0; j < count; j += g->s2, k++)
                into[k] = row[j];
        }
}

/* The input that results from row `top` on read. Columns without input are EMPTY from the beginning, rows without input become so. */
static void fill(const struct sizes *g, const struct planes *f, const REAL *x, long top, REAL *planes)
{
    for (long e0 = g->p0; e0 < f->e0 && (e0 - g->p0) / g->u0 < g->i0; e0 += g->u0)
        for (long e1 = 0; e1 < f->e1; e1++) {
            const long at = top * g->s1 + e1 - g->p1, i1 = at < 0 ? -1 : over(at, g->u1), r0 = over(e0, g->s0), r1 = over(e1, g->s1);
            REAL *const to = planes + ((e0 - r0 * g->s0) * g->s1 + e1 - r1 * g->s1) * g->s2 * f->size + (r0 * f->q1 + r1) * f->q2;
            if (i1 >= 0 && i1 < g->i1 && i1 * g->u1 == at)
                fill_row(g, f, x + ((e0 - g->p0) / g->u0 * g->i1 + i1) * g->i2, to);
            else if (f->rows < g->o1)
                for (long phase = 0; phase < g->s2; phase++)
                    for (long j = 0; j < f->q2; j++)
                        to[phase * f->size + j] = EMPTY;
        }
}

"""

SUMS = """
#define SUMS(V) for (; at + V * LANES <= end; at += V * LANES) { \\
        vector sums[V]; \\
        for (int j = 0; j < V; j++) \\
            sums[j] = (vector){0} + start; \\
        for (long tap = 0; tap < taps; tap++) { \\
            const REAL *from = planes + offsets[tap] + at; \\
            for (int j = 0; j < V; j++) \\
                sums[j] += w[tap] * *(const vector *)(from + j * LANES); \\
        } \\
        for (int j = 0; j < V; j++) \\
            *(vector *)(to + at + j * LANES) = bounds ? WITHIN(sums[j], bounds) : sums[j]; \\
    }
PRODUCT void windows(const REAL *planes, const long *offsets, const REAL *w, long taps, REAL start, const REAL *bounds, REAL *to, long end)
{
    long at = 0;
    SUMS(8) SUMS(4) SUMS(2) SUMS(1)
}

/* The same of `rows` rows and `vectors` vectors, of a kernel of `k1` rows next to each other: what is read once serves all of them. */
FUSED void block(const REAL *planes, const long *offsets, long q2, const REAL *w, int k1, long k2, REAL start, const REAL *bounds,
                 REAL *to, int rows, int vectors)
{
    vector sums[4][2];
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < vectors; j++)
            sums[r][j] = (vector){0} + start;
    for (long t2 = 0; t2 < k2; t2++)
#pragma GCC unroll 16
        for (int i = 0; i < rows + k1 - 1; i++)
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++) {
                const vector each = *(const vector *)(planes + offsets[t2] + i * q2 + j * LANES);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    if (i - r >= 0 && i - r < k1)
                        sums[r][j] += w[(i - r) * k2 + t2] * each;
            }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < vectors; j++)
            *(vector *)(to + r * q2 + j * LANES) = bounds ? WITHIN(sums[r][j], bounds) : sums[r][j];
}

#define BLOCK(R, V) block(planes + r * q2 + at, offsets, q2, w, k1, k2, start, bounds, to + r * q2 + at, R, V)
FUSED void blocks(const REAL *planes, const long *offsets, long q2, const REAL *w, int k1, long k2, REAL start, const REAL *bounds,
                  REAL *to, long rows, long columns)
{
    long r = 0;
    for (; r + 4 <= rows; r += 4) {
        long at = 0;
        for (; at + 2 * LANES <= columns; at += 2 * LANES)
            BLOCK(4, 2);
        if (at < columns)
            BLOCK(4, 1);
    }
    for (; r < rows; r++)
        for (long at = 0; at < columns; at += LANES)
            BLOCK(1, 1);
}
#define BLOCKS(K) PRODUCT void blocks_##K(const REAL *planes, const long *offsets, long q2, const REAL *w, long k2, REAL start, \\
                                          const REAL *bounds, REAL *to, long rows, long columns) \\
{ \\
    blocks(planes, offsets, q2, w, K, k2, start, bounds, to, rows, columns); \\
}
BLOCKS(3) BLOCKS(5) BLOCKS(7)

/* The sums at `rows` rows. */
__attribute__((unused)) static void sums_of(const struct sizes *g, const struct planes *f, const REAL *planes, const REAL *w, REAL start,
                                            const REAL *bounds, REAL *to, long rows)
{
    const long taps = g->k0 * g->k1 * g->k2;
    if (!f->columns || g->o0 > 1)
        windows(planes, f->taps, w, taps, start, bounds, to, g->o0 > 1 ? f->flat : whole_vectors((rows - 1) * f->q2 + g->o2));
    else if (g->k0 == 1 && g->d1 == 1 && g->s1 == 1 && g->k1 == 3)
        blocks_3(planes, f->taps, f->q2, w, g->k2, start, bounds, to, rows, f->columns);
    else if (g->k0 == 1 && g->d1 == 1 && g->s1 == 1 && g->k1 == 5)
        blocks_5(planes, f->taps, f->q2, w, g->k2, start, bounds, to, rows, f->columns);
    else if (g->k0 == 1 && g->d1 == 1 && g->s1 == 1 && g->k1 == 7)
        blocks_7(planes, f->taps, f->q2, w, g->k2, start, bounds, to, rows, f->columns);
    else
        for (long r = 0; r < rows; r++)
            windows(planes + r * f->q2, f->taps, w, taps, start, bounds, to + r * f->q2, f->columns);
}

"""

DOTS = """
/* The sums of products of a gradient, with zeros between its rows, and what is at some distances from it. */
#define DOTS(V) for (; tap + V <= taps; tap += V) { \\
        vector sums[V]; \\
        for (int j = 0; j < V; j++) \\
            sums[j] = (vector){0}; \\
        for (long at = 0; at < end; at += LANES) { \\
            const vector left = *(const vector *)(grad + at); \\
            for (int j = 0; j < V; j++) \\
                sums[j] += left * *(const vector *)(planes + offsets[tap + j] + at); \\
        } \\
        for (int j = 0; j < V; j++) { \\
            REAL parts[LANES]; \\
            *(vector *)parts = sums[j]; \\
            for (int half = LANES / 2; half; half /= 2) \\
                for (int k = 0; k < half; k++) \\
                    parts[k] += parts[k + half]; \\
            w[tap + j] += parts[0]; \\
        } \\
    }
PRODUCT void dots(const REAL *planes, const long *offsets, REAL *w, long taps, const REAL *grad, long end)
{
    long tap = 0;
    DOTS(9) DOTS(5) DOTS(1)
}
"""

BEFORE = """    const struct planes f = planes_of(g);
    const size_t bytes = (f.whole + f.flat) * sizeof(REAL);
    REAL *const buffer = aligned_alloc(64, bytes), *const planes = buffer + f.lead, *const flat = buffer + f.whole;
    for (long j = 0; j < f.whole + f.flat; j++)
        buffer[j] = EMPTY;
"""
AFTER = "    free(buffer);\n"

FORWARD = """        const long group = unit % g->groups;
        for (long top = 0; top < g->o1; top += f.rows) {
            const long rows = g->o1 - top < f.rows ? g->o1 - top : f.rows;
            fill(g, &f, x + unit * inside, top, planes);
            for (long i = 0; i < g->outs; i++) {
                const long o = group * g->outs + i;
                sums_of(g, &f, planes, w + o * taps, bias ? bias[o] : 0, bounds, flat, rows);
                for (long i0 = 0; i0 < g->o0; i0++)
                    finish_rows(g, base, stride, unit / g->groups, o, (i0 * g->o1 + top) * g->o2, rows, g->o2, flat + i0 * f.q1 * f.q2,
                                f.q2);
            }
        }
"""

WEIGHT = """        memset(out + unit * g->outs * taps, 0, g->outs * taps * sizeof(REAL));
        for (long sample = 0; sample < g->samples; sample++)
            for (long top = 0; top < g->o1; top += f.rows) {
                const long rows = g->o1 - top < f.rows ? g->o1 - top : f.rows;
                fill(g, &f, x + (sample * g->groups + unit) * inside, top, planes);
                if (rows < f.rows)
                    memset(flat, 0, f.flat * sizeof(REAL));
                for (long i = 0; i < g->outs; i++) {
                    const REAL *grad = w + ((sample * g->groups + unit) * g->outs + i) * positions + top * g->o2;
                    for (long i0 = 0; i0 < g->o0; i0++)
                        copy(flat + i0 * f.q1 * f.q2, grad + i0 * g->o1 * g->o2, g->o2, rows, f.q2, g->o2);
                    dots(planes, f.taps, out + (unit * g->outs + i) * taps, taps, flat,
                         g->o0 > 1 ? f.flat : whole_vectors((rows - 1) * f.q2 + g->o2));
                }
            }
"""

LARGEST = """
/* The largest elements of windows, nan of nan. */
#define LARGEST(V) for (; at + V * LANES <= end; at += V * LANES) { \\
        vector most[V]; \\
        for (int j = 0; j < V; j++) \\
            most[j] = *(const vector *)(planes + offsets[0] + at + j * LANES); \\
        for (long tap = 1; tap < taps; tap++) \\
            for (int j = 0; j < V; j++) { \\
                const vector each = *(const vector *)(planes + offsets[tap] + at + j * LANES); \\
                const __typeof__(each < each) stays = (most[j] > each) | (most[j] != most[j]); \\
                most[j] = (vector)(((__typeof__(stays))most[j] & stays) | ((__typeof__(stays))each & ~stays)); \\
            } \\
        for (int j = 0; j < V; j++) \\
            *(vector *)(to + at + j * LANES) = bounds ? WITHIN(most[j], bounds) : most[j]; \\
    }
static void largest(const REAL *planes, const long *offsets, long taps, const REAL *bounds, REAL *to, long end)
{
    long at = 0;
    LARGEST(8) LARGEST(4) LARGEST(2) LARGEST(1)
}
"""

MAXIMUM = """        for (long top = 0; top < g->o1; top += f.rows) {
            const long rows = g->o1 - top < f.rows ? g->o1 - top : f.rows;
            fill(g, &f, x + unit * inside, top, planes);
            if (f.columns && g->o0 == 1)
                for (long r = 0; r < rows; r++)
                    largest(planes + r * f.q2, f.taps, taps, bounds, flat + r * f.q2, f.columns);
            else
                largest(planes, f.taps, taps, bounds, flat, f.flat);
            for (long i0 = 0; i0 < g->o0; i0++)
                finish_rows(g, base, stride, unit / g->groups, unit % g->groups, (i0 * g->o1 + top) * g->o2, rows, g->o2,
                            flat + i0 * f.q1 * f.q2, f.q2);
        }
"""

ZEROS, LEAST = "#define EMPTY 0\n", "#define EMPTY (-__builtin_inf())\n"
"""What is around the input."""
USES = {"depthwise": (ZEROS + PLANES + SUMS, BEFORE, FORWARD, AFTER), "depthwise weight": (ZEROS + PLANES + DOTS, BEFORE, WEIGHT, AFTER),
        "maximum": (LEAST + PLANES + LARGEST, BEFORE, MAXIMUM, AFTER)}
"""As `irtool.execute.native.convolution_source.USES`; "maximum": the largest element of each window, of one channel each."""

__all__ = ["USES"]
