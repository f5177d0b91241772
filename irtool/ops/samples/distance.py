"""Samples of distances."""
import math

from irtool.ops.kernels.distance import table
from irtool.ops.samples.draw import call, real

table.sample("cdist", *[call(real(3, 2), real(4, 2), p) for p in (1.0, 1.5, 2.0, 3.0, math.inf)])
table.sample("_cdist_forward", call(real(3, 2), real(4, 2), 1.5, None))
table.sample("_euclidean_dist", call(real(3, 2), real(4, 2)))
table.sample("pdist _pdist_forward", call(real(4, 2)), call(real(4, 2), 1.5))
table.sample("pairwise_distance", call(real(3, 4), real(3, 4), 3.0), call(real(3, 4), real(4)))
table.sample("dist", call(real(2, 3), real(3)), call(real(3), real(3), 1.5))
table.sample("cosine_similarity", call(real(3, 4), real(3, 4)))
table.sample("renorm", call(real(3, 4), 2, 0, 1.5))
