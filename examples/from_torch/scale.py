from torch import Tensor


def scale(x: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        if bool(x.abs().max() > 1):
            x = x * 0.5
    return x
