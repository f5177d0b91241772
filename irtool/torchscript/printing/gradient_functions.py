"""Functions that torch's gradient graphs call by name, and whose bodies stand in no text, as TorchScript.

What `irtool decompile` prints must be whole, so a graph that calls `AD_permute_backward` gets this source in front of it.
`irtool.ops.autodiff_functions` has the same functions on arrays.
"""
from __future__ import annotations

FUNCTIONS: dict[str, str] = {}
"""Name -> source."""
USES: dict[str, tuple[str, ...]] = {
    "AD_sum_backward": ("AD_unsqueeze_multiple",), "AD_logsumexp_backward": ("AD_unsqueeze_multiple",),
    "AD_var_backward_1": ("AD_unsqueeze_multiple", "AD_safe_size", "AD_var_backward_0"),
    "AD_var_backward_2": ("AD_unsqueeze_multiple", "AD_safe_size", "AD_var_backward_0", "AD_var_backward_1"),
    "AD_bmm_backward_self": ("AD_mat_transpose",), "AD_bmm_backward_mat2": ("AD_mat_transpose",),
    "AD_matmul_bw_special_fold": ("AD_mat_transpose",), "AD_matmul_bw_size": ("AD_mat_transpose", "AD_matmul_bw_special_fold"),
    "AD_adaptive_avg_pool1d_backward": ("AD_adaptive_avg_pool2d_backward",),
}
"""Which others a function calls, in the order in which they must stand in front of it."""

_SOURCE = '''
def AD_unsqueeze_multiple(t: Tensor, dims: List[int], n_dims: int) -> Tensor:
  seen = [False for i in range(n_dims)]
  for dim in dims:
    seen[dim % n_dims] = True
  for d in range(n_dims):
    if seen[d]:
      t = t.unsqueeze(d)
  return t

def AD_sum_backward(grad: Tensor, sizes: List[int], dims: Optional[List[int]], keepdim: bool) -> Tensor:
  if not keepdim and len(sizes) > 0 and dims is not None:
    grad = AD_unsqueeze_multiple(grad, dims, len(sizes))
  return grad.expand(sizes)

def AD_logsumexp_backward(grad: Tensor, self: Tensor, result: Tensor, dim: List[int], keepdim: bool) -> Tensor:
  if not keepdim and self.dim() != 0:
    n_dims = len(self.size())
    grad = AD_unsqueeze_multiple(grad, dim, n_dims)
    result = AD_unsqueeze_multiple(result, dim, n_dims)
  return grad * (self - result).exp()

def AD_bool_to_int(b: bool) -> int:
  return int(b)

def AD_var_backward_0(grad: Tensor, self: Tensor, correction: number) -> Tensor:
  return grad * (self - self.mean()) * 2.0 / (self.numel() - correction)

def AD_safe_size(sizes: List[int], dims: Optional[List[int]]) -> int:
  size = 1
  if len(sizes) != 0:
    if dims is None:
      for s in sizes:
        size *= s
    else:
      for d in dims:
        size *= sizes[d]
  return size

def AD_var_backward_1(grad: Tensor, self: Tensor, dim: List[int], correction: number, keepdim: bool) -> Tensor:
  if self.dim() == 0:
    return AD_var_backward_0(grad, self, correction)
  if not keepdim and self.dim() > 1:
    grad = AD_unsqueeze_multiple(grad, dim, len(self.size()))
  return grad * (self - self.mean(dim, True)) * 2.0 / (AD_safe_size(self.size(), dim) - correction)

def AD_var_backward_2(grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[number], keepdim: bool) -> Tensor:
  if correction is None:
    correction = 1
  if self.dim() == 0 or dim is None:
    return AD_var_backward_0(grad, self, correction)
  return AD_var_backward_1(grad, self, dim, correction, keepdim)

def AD_index_select_backward(grad: Tensor, dim: int, indices: Tensor, sizes: List[int], keepdim: bool) -> Tensor:
  if not keepdim and len(sizes) > 0:
    grad = grad.unsqueeze(dim)
    indices = indices.unsqueeze(dim)
  return torch.zeros(sizes, dtype=grad.dtype, layout=grad.layout, device=grad.device).scatter(dim, indices, grad)

def AD_permute_backward(grad: Tensor, fwd_dims: List[int]) -> Tensor:
  dims = [0 for i in range(len(fwd_dims))]
  for i in range(len(fwd_dims)):
    dims[fwd_dims[i]] = i
  return grad.permute(dims)

def AD_mm_backward_self(grad: Tensor, mat2: Tensor) -> Tensor:
  return grad.mm(mat2.t())

def AD_mm_backward_mat2(grad: Tensor, self: Tensor) -> Tensor:
  return self.t().mm(grad)

def AD_mat_transpose(mat: Tensor) -> Tensor:
  if mat.dim() < 2:
    return mat
  return mat.transpose(-2, -1)

def AD_bmm_backward_self(grad: Tensor, mat2: Tensor) -> Tensor:
  return grad.bmm(AD_mat_transpose(mat2))

def AD_bmm_backward_mat2(grad: Tensor, self: Tensor) -> Tensor:
  return AD_mat_transpose(self).bmm(grad)

def AD_select_backward(grad: Tensor, input_sizes: List[int], dim: int, index: int) -> Tensor:
  result = torch.zeros(input_sizes, dtype=grad.dtype, layout=grad.layout, device=grad.device)
  result.select(dim, index).copy_(grad)
  return result

def AD_slice_backward(grad: Tensor, input_sizes: List[int], dim: int, start: int, end: int, step: int) -> Tensor:
  result = torch.zeros(input_sizes, dtype=grad.dtype, layout=grad.layout, device=grad.device)
  result.slice(dim, start, end, step).copy_(grad)
  return result

def AD_unsqueeze_to_0(self: Tensor, sizes: List[int]) -> Tensor:
  for i in range(len(sizes)):
    if sizes[i] == 1:
      self = self.unsqueeze(i)
  return self

def AD_unsqueeze_to_1(self: Tensor, dim: int, sizes: List[int]) -> Tensor:
  if len(sizes) > 0 and sizes[dim] == 1:
    return self.unsqueeze(dim)
  return self

def AD_infer_size(a: List[int], b: List[int]) -> List[int]:
  return torch._infer_size(a, b)

def AD_matmul_bw_special_fold(mat1: Tensor, mat2: Tensor) -> Tensor:
  turned = AD_mat_transpose(mat1)
  folded = turned.reshape([-1, turned.size(-1)])
  return folded.t().mm(mat2.reshape([-1, mat2.size(-1)]))

def AD_matmul_bw_size(mat1: Tensor, mat2: Tensor, out_size: List[int]) -> Tensor:
  dim1, dim2, dim_out = mat1.dim(), mat2.dim(), len(out_size)
  if dim1 == 0 or dim2 == 0:
    out = mat1 * mat2
  elif dim_out == 2 and dim1 == dim2 and dim1 >= 3:
    out = AD_matmul_bw_special_fold(mat1, mat2)
  elif dim_out == 1 and dim1 - dim2 == 1 and dim1 >= 3:
    out = AD_matmul_bw_special_fold(mat1, mat2.unsqueeze(-1)).squeeze(-1)
  elif dim1 + dim2 == dim_out:
    if dim2 == 1:
      target = 0
    else:
      target = -2
    out = torch.matmul(mat1.unsqueeze(dim1), mat2.unsqueeze(target))
  elif dim_out == dim1 - dim2:
    out = torch.matmul(mat1, mat2.unsqueeze(dim2)).squeeze(-1)
  elif dim_out == dim2 - dim1:
    out = torch.matmul(mat1.unsqueeze(-2), mat2).squeeze(-2)
  else:
    out = torch.matmul(mat1, mat2)
  return out

def AD_adaptive_avg_pool2d_backward(grad: Tensor, self: Tensor, output_size: List[int]) -> Tensor:
  if output_size[0] == 1 and output_size[1] == 1:
    return grad.expand(self.size()) / (self.size(-1) * self.size(-2))
  return torch._adaptive_avg_pool2d_backward(grad, self)

def AD_adaptive_avg_pool3d_backward(grad: Tensor, self: Tensor, output_size: List[int]) -> Tensor:
  if output_size[0] == 1 and output_size[1] == 1 and output_size[2] == 1:
    return grad.expand(self.size()) / (self.size(-1) * self.size(-2) * self.size(-3))
  return torch._adaptive_avg_pool3d_backward(grad, self)

def AD_adaptive_avg_pool1d_backward(grad: Tensor, input: Tensor, output_size: List[int]) -> Tensor:
  lifted = AD_adaptive_avg_pool2d_backward(grad.unsqueeze(2), input.unsqueeze(2), [1, output_size[0]])
  return lifted.squeeze(2)
'''


def _sizes_if_not_equal(name: str) -> str:
    return f'''def {name}(t1: Tensor, t2: Tensor, result: Tensor) -> Tuple[Optional[List[int]], Optional[List[int]]]:
  return (torch._size_if_not_equal(t1.size(), result.size()), torch._size_if_not_equal(t2.size(), result.size()))
'''


def function_source(name: str) -> str | None:
    """The source of a function, if torch's gradients have one of this name."""
    if not FUNCTIONS:
        for part in _SOURCE.strip().split("\n\n"):
            FUNCTIONS[part[4:part.index("(")]] = part + "\n"
        for each in ("AD_sizes_if_not_equal_multi_0", "AD_sizes_if_not_equal_multi_1"):
            FUNCTIONS[each] = _sizes_if_not_equal(each)
    return FUNCTIONS.get(name)
