"""Products of small matrices in C, for loops in C: without the overhead of a call of BLAS.

A tile of the result stays in vector registers during the sum over the inner dimension; the right factor is loaded in vectors, the left one
element by element. A multiplication and an addition are fused (`fp-contract=fast`), in products only. Vectors have the full width of the
processor; narrower ones compute the rest of a row.

A right factor that is the same in all rounds is packed in front of the loop: as panels of the width of a tile, each contiguous and aligned.
Rows are shared equally among the tiles of a panel, so that no tile is much lower than the others.
"""
from __future__ import annotations

LARGEST = 1 << 20
"""Bytes of the right factor from which BLAS is faster, since it packs the factors first."""
LARGEST_PACKED = 1 << 26
"""The same for a right factor that is packed once, in front of the loop."""

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
#define COUNT(ROWS_IN_ALL) (((ROWS_IN_ALL) + ROWS - 1) / ROWS)
#define HEIGHT(ROWS_IN_ALL) (((ROWS_IN_ALL) + COUNT(ROWS_IN_ALL) - 1) / COUNT(ROWS_IN_ALL))
#define MOST(ROWS_IN_ALL) (SUMS / HEIGHT(ROWS_IN_ALL) > 8 ? 8 : SUMS / HEIGHT(ROWS_IN_ALL))
"""

_TILE = """
typedef TYPE TYPE_BYTES __attribute__((vector_size(BYTES), aligned(sizeof(TYPE)), may_alias));
/* The larger of bounds[0] and x, the smaller of bounds[1] and that; x of equal ones, and nan of nan. */
FUSED TYPE_BYTES within_TYPE_BYTES(TYPE_BYTES x, const TYPE *bounds)
{
    const TYPE_BYTES low = (TYPE_BYTES){0} + bounds[0], high = (TYPE_BYTES){0} + bounds[1];
    __typeof__(x < low) out = x < low;
    x = (TYPE_BYTES)(((__typeof__(out))low & out) | ((__typeof__(out))x & ~out));
    out = x > high;
    return (TYPE_BYTES)(((__typeof__(out))high & out) | ((__typeof__(out))x & ~out));
}
FUSED void bounded_TYPE_BYTES(const TYPE *a, long ai, long ak, const TYPE *b, long bk, TYPE *c, long ci, long depth, int more,
                              const TYPE *bounds, int rows, int vectors)
{
    enum { LANES = BYTES / sizeof(TYPE) };
    TYPE_BYTES sums[ROWS][8];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            sums[i][j] = (TYPE_BYTES){0};
    for (long k = 0; k < depth; k++) {
        TYPE_BYTES right[8];
        for (int j = 0; j < vectors; j++)
            right[j] = *(const TYPE_BYTES *)(b + k * bk + j * LANES);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vectors; j++)
                sums[i][j] += a[i * ai + k * ak] * right[j];
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) {
            TYPE_BYTES *const to = (TYPE_BYTES *)(c + i * ci + j * LANES);
            if (more)
                sums[i][j] += *to;      /* sums of sums round less than one long sum */
            *to = bounds ? within_TYPE_BYTES(sums[i][j], bounds) : sums[i][j];
        }
}
FUSED void tile_TYPE_BYTES(const TYPE *a, long ai, long ak, const TYPE *b, long bk, TYPE *c, long ci, long depth, int more, int rows,
                           int vectors)
{
    bounded_TYPE_BYTES(a, ai, ak, b, bk, c, ci, depth, more, 0, rows, vectors);
}
"""

_WIDEST = """
#undef TILE
#undef BOUNDED
#undef WITHIN
#if WIDEST == 64
#define TILE tile_TYPE_64
#define BOUNDED bounded_TYPE_64
#define WITHIN within_TYPE_64
#elif WIDEST == 32
#define TILE tile_TYPE_32
#define BOUNDED bounded_TYPE_32
#define WITHIN within_TYPE_32
#else
#define TILE tile_TYPE_16
#define BOUNDED bounded_TYPE_16
#define WITHIN within_TYPE_16
#endif
"""

_PRODUCT = """
enum { LANES_TYPE = WIDEST / sizeof(TYPE) };
FUSED long panel_TYPE(long j, long columns, long most)
{
    const long left = columns - j;
    if (left >= LANES_TYPE)
        return j < columns - columns % (most * LANES_TYPE) ? most * LANES_TYPE : LANES_TYPE;
    return left * sizeof(TYPE) >= 32 ? 32 / sizeof(TYPE) : left * sizeof(TYPE) >= 16 ? 16 / sizeof(TYPE) : 1;
}
FUSED void pack_TYPE(const TYPE *b, long bk, long bj, TYPE *into, long columns, long depth, long most)
{
    for (long j = 0, width; j < columns; j += width) {
        width = panel_TYPE(j, columns, most);
        for (long first = 0; first < depth; first += 16)
            for (long i = 0; i < width; i++)
                for (long k = first; k < depth && k < first + 16; k++)
                    into[j * depth + k * width + i] = b[k * bk + (j + i) * bj];
    }
}
FUSED void one_TYPE(const TYPE *a, long ai, long ak, const TYPE *b, long bk, TYPE *c, long ci, long depth, int more, int rows, int vectors)
{
    for (int i = 0; i < rows; i++) {
        TYPE sum = more ? c[i * ci] : 0;
        for (long k = 0; k < depth; k++)
            sum += a[i * ai + k * ak] * b[k * bk];
        c[i * ci] = sum;
    }
}
#define PANELS_TYPE(FUNCTION, FROM, TO, WIDTH, VECTORS)                                                                        \\
    for (long j = FROM; j < TO; j += WIDTH) {                                                                                  \\
        const TYPE *const right = b + (packed ? j * depth : j);                                                                \\
        const long step = packed ? WIDTH : bk;                                                                                 \\
        for (long i = 0; i < high; i++)                                                                                        \\
            FUNCTION(a + i * height * ai, ai, ak, right, step, c + i * height * ci + j, ci, depth, more, height, VECTORS);     \\
        for (long i = 0, row = high * height; i < low; i++, row += height - 1)                                                 \\
            FUNCTION(a + row * ai, ai, ak, right, step, c + row * ci + j, ci, depth, more, height - 1, VECTORS);               \\
    }
FUSED void product_TYPE(const TYPE *a, long ai, long ak, const TYPE *b, long bk, TYPE *c, long ci, long rows, long columns, long depth,
                        int more, int packed)
{
    const long count = COUNT(rows), height = HEIGHT(rows), high = rows - count * (height - 1), low = count - high, most = MOST(rows);
    const long wide = columns - columns % (most * LANES_TYPE), vectors = columns - columns % LANES_TYPE;
    const long halves = columns - columns % (32 / sizeof(TYPE)), quarters = columns - columns % (16 / sizeof(TYPE));
    PANELS_TYPE(TILE, 0, wide, most * LANES_TYPE, most)
    PANELS_TYPE(TILE, wide, vectors, LANES_TYPE, 1)
    PANELS_TYPE(tile_TYPE_32, vectors, halves, 32 / sizeof(TYPE), 1)
    PANELS_TYPE(tile_TYPE_16, (halves > vectors ? halves : vectors), quarters, 16 / sizeof(TYPE), 1)
    PANELS_TYPE(one_TYPE, quarters, columns, 1, 1)
}
"""


def declarations(types: set[str]) -> str:
    """The C functions for products of matrices of these types."""
    parts = [_HEAD] if types else []
    for name in sorted(types):
        tiles = "".join([_TILE.replace("BYTES", str(width)) for width in (16, 32, 64)])
        parts.append((tiles + _WIDEST + _PRODUCT).replace("TYPE", name))
    return "".join(parts)


def definition(name: str, type: str, left: tuple[int, int], right: int, row: int, extents: tuple[int, int, int], more: bool,
               packed: bool) -> str:
    """A function `name(a, b, c)`: c = a b, or c += a b. Strides in elements: `left` by rows and by columns, `right` and `row` (of the
    result) by rows; extents: rows, columns, and the inner dimension; packed: is b as `packing` writes it?"""
    numbers = ", ".join([str(each) for each in extents])
    return (f"PRODUCT void {name}(const {type} *a, const {type} *b, {type} *c)\n{{\n"
            f"    product_{type}(a, {left[0]}, {left[1]}, b, {right}, c, {row}, {numbers}, {int(more)}, {int(packed)});\n}}\n")


def packing(name: str, type: str, strides: tuple[int, int], extents: tuple[int, int, int]) -> str:
    """A function `name(b, into)`: the right factor of a product of these extents, panel by panel, as the product reads it. strides: of b
    by rows and by columns."""
    rows, columns, depth = extents
    return (f"PRODUCT void {name}(const {type} *b, {type} *into)\n{{\n"
            f"    pack_{type}(b, {strides[0]}, {strides[1]}, into, {columns}, {depth}, MOST({rows}));\n}}\n")


__all__ = ["LARGEST", "LARGEST_PACKED", "declarations", "definition", "packing"]
