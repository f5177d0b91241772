"""What a kind does besides computing its results: side effects, chance, writes, views.

Facts per kind come from the schemas' alias annotations and from the tables below (torch's `Node::hasSideEffects`,
`Node::isNondeterministic` and `AliasDb::analyzeImpl`), cached in one dict. Kinds nobody declares are taken at their worst, except
in texts of 2017 and in ONNX, where everything is a function of its operands.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.ir.constants import known_argument
from irtool.ir.graph import Graph
from irtool.ir.schema import AliasInfo, Schema, forgets_kinds, qualified, schema_of, schemas
from irtool.ir.structure_kinds import GIVE_CHANGED_LIST
from irtool.ir.types import TensorType

if TYPE_CHECKING:
    from irtool.ir.graph import Node

FRESH, DECLARED, SPECIAL, UNKNOWN = range(4)
"""The relation of results to operands: in new memory; as the schema's annotations say; by a rule in `alias.py`; unknown."""

IF_KINDS = frozenset(("prim::If", "If"))
LOOP_KINDS = frozenset(("prim::Loop", "Loop"))
CHOICE_KINDS = IF_KINDS | {"prim::GradOf"}
"""Kinds that run one block, or another, or (a `GradOf` without a gradient) none."""
MUTATORS = frozenset(("aten::append", "aten::_set_item", "aten::extend", "aten::add_", "aten::insert", "aten::pop", "aten::clear",
                      "aten::Delete", "aten::reverse", "aten::sort", "aten::remove", "aten::mul_", "aten::update", "aten::setdefault",
                      "aten::popitem"))
"""Kinds that change the list, the dict or the tensor that is their first operand."""

SIDE_EFFECTS = frozenset("""
prim::PythonOp prim::IgnoredPythonOp prim::Print prim::RaiseException prim::SetAttr prim::AddStatValue prim::TimePoint
prim::CallFunction prim::CallMethod prim::BailoutTemplate prim::BailOut prim::rpc_async prim::rpc_sync prim::rpc_remote
prim::Enter prim::Exit prim::fork prim::awaitable prim::profile prim::profile_ivalue prim::StaticRuntimeCopyOuts
prim::Load prim::Store prim::BreakStmt prim::ContinueStmt prim::ReturnStmt
aten::warn aten::save aten::manual_seed aten::_assert_async aten::_functional_assert_async aten::wait aten::_print
aten::is_grad_enabled aten::set_grad_enabled
""".split())
"""Kinds that must not be deleted, merged or moved even when nobody reads their results."""

RANDOM = frozenset(f"aten::{name}" for name in """
_cudnn_init_dropout_state _cudnn_rnn _efficient_attention_forward _flash_attention_forward _fused_dropout _lstm_mps
_sample_dirichlet _scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
_standard_gamma alpha_dropout alpha_dropout_ bernoulli bernoulli_ binomial cauchy cauchy_ dropout dropout_ exponential
exponential_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ geometric geometric_ gru log_normal
log_normal_ lstm miopen_rnn multinomial native_dropout normal normal_ normal_functional poisson rand rand_like randint
randint_like randn randn_like random random_ randperm rnn_relu rnn_tanh rrelu rrelu_ rrelu_with_noise rrelu_with_noise_
rrelu_with_noise_functional scaled_dot_product_attention uniform uniform_
""".split())
"""Kinds that draw random numbers (torch's tag `nondeterministic_seeded`): two of them with equal operands differ."""

OWN_SIDE_EFFECTS: set[str] = set()
OWN_RANDOM: set[str] = set()
"""SIDE_EFFECTS and RANDOM for operators that users add."""

_FRESH_PRIMS = frozenset("""
prim::Constant prim::None prim::Undefined prim::AutogradZero prim::AutogradAdd prim::AnyDefined prim::AutogradAnyNonZero
prim::AutogradAllNonZero prim::AutogradAllZero prim::FusedConcat prim::MMTreeReduce prim::MMBatchSide prim::BroadcastSizes
prim::ChunkSizes prim::ReductionSizes prim::Closure prim::Function prim::CreateObject prim::Print prim::RaiseException
prim::Uninitialized prim::TensorToNum prim::TensorToBool prim::NumToTensor prim::ImplicitTensorToNum prim::Int prim::Float
prim::Bool prim::isinstance prim::TupleLen prim::ListLen prim::StringIndex prim::FormatStr prim::LoadWorld prim::StoreWorld
prim::DummyWorld prim::OneDNNFusionGuard prim::oneDNNFusionGuard prim::TensorExprDynamicGuard prim::range prim::rangelist
prim::device prim::dtype prim::shape prim::itemsize prim::AddStatValue prim::TimePoint prim::VarConcat prim::VarStack
prim::BailoutTemplate prim::SumToSize prim::Load prim::Store prim::hasattr prim::id prim::Reverse prim::layout
""".split())

GROUP_KINDS = frozenset(f"prim::{name}" for name in (
    "DifferentiableGraph", "FusionGroup", "CudaFusionGroup", "TensorExprGroup", "TensorExprDynamicGroup", "oneDNNFusionGroup",
    "FunctionalGraph", "FallbackGraph", "GraphExecutor", "StaticSubgraph"))
"""Kinds that run the graph they own, and nothing else."""

SPECIAL_PRIMS = GROUP_KINDS | frozenset("""
prim::If prim::Loop prim::GradOf prim::ListConstruct prim::TupleConstruct prim::DictConstruct prim::TupleUnpack
prim::TupleIndex prim::TupleSlice prim::ListUnpack prim::GetAttr prim::SetAttr prim::unchecked_cast
prim::ConstantChunk prim::profile prim::profile_ivalue prim::TypeCheck prim::RequiresGradCheck prim::BailOut prim::Guard
prim::tolist prim::ReplaceIfUndef prim::BroadcastMKLDNNTensors prim::IfThenElse prim::fork aten::wait prim::awaitable
prim::awaitable_wait prim::awaitable_nowait prim::NamedTupleConstruct prim::CallFunction prim::CallMethod prim::PythonOp
prim::IgnoredPythonOp prim::Enter prim::Exit
irtool::custom_vjp
""".split())
"""Kinds with a rule of their own in `alias.py`."""

TABLED = SPECIAL_PRIMS | _FRESH_PRIMS | SIDE_EFFECTS | {"prim::Param", "prim::Return"}
"""Kinds that the tables here name, declared or not."""

_WRITING_PRIMS = frozenset("""
prim::SetAttr prim::CallFunction prim::CallMethod prim::PythonOp prim::Enter prim::Exit prim::IgnoredPythonOp aten::wait
""".split())

STATISTICS = {"aten::batch_norm": "training", "aten::instance_norm": "use_input_stats", "aten::native_batch_norm": "training",
              "aten::_batch_norm_impl_index": "training"}
"""Kinds that write running_mean and running_var though their schemas do not say so -> the argument that switches this on."""


RESHAPES = frozenset(f"aten::{name}" for name in "as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_".split())
"""In-place kinds that give their operand new sizes and strides: those of the view that the kind without `_` returns."""

UNDECLARED = frozenset(f"aten::{name}" for name in """
type_as dropout feature_dropout alpha_dropout feature_alpha_dropout atleast_1d atleast_2d atleast_3d sum_to_size _grad_sum_to_size data
unsafe_chunk unsafe_split unsafe_split_with_sizes unflatten_dense_tensors conj_physical lift to_dense _unsafe_view _reshape_from_tensor
dequantize _cast_Byte _cast_Char _cast_Short _cast_Int _cast_Long _cast_Half _cast_Float _cast_Double
""".split())
"""Kinds that may return an operand, or a view of it, though their schemas do not say so."""
OF_ONE = frozenset(f"aten::{name}" for name in "cartesian_prod einsum flatten_dense_tensors".split())
"""Kinds that may return a view of a list's only tensor, though their schemas do not say so."""
OF_EACH = frozenset(f"aten::{name}" for name in "broadcast_tensors meshgrid".split())
"""Kinds that return a list of views of the tensors in a list, though their schemas do not say so."""
OPERAND_ITSELF = frozenset(f"aten::{name}" for name in """
to cpu contiguous type_as dropout feature_dropout alpha_dropout feature_alpha_dropout atleast_1d atleast_2d atleast_3d flatten sum_to_size
real conj conj_physical resolve_conj resolve_neg positive lift lift_fresh to_dense mT mH adjoint matrix_H
_autocast_to_full_precision _autocast_to_reduced_precision as_tensor
_cast_Byte _cast_Char _cast_Short _cast_Int _cast_Long _cast_Half _cast_Float _cast_Double
""".split())
"""Kinds that return the first operand itself, not a view of it, if there is nothing to do: a new shape of one is then one of the other."""
OF_THE_FIRST = frozenset(f"aten::{name}" for name in "expand_as view_as reshape_as resize_as resize_as_ type_as to".split())
"""Kinds that read only sizes and dtypes of their other tensors: gradients reach results through the first operand alone."""
ITEMS_THEMSELVES = frozenset(f"aten::{name}" for name in "broadcast_tensors atleast_1d atleast_2d atleast_3d".split())
"""Kinds that do the same for each tensor in a list."""
ONE_BY_ONE = ITEMS_THEMSELVES | {"aten::meshgrid"}
"""Kinds whose results, of a list of tensors, have each the gradient of one of them alone."""


class KindFacts:
    """Facts about a kind that hold for all its overloads, so that no node's overload need be chosen."""

    __slots__ = ("side_effects", "is_random", "may_write", "may_not_write", "category", "out_arities", "is_plain")

    def __init__(self, side_effects: bool, is_random: bool, may_write: bool, category: int,
                 out_arities: frozenset[int] = frozenset(), may_not_write: bool = False) -> None:
        self.side_effects = side_effects
        self.is_random = is_random
        self.may_write = may_write
        """Overloads with `out=` do not count: see `out_arities`."""
        self.may_not_write = may_not_write
        """Do some overloads not write, although others do? `sort` of a list writes, `sort` of a tensor does not."""
        self.category = category
        self.out_arities = out_arities
        """Numbers of arguments with which a node may be an `out=` overload, which writes into an operand and returns it."""
        self.is_plain = category == FRESH and not (side_effects or is_random or may_write)
        """Does a node only compute the same results each time, in new memory? (unless it is an `out=` overload)"""


_facts: dict[str, KindFacts] = forgets_kinds({})


def facts_of(kind: str) -> KindFacts:
    """The facts of a kind, cached."""
    facts = _facts.get(kind)
    if facts is None:
        if len(_facts) > 20_000:
            _facts.clear()
        facts = _facts[kind] = _find_facts(kind)
    return facts


def _find_facts(kind: str) -> KindFacts:
    if kind.startswith("^") and not schemas(kind):
        return KindFacts(True, False, True, UNKNOWN)
    if "::" not in kind and ("prim::" + kind in SPECIAL_PRIMS or "prim::" + kind in _FRESH_PRIMS):
        return facts_of("prim::" + kind)
    full = qualified(kind)
    effects, random = kind in SIDE_EFFECTS or kind in OWN_SIDE_EFFECTS, full in RANDOM or kind in OWN_RANDOM
    if kind in SPECIAL_PRIMS:
        return KindFacts(effects, random, kind in _WRITING_PRIMS, SPECIAL)
    if kind in _FRESH_PRIMS:
        return KindFacts(effects, random, False, FRESH)
    declared = schemas(full)
    if declared:
        plain = [schema for schema in declared if not _has_out(schema)]
        out_arities = frozenset(len(schema.arguments) for schema in declared if _has_out(schema))
        writes = full in STATISTICS or any(schema.is_mutable for schema in plain)
        aliases = any(a.alias is not None for schema in plain for a in (*schema.arguments, *schema.returns))
        is_declared = aliases or full in STATISTICS or full in UNDECLARED | OF_ONE or any(schema.is_varret for schema in plain)
        if plain and not any(schema.returns or schema.is_varret or schema.is_mutable for schema in plain):
            effects = True      # a kind without results that writes nothing: an assertion, a setting
        category = DECLARED if is_declared else FRESH
        return KindFacts(effects, random, writes, category, out_arities, not all(schema.is_mutable for schema in plain))
    space = full.partition("::")[0]
    if space in ("onnx", "caffe2") or "::" not in kind and not kind.endswith(("_", "!")):
        return KindFacts(effects, random, False, FRESH)
    if space == "aten":         # an operator of an older or newer torch
        return KindFacts(effects, random, kind.endswith(("_", "!")), UNKNOWN)
    return KindFacts(True, random, True, UNKNOWN)


def _has_out(schema: Schema) -> bool:
    return any(a.keyword_only and a.alias is not None and a.alias.is_write for a in schema.arguments)


def category_of(node: Node) -> int:
    """The relation of a node's results to its operands; "as declared" for a node that may be an `out=` overload."""
    facts = facts_of(node.kind)
    if facts.out_arities and len(node.inputs) + len(node.attributes) in facts.out_arities:
        return DECLARED
    return facts.category


def node_may_write(node: Node) -> bool:
    """May the node itself write into memory that existed before?"""
    facts = facts_of(node.kind)
    if facts.may_write:
        if qualified(node.kind) in STATISTICS:
            return updates_statistics(node)
        schema = schema_of(node) if facts.may_not_write else None
        return schema is None or schema.is_mutable
    if facts.out_arities and len(node.inputs) + len(node.attributes) in facts.out_arities:
        schema = schema_of(node)
        return schema is None or schema.is_mutable
    return False


def operands_written(node: Node) -> list[int]:
    """Positions of the operands that a node writes into, by its schema; all operands if it has no schema."""
    schema = schema_of(node)
    if schema is None:
        return list(range(len(node.inputs)))
    names = ("running_mean", "running_var") if qualified(node.kind) in STATISTICS else ()
    return [place for place, argument in enumerate(schema.arguments[:len(node.inputs)])
            if argument.name in names or argument.alias is not None and argument.alias.is_write]


def group_may_write(node: Node) -> bool:
    """May a node in the inner graph of a group write into memory that existed before?"""
    subgraph = node.attributes.get("Subgraph")
    return subgraph is not None and isinstance(subgraph.value, Graph) and any(
        node_may_write(inner) or group_may_write(inner) for inner in subgraph.value.walk())


def may_write_or_is_python(node: Node) -> bool:
    """May the node itself write into memory that existed before, if a Python operator may, whatever is declared of it?"""
    return node_may_write(node) or node.kind[:1] == "^"


def changes_list(node: Node) -> bool:
    """Does a node change a list or a dict, and no tensor?"""
    return node.kind in MUTATORS and bool(node.inputs) and not isinstance(node.inputs[0].type, TensorType)


def updates_statistics(node: Node) -> bool:
    """Does a normalization write into its running statistics? Not if a constant argument says that it does not train (torch's
    analyzeBatchNorm)."""
    flag = STATISTICS.get(qualified(node.kind))
    return flag is not None and _may_be_set(node, flag)


def _may_be_set(node: Node, flag: str) -> bool:
    """Is the argument called `flag` anything but a constant False or 0?"""
    value = known_argument(node, flag)
    return value is not False and value != 0


def has_side_effects(node: Node) -> bool:
    """Does the node, or one in its blocks or its subgraph, do something besides computing results and writing into operands?"""
    if facts_of(node.kind).side_effects:
        return True
    subgraph = node.attributes.get("Subgraph")
    if subgraph is not None and isinstance(subgraph.value, Graph) and any(map(has_side_effects, subgraph.value.block)):
        return True
    return any(has_side_effects(inner) for block in node.blocks for inner in block)


def is_random(node: Node) -> bool:
    """Does the node draw random numbers? Not a dropout or recurrent layer whose argument says that it does not train."""
    if not facts_of(node.kind).is_random:
        return False
    schema = schema_of(node)
    for name in ("train", "training"):
        if schema is not None and name in schema.positions:
            return _may_be_set(node, name)
    return True


def draws(node: Node) -> bool:
    """Does the node, or one in its subgraph, draw random numbers? Later draws of a run depend on it, whoever reads its results."""
    if is_random(node):
        return True
    subgraph = node.attributes.get("Subgraph")
    return subgraph is not None and isinstance(subgraph.value, Graph) and any(map(draws, subgraph.value.walk()))


def may_write(node: Node) -> bool:
    """May the node, or one in its blocks, write into memory that existed before? Does not ask where the operands come from."""
    return node_may_write(node) or any(node_may_write(inner) for block in node.blocks for inner in block.walk())


def is_known_prim(kind: str) -> bool:
    """Is the kind a `prim::` one that the tables here or torch's declarations name?"""
    return kind in TABLED or bool(schemas(kind))


def result_alias(kind: str, schema: Schema, place: int) -> AliasInfo | None:
    """What is known about the memory that a result shares with operands: what the schema says, which for `+=` of lists says nothing."""
    if not schema.returns:
        return None
    # until mid-2018 one result `Tensor(a)[]` was written as several
    alias = schema.returns[min(place, len(schema.returns) - 1)].alias
    return schema.arguments[0].alias if alias is None and not place and kind in GIVE_CHANGED_LIST else alias
