"""Samples of embeddings."""
from irtool.ops.kernels.embedding import table
from irtool.ops.samples.draw import apart, call, ints, real

table_of, indices, bags = real(5, 2), ints(1, 0, 2, 4, 4), ints(0, 2, 2)

table.sample("embedding", call(real(4, 2), ints([[0, 3], [3, 1]])),
             call(real(4, 2), ints([[0, 3], [3, 1]]), 1, True).rough("rows of padding have no gradient, others are scaled, by design"))
table.sample("embedding_backward", call(real(4, 3), ints(1, 3, 1, 0), 4, 3, False, False),
             call(real(4, 3), ints(1, 3, 1, 0), 4, 3, True, False))
table.sample("embedding_dense_backward", call(real(4, 3), ints(1, 3, 1, 0), 4, 3, False))
table.sample("embedding_bag _embedding_bag _embedding_bag_forward_only", call(table_of, indices, bags),
             call(table_of, indices, bags, mode=1),
             call(apart(5, 2), indices, bags, mode=2), call(table_of, indices, bags, per_sample_weights=real(5)))
table.sample("embedding_bag.padding_idx", call(table_of, indices, bags, False, 1, False, None, False, 0),
             call(table_of, indices, bags, False, 0, False, real(5), False, None))
