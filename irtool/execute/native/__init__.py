"""Generated C, compiled by the system's compiler: fused groups, and whole loops of a graph.

    c_source        pointwise steps as C
    building        calling the compiler; compiled functions on disk and in memory
    small_products  products of small matrices as C
    convolution_calls   which convolutions run in C, and their call
    convolution_source  convolutions as C, as products of matrices
    winograd_source     convolutions with kernels of 3 x 3 as C, by Winograd's algorithm
    weight_source   gradients of convolutions for the weight as C
    depthwise_source    depthwise convolutions and pools as C
    row_norms       layer norm and group norm as C
    stages          the parts of one iteration of a loop: elementwise steps, products, sums
    loop_rounds     one iteration of a loop as stages
    c_loops         a loop of a graph as one C function
"""
