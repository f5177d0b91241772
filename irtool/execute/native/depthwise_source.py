"""Depthwise convolutions in C: sums over the elements of the kernel, for a channel at a time.

The input of a channel is copied to a buffer with zeros around, where an offset leads from each position to each element of its window, and
sums stay in registers.
"""
from __future__ import annotations

PLANES = """
/* The input of a channel with zeros around, as planes of the positions that a stride reads together, so that each element of a window is at
   one distance from its position in every row. */
struct planes { long e0, e1, e2, q0, q1, q2, size, flat, whole; long taps[MOST]; };
static struct planes planes_of(const struct sizes *g)
{
    struct planes f;
    f.e0 = (g->o0 - 1) * g->s0 + (g->k0 - 1) * g->d0 + 1, f.q0 = (f.e0 + g->s0 - 1) / g->s0;
    f.e1 = (g->o1 - 1) * g->s1 + (g->k1 - 1) * g->d1 + 1, f.q1 = (f.e1 + g->s1 - 1) / g->s1;
    f.e2 = (g->o2 - 1) * g->s2 + (g->k2 - 1) * g->d2 + 1, f.q2 = (f.e2 + g->s2 - 1) / g->s2;
    f.size = f.q0 * f.q1 * f.q2;
    f.flat = ((g->o0 - 1) * f.q1 + g->o1 - 1) * f.q2 + g->o2;
    f.whole = f.size * g->s0 * g->s1 * g->s2 + WIDE;
    for (long tap = 0; tap < g->k0 * g->k1 * g->k2; tap++) {
        const long t0 = tap / (g->k1 * g->k2) * g->d0, t1 = tap / g->k2 % g->k1 * g->d1, t2 = tap % g->k2 * g->d2;
        f.taps[tap] = (((t0 % g->s0) * g->s1 + t1 % g->s1) * g->s2 + t2 % g->s2) * f.size
            + (t0 / g->s0 * f.q1 + t1 / g->s1) * f.q2 + t2 / g->s2;
    }
    return f;
}

static void fill(const struct sizes *g, const struct planes *f, const REAL *x, REAL *planes)
{
    for (long i0 = 0; i0 < g->i0; i0++)
        for (long i1 = 0; i1 < g->i1; i1++) {
            const long e0 = i0 * g->u0 + g->p0, e1 = i1 * g->u1 + g->p1;
            const REAL *row = x + (i0 * g->i1 + i1) * g->i2;
            if (e0 < 0 || e1 < 0 || e0 >= f->e0 || e1 >= f->e1)
                continue;
            REAL *to = planes + ((e0 % g->s0) * g->s1 + e1 % g->s1) * g->s2 * f->size + (e0 / g->s0 * f->q1 + e1 / g->s1) * f->q2;
            const long room = (f->e2 - g->p2 + g->u2 - 1) / g->u2, count = g->i2 < room ? g->i2 : room;
            if (g->s2 == 1 && g->u2 == 1)
                for (long j = 0; j < count; j++)
                    to[g->p2 + j] = row[j];
            else if (g->s2 == 1)
                for (long j = 0; j < count; j++)
                    to[g->p2 + j * g->u2] = row[j];
            else
                for (long phase = 0; phase < g->s2; phase++) {
                    const long begin = (phase + g->s2 - g->p2 % g->s2) % g->s2;
                    REAL *into = to + phase * f->size + (begin + g->p2) / g->s2;
                    for (long j = begin, k = 0; j < count; j += g->s2, k++)
                        into[k] = row[j];
                }
        }
}

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
            *(vector *)(to + at + j * LANES) = sums[j]; \\
    }
PRODUCT void windows(const REAL *planes, const long *offsets, const REAL *w, long taps, REAL start, REAL *to, long end)
{
    long at = 0;
    SUMS(8) SUMS(2) SUMS(1)
}

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
        for (int j = 0; j < V; j++) \\
            for (int k = 0; k < LANES; k++) \\
                w[tap + j] += sums[j][k]; \\
    }
PRODUCT void dots(const REAL *planes, const long *offsets, REAL *w, long taps, const REAL *grad, long end)
{
    long tap = 0;
    DOTS(7) DOTS(3) DOTS(1)
}
"""

BEFORE = """    const struct planes f = planes_of(g);
    const long end = (f.flat + LANES - 1) / LANES * LANES;
    REAL *const planes = calloc(f.whole + end, sizeof(REAL)), *const flat = planes + f.whole;
"""
AFTER = "    free(planes);\n"

FORWARD = """        const long group = unit % g->groups;
        fill(g, &f, x + unit * inside, planes);
        for (long i = 0; i < g->outs; i++) {
            REAL *to = out + (unit * g->outs + i) * positions;
            windows(planes, f.taps, w + (group * g->outs + i) * taps, taps, bias ? bias[group * g->outs + i] : 0, flat, end);
            for (long row = 0; row < g->o0 * g->o1; row++)
                for (long j = 0; j < g->o2; j++)
                    to[row * g->o2 + j] = flat[(row / g->o1 * f.q1 + row % g->o1) * f.q2 + j];
        }
        finish(g, base, stride, unit / g->groups, group * g->outs, g->outs, 0, positions);
"""

WEIGHT = """        memset(out + unit * g->outs * taps, 0, g->outs * taps * sizeof(REAL));
        for (long sample = 0; sample < g->samples; sample++) {
            fill(g, &f, x + (sample * g->groups + unit) * inside, planes);
            for (long i = 0; i < g->outs; i++) {
                const REAL *grad = w + ((sample * g->groups + unit) * g->outs + i) * positions;
                for (long row = 0; row < g->o0 * g->o1; row++)
                    for (long j = 0; j < g->o2; j++)
                        flat[(row / g->o1 * f.q1 + row % g->o1) * f.q2 + j] = grad[row * g->o2 + j];
                dots(planes, f.taps, out + (unit * g->outs + i) * taps, taps, flat, end);
            }
        }
"""

__all__ = ["AFTER", "BEFORE", "FORWARD", "PLANES", "WEIGHT"]
