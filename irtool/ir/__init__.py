"""The data: graphs, types, schemas, and what can be known and changed about them. Names load on first use (PEP 562).

Graphs
    graph               graphs, blocks, nodes, values, uses; module: graphs of a file; names: which value a name means
    builder, edits      new nodes; copies and inlining; replacing_walk: values replaced on the way; places: which node is first
    attribute           attributes; attribute_reader, attribute_speller: their text
    constants           constants; tensor_literal, tensor_dump: those of tensors; rounded: those whose text has few digits
    pair, packed        gradient pairs; defaults: of parameters; custom: functions with gradients of their own; graph_pickles: pickling
    numbering           equal nodes merged; awaitables: bodies where they are awaited
    verify              invariants; verify_nodes, verify_constants, verify_types, doubtful_types: of nodes and types
Types
    types, type_model   types; type_parser, type_spelling, short_types: their text; subtyping: relations; type_answers: tensors' facts
    dtypes, shapes      of tensors
Kinds of nodes
    schema              what torch declares of an operator; kinds: of kinds that nobody declares; scalars: of Python operators
    effects             side effects, chance, writes, views; structure_kinds: lists and tuples; python_operators: `+`, `-`, ...
    dialect             what each period spells differently
    handlers            functions by kind of node
And
    errors, source      errors and where they are; callers: in whose code; arguments: wrong arguments from Python; remarks: of passes
    extensions          users' passes and operators; displayed: notebooks; collector: Python's garbage collector
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.ir.attribute import Attribute, TensorLiteral
    from irtool.ir.builder import Builder
    from irtool.ir.constants import NOT_CONSTANT, constant, is_constant, is_none
    from irtool.ir.dialect import DIALECTS, Dialect
    from irtool.ir.edits import clone_graph, clone_node, inline_block, inline_graph
    from irtool.ir.effects import has_side_effects, is_random, may_write
    from irtool.ir.errors import Error, ParseError, PassError, PipelineError, RunError, UnsupportedError, VerifyError
    from irtool.ir.graph import Block, Graph, Node, Use, Value
    from irtool.ir.module import Module
    from irtool.ir.schema import Schema, node_argument, node_arguments, parse_schema, schema_of, schemas
    from irtool.ir.source import Diagnostic, SourceFile
    from irtool.ir.types import Type, parse_type
    from irtool.ir.verify import violations

_HOMES = {
    "attribute": "Attribute TensorLiteral",
    "builder": "Builder",
    "constants": "NOT_CONSTANT constant is_constant is_none",
    "dialect": "DIALECTS Dialect",
    "effects": "has_side_effects is_random may_write",
    "errors": "Error ParseError PassError PipelineError RunError UnsupportedError VerifyError",
    "graph": "Block Graph Node Use Value",
    "module": "Module",
    "edits": "clone_graph clone_node inline_block inline_graph",
    "schema": "Schema node_argument node_arguments parse_schema schema_of schemas",
    "source": "Diagnostic SourceFile",
    "types": "Type parse_type",
    "verify": "violations",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "DIALECTS", "NOT_CONSTANT", "Attribute", "Block", "Builder", "Diagnostic", "Dialect", "Error", "Graph", "Module",
    "Node", "ParseError", "PassError", "PipelineError", "RunError", "Schema", "SourceFile", "TensorLiteral", "Type",
    "UnsupportedError", "Use", "Value", "VerifyError", "clone_graph", "clone_node", "constant", "has_side_effects",
    "inline_block", "inline_graph", "is_constant", "is_none", "is_random", "may_write", "node_argument", "node_arguments",
    "parse_schema", "parse_type", "schema_of", "schemas", "violations",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'irtool.ir' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module("irtool.ir." + home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
