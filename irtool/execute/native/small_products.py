"""Products of small matrices in C, for loops in C: without the overhead of a call of BLAS.

A tile of the result stays in vector registers during the sum over the inner dimension; the right factor is loaded in vectors, the left one
element by element. A multiplication and an addition are fused (`fp-contract=fast`), in products only. Vectors have the full width of the
processor; narrower ones compute the rest of a row.
"""
from __future__ import annotations

LARGEST = 1 << 20
"""Bytes of the right factor from which BLAS is faster, since it packs the factors first."""

_HEAD = """
#if defined(__AVX512F__)
#define WIDEST 64
#elif defined(__AVX__)
#define WIDEST 32
#else
#define WIDEST 16
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
enum { ROWS = 8, SUMS = 16 };
#else
enum { ROWS = 4, SUMS = 8 };
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define FUSED __attribute__((optimize("fp-contract=fast"), always_inline)) static inline
#define PRODUCT __attribute__((optimize("fp-contract=fast"), noinline)) static
#else
#pragma STDC FP_CONTRACT ON
#define FUSED __attribute__((always_inline)) static inline
#define PRODUCT __attribute__((noinline)) static
#endif
"""

_TILE = """
typedef TYPE TYPE_BYTES __attribute__((vector_size(BYTES), aligned(sizeof(TYPE)), may_alias));
FUSED void tile_TYPE_BYTES(const TYPE *a, long ai, long ak, const TYPE *b, long bk, TYPE *c, long ci, long depth, int more, int rows,
                           int vectors)
{
    enum { LANES = BYTES / sizeof(TYPE) };
    TYPE_BYTES sums[ROWS][8];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            sums[i][j] = more ? *(const TYPE_BYTES *)(c + i * ci + j * LANES) : (TYPE_BYTES){0};
    for (long k = 0; k < depth; k++) {
        TYPE_BYTES right[8];
        for (int j = 0; j < vectors; j++)
            right[j] = *(const TYPE_BYTES *)(b + k * bk + j * LANES);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vectors; j++)
                sums[i][j] += a[i * ai + k * ak] * right[j];
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            *(TYPE_BYTES *)(c + i * ci + j * LANES) = sums[i][j];
}
"""

_WIDEST = """
#undef TILE
#if WIDEST == 64
#define TILE tile_TYPE_64
#elif WIDEST == 32
#define TILE tile_TYPE_32
#else
#define TILE tile_TYPE_16
#endif
"""

_STRIP = """
FUSED void strip_TYPE(const TYPE *a, long ai, long ak, const TYPE *b, long bk, TYPE *c, long ci, long columns, long depth, int more,
                      int rows)
{
    enum { LANES = WIDEST / sizeof(TYPE) };
    const int most = SUMS / rows > 8 ? 8 : SUMS / rows;
    const long wide = columns - columns % (most * LANES), vectors = columns - columns % LANES;
    for (long j = 0; j < wide; j += most * LANES)
        TILE(a, ai, ak, b + j, bk, c + j, ci, depth, more, rows, most);
    for (long j = wide; j < vectors; j += LANES)
        TILE(a, ai, ak, b + j, bk, c + j, ci, depth, more, rows, 1);
    const long halves = vectors + (columns - vectors) / (32 / sizeof(TYPE)) * (32 / sizeof(TYPE));
    for (long j = vectors; j < halves; j += 32 / sizeof(TYPE))
        tile_TYPE_32(a, ai, ak, b + j, bk, c + j, ci, depth, more, rows, 1);
    const long quarters = halves + (columns - halves) / (16 / sizeof(TYPE)) * (16 / sizeof(TYPE));
    for (long j = halves; j < quarters; j += 16 / sizeof(TYPE))
        tile_TYPE_16(a, ai, ak, b + j, bk, c + j, ci, depth, more, rows, 1);
    for (long j = quarters; j < columns; j++)
        for (int i = 0; i < rows; i++) {
            TYPE sum = more ? c[i * ci + j] : 0;
            for (long k = 0; k < depth; k++)
                sum += a[i * ai + k * ak] * b[k * bk + j];
            c[i * ci + j] = sum;
        }
}
FUSED void product_TYPE(const TYPE *a, long ai, long ak, const TYPE *b, long bk, TYPE *c, long ci, long rows, long columns, long depth,
                        int more)
{
    const long whole = rows - rows % ROWS;
    for (long i = 0; i < whole; i += ROWS)
        strip_TYPE(a + i * ai, ai, ak, b, bk, c + i * ci, ci, columns, depth, more, ROWS);
    a += whole * ai, c += whole * ci;
    switch (rows % ROWS) {
REST    }
}
"""


def declarations(types: set[str]) -> str:
    """The C functions for products of matrices of these types."""
    parts = [_HEAD] if types else []
    for name in sorted(types):
        tiles = "".join([_TILE.replace("BYTES", str(width)) for width in (16, 32, 64)])
        rest = "".join([f"    case {rows}: strip_TYPE(a, ai, ak, b, bk, c, ci, columns, depth, more, {rows}); break;\n"
                        for rows in range(1, 8)])
        parts.append((tiles + _WIDEST + _STRIP.replace("REST", rest)).replace("TYPE", name))
    return "".join(parts)


def definition(name: str, type: str, left: tuple[int, int], right: int, row: int, extents: tuple[int, int, int], more: bool) -> str:
    """A function `name(a, b, c)`: c = a b, or c += a b. Strides in elements: `left` by rows and by columns, `right` and `row` (of the
    result) by rows; extents: rows, columns, and the inner dimension."""
    numbers = ", ".join([str(each) for each in extents])
    return (f"PRODUCT void {name}(const {type} *a, const {type} *b, {type} *c)\n{{\n"
            f"    product_{type}(a, {left[0]}, {left[1]}, b, {right}, c, {row}, {numbers}, {int(more)});\n}}\n")


__all__ = ["LARGEST", "declarations", "definition"]
