"""Gradients of products of matrices."""
from __future__ import annotations

from irtool.ops.kernels.matmul import table
from irtool.ops.tensor import Tensor, torch

table.derivative("mm", lambda grad, self, mat2: (grad.mm(mat2.t()), self.t().mm(grad)))
table.derivative("bmm", lambda grad, self, mat2: (grad.bmm(mat2.transpose(1, 2)), self.transpose(1, 2).bmm(grad)))
table.derivative("mv", lambda grad, self, vec: (torch.outer(grad, vec), self.t().mv(grad)))
table.derivative("dot", lambda grad, self, tensor: (grad * tensor, grad * self))
table.derivative("vdot", lambda grad, self, other: ((grad * other).conj(), grad * self.conj()))
table.derivative("outer ger", lambda grad, self, vec2: (grad.mv(vec2.to(grad.dtype)), grad.t().mv(self.to(grad.dtype))))


@table.derivative("inner")
def inner_gradient(grad, self, other, self_size, other_size):
    if len(self_size) == 0 or len(other_size) == 0:
        self_grad, other_grad = (grad * other).sum_to_size(self_size), (grad * self).sum_to_size(other_size)
    else:
        left = self.unsqueeze(0).flatten(0, -2)     # a vector is a row
        right = other.unsqueeze(0).flatten(0, -2)
        flat = grad.reshape([left.size(0), right.size(0)])
        self_grad, other_grad = flat.mm(right).reshape(self_size), flat.t().mm(left).reshape(other_size)
    return self_grad, other_grad


@table.derivative("matmul linalg_matmul")
def matmul_gradient(grad, self, other, self_size, other_size):
    left, right, spread = self, other, grad
    if len(self_size) == 1:
        left, spread = left.unsqueeze(0), spread.unsqueeze(-1 if len(other_size) == 1 else -2)
    if len(other_size) == 1:
        right, spread = right.unsqueeze(-1), spread.unsqueeze(-1)
    self_grad = torch.matmul(spread, right.transpose(-2, -1)).sum_to_size(left.size())
    if len(self_size) > 2 and len(other_size) == 2:     # one product of many rows, as forwards
        other_grad = left.flatten(0, -2).t().mm(spread.flatten(0, -2))
    else:
        other_grad = torch.matmul(left.transpose(-2, -1), spread).sum_to_size(right.size())
    return self_grad.reshape(self_size), other_grad.reshape(other_size)


@table.gradient("linear")
def linear_gradient(input: Tensor, weight: Tensor, bias: Tensor | None):
    bias_size = bias.size() if bias is not None else None

    def backward(grad: Tensor):
        matrix, whole = weight.unsqueeze(0).flatten(0, -2), input.unsqueeze(0).flatten(0, -2)       # a vector is a row
        flat = grad.reshape([whole.size(0), matrix.size(0)])
        input_grad = flat.mm(matrix).reshape(input.size())
        weight_grad = flat.t().mm(whole).reshape_as(weight)
        bias_grad = grad.sum_to_size(bias_size) if bias_size is not None else None
        return input_grad, weight_grad, bias_grad

    return torch.linear(input, weight, bias), backward


@table.derivative("addmm")
def addmm_gradient(grad, mat1, mat2, beta, alpha, self_size):
    scaled = grad * alpha
    return (grad * beta).sum_to_size(self_size), scaled.mm(mat2.t()), mat1.t().mm(scaled)


@table.derivative("_addmm_activation")
def addmm_activation_gradient(grad, self, mat1, mat2, beta, alpha, use_gelu, self_size):
    inside = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    passed = torch.gelu_backward(grad, inside) if use_gelu else torch.threshold_backward(grad, inside, 0)
    scaled = passed * alpha
    return (passed * beta).sum_to_size(self_size), scaled.mm(mat2.t()), mat1.t().mm(scaled)


@table.derivative("addmv")
def addmv_gradient(grad, mat, vec, beta, alpha, self_size):
    scaled = grad * alpha
    return (grad * beta).sum_to_size(self_size), torch.outer(scaled, vec), mat.t().mv(scaled)


@table.derivative("addr")
def addr_gradient(grad, vec1, vec2, beta, alpha, self_size):
    scaled = grad * alpha
    return (grad * beta).sum_to_size(self_size), scaled.mv(vec2), scaled.t().mv(vec1)


@table.derivative("baddbmm")
def baddbmm_gradient(grad, batch1, batch2, beta, alpha, self_size):
    scaled = grad * alpha
    return (grad * beta).sum_to_size(self_size), scaled.bmm(batch2.transpose(1, 2)), batch1.transpose(1, 2).bmm(scaled)


@table.derivative("addbmm")
def addbmm_gradient(grad, batch1, batch2, beta, alpha, self_size):
    scaled = (grad * alpha).unsqueeze(0).expand([batch1.size(0), grad.size(0), grad.size(1)])
    return (grad * beta).sum_to_size(self_size), scaled.bmm(batch2.transpose(1, 2)), batch1.transpose(1, 2).bmm(scaled)


@table.derivative("tensordot")
def tensordot_gradient(grad, self, other, dims_self, dims_other, self_size, other_size):
    mine = [dim % len(self_size) for dim in dims_self]
    theirs = [dim % len(other_size) for dim in dims_other]
    summed, other_summed = self, other
    for place in range(len(mine)):      # a dimension of size 1 is compatible with any: the other side is summed
        if self_size[mine[place]] != other_size[theirs[place]]:
            if self_size[mine[place]] == 1:
                other_summed = other_summed.sum([theirs[place]], True)
            else:
                summed = summed.sum([mine[place]], True)
    others: list[int] = []
    rest: list[int] = []
    for dim in range(len(self_size)):
        if dim not in mine:
            others.append(dim)
    for dim in range(len(other_size)):
        if dim not in theirs:
            rest.append(dim)
    left = summed.permute(others + mine)
    right = other_summed.permute(theirs + rest)
    rows, inner, columns = 1, 1, 1
    for dim in others:
        rows = rows * self_size[dim]
    for dim in mine:
        inner = inner * summed.size(dim)
    for dim in rest:
        columns = columns * other_size[dim]
    flat, matrix, other_matrix = grad.reshape([rows, columns]), left.reshape([rows, inner]), right.reshape([inner, columns])
    self_grad, other_grad = flat.mm(other_matrix.t()).reshape(left.size()), matrix.t().mm(flat).reshape(right.size())
    back = [0 for dim in self_size]
    for place, dim in enumerate(others + mine):
        back[dim] = place
    other_back = [0 for dim in other_size]
    for place, dim in enumerate(theirs + rest):
        other_back[dim] = place
    return self_grad.permute(back).expand(self_size), other_grad.permute(other_back).expand(other_size)


def result_term(plain: str) -> str:
    """The result's letters for an einsum equation without spaces; without an arrow, the letters that occur once, in order."""
    if plain.find("->") >= 0:
        return plain.split("->")[1]
    term = "..." if plain.find("...") >= 0 else ""
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz":
        if plain.count(letter) == 1:
            term = term + letter
    return term


def widened(part: Tensor, target: list[int], size: list[int], front: int) -> Tensor:
    """A gradient summed to `target` and repeated to `size`; dimensions of dots that no other term has are inserted at `front`."""
    for _missing in range(len(size) - part.dim()):
        part = part.unsqueeze(front)
    for dim in range(len(size)):
        if part.size(dim - len(size)) == 1:
            target[dim] = 1
    return part.sum_to_size(target).expand(size)


@table.gradient("einsum")
def einsum_gradient(equation: str, tensors: list[Tensor], path: list[int] | None):
    def backward(grad: Tensor):
        plain = equation.replace(" ", "")
        result = result_term(plain)
        terms = plain.split("->")[0].split(",")
        for_tensors: list[Tensor] = []
        for place in range(len(terms)):
            term = terms[place]
            names = result
            operands = [grad]
            for other in range(len(terms)):
                if other != place:
                    names = names + "," + terms[other]
                    operands.append(tensors[other])
            letters = ""
            for letter in term:
                if names.find(letter) >= 0 and (letter == "." or letters.find(letter) < 0):
                    letters = letters + letter
            part = torch.einsum(names + "->" + letters, operands)
            size = tensors[place].size()
            inner = len(size) - len(term.replace(".", ""))       # dimensions behind the dots
            target = tensors[place].size()
            at = 0
            dots = 0
            front = 0
            seen = ""
            mask: Tensor | None = None
            for letter in term:
                if letter == ".":
                    dots = dots + 1
                    if dots == 3:
                        front = at
                        at = at + inner
                else:
                    first = seen.find(letter)
                    if letters.find(letter) < 0 or first >= 0:
                        target[at] = 1
                        part = part.unsqueeze(at if dots == 0 else at - len(size))
                    if first >= 0:      # a diagonal: zeros beside it
                        shape = [1 for length in size]
                        shape[first], shape[at] = size[at], size[at]
                        diagonal = torch.eye(size[at], dtype=grad.dtype, device=grad.device).reshape(shape)
                        mask = diagonal if mask is None else mask * diagonal
                    at = at + 1
                seen = seen + letter
                if dots == 3 and letter == ".":
                    seen = seen.replace(".", "")
                    for _length in range(inner):
                        seen = seen + "."
            whole = widened(part, target, size, front)
            if mask is not None:
                whole = whole * mask
            for_tensors.append(whole)
        return None, for_tensors, None

    return torch.einsum(equation, tensors, path=path), backward


@table.derivative("bilinear")
def bilinear_gradient(grad, input1, input2, weight, input1_size, input2_size, weight_size, bias_present):
    has_bias = bias_present
    outputs, rows, columns = weight_size[0], weight_size[1], weight_size[2]
    flat = grad.unsqueeze(0).flatten(0, -2)
    left, right = input1.unsqueeze(0).flatten(0, -2), input2.unsqueeze(0).flatten(0, -2)
    mixed = flat.mm(weight.reshape([outputs, rows * columns])).reshape([flat.size(0), rows, columns])
    grad1 = mixed.bmm(right.unsqueeze(2)).reshape(input1_size)
    grad2 = left.unsqueeze(1).bmm(mixed).reshape(input2_size)
    pairs = (left.unsqueeze(2) * right.unsqueeze(1)).flatten(1)
    weight_grad = flat.t().mm(pairs).reshape(weight_size)
    bias_grad: Tensor | None = None
    if has_bias:
        bias_grad = flat.sum([0])
    return grad1, grad2, weight_grad, bias_grad


@table.derivative("kron")
def kron_gradient(grad, self, other, self_size, other_size):
    rank = max(len(self_size), len(other_size))
    coarse = [1 for place in range(rank - len(self_size))] + self_size
    fine = [1 for place in range(rank - len(other_size))] + other_size
    spread: list[int] = []
    left: list[int] = []
    right: list[int] = []
    for place in range(rank):
        spread = spread + [coarse[place], fine[place]]
        left = left + [coarse[place], 1]
        right = right + [1, fine[place]]
    parts = grad.reshape(spread)
    self_grad = (parts * other.reshape(right)).sum_to_size(left).reshape(self_size)
    return self_grad, (parts * self.reshape(left)).sum_to_size(right).reshape(other_size)
