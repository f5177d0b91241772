"""Comparisons for tests of irtool and of users.

    closeness           do arrays agree?
    finite_differences  are gradients right? derivatives: graphs in double precision, and graphs of gradients, for that question
    formulas            is the gradient formula of an operator right?
    operator_checks     is a user's operator right?
    pair_size           the size of a gradient pair
"""
