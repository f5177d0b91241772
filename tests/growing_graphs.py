"""Graphs of a shape and any size, in today's text: what a pass must take in time linear in their nodes."""
from __future__ import annotations

from collections.abc import Callable, Iterable

FLOAT = "Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)"
HEAD = f"graph(%x : {FLOAT}, %y : {FLOAT}, %c : bool, %k : int):\n  %one : int = prim::Constant[value=1]()\n" \
    "  %zero : int = prim::Constant[value=0]()\n  %true : bool = prim::Constant[value=1]()\n"


def graph(lines: Iterable[str], *results: str) -> str:
    """A graph of these lines."""
    return HEAD + "".join(f"  {line}\n" for line in lines) + f"  return ({', '.join('%' + result for result in results)})\n"


def joined(name: str, item: str, n: int) -> str:
    """A list of values of one name and a number."""
    return f"%{name} : Tensor[] = prim::ListConstruct(" + ", ".join(f"%{item}{i}" for i in range(n)) + ")"


def before(i: int, name: str = "", first: str = "x") -> str:
    """What the step before gave."""
    return f"%{name}{i - 1}" if i else f"%{first}"


def chain(n: int) -> str:
    """Repeated, dead and foldable nodes, one after the other; one value that every third reads."""
    lines = []
    for i in range(n // 6):
        last, count = before(i, "c"), before(i, "m", "k")
        lines += [f"%a{i} : Tensor = aten::mul({last}, %x)", f"%b{i} : Tensor = aten::mul({last}, %x)",
                  f"%c{i} : Tensor = aten::atan2(%a{i}, %b{i})", f"%d{i} : Tensor = aten::exp(%a{i})",
                  f"%k{i} : int = prim::Constant[value={i % 50}]()", f"%m{i} : int = aten::add({count}, %k{i})"]
    return graph(lines, f"c{n // 6 - 1}", f"m{n // 6 - 1}")


def fan_out(n: int) -> str:
    """One value with many readers, each the same expression."""
    same = [f"%e{i} : Tensor = aten::exp(%t)" for i in range(n - 2)]
    return graph(["%t : Tensor = aten::neg(%x)", *same, f"%s : Tensor = aten::mul(%e0, %e{n - 3})"], "s")


def long_list(n: int) -> str:
    """A list of many tensors."""
    items = [f"%e{i} : Tensor = aten::{('tanh(%x)', 'mul(%x, %y)')[i % 2]}" for i in range(n - 2)]
    return graph([*items, joined("l", "e", n - 2), "%s : Tensor = aten::cat(%l, %zero)"], "s")


def branches(n: int) -> str:
    """Branches that each make memory of their own."""
    lines = []
    for i in range(n // 3):
        lines += [f"%r{i} : Tensor = prim::If(%c)", "  block0():", f"    %a{i} : Tensor = aten::tanh({before(i, 'r')})", f"    -> (%a{i})",
                  "  block1():", f"    %b{i} : Tensor = aten::neg({before(i, 'r')})", f"    -> (%b{i})"]
    return graph(lines, f"r{n // 3 - 1}")


def branches_through(n: int) -> str:
    """Branches that make memory, or hand on what all before them may have given; a write at the end."""
    lines = []
    for i in range(n // 2):
        lines += [f"%r{i} : Tensor = prim::If(%c)", "  block0():", f"    %a{i} : Tensor = aten::mul({before(i, 'r')}, %y)",
                  f"    -> (%a{i})", "  block1():", f"    -> ({before(i, 'r')})"]
    return graph([*lines, f"%w : Tensor = aten::clone(%r{n // 2 - 1}, %zero)", "%v : Tensor = aten::relu_(%w)"], "v")


def nested_branches(n: int) -> str:
    """One branch in another, 12 nodes in each."""
    depth = max(1, n // 13)

    def block(level: int, last: str, pad: str) -> tuple[list[str], str]:
        lines = []
        for i in range(12):
            lines.append(f"{pad}%a{level}_{i} : Tensor = aten::mul({last}, %x)")
            last = f"%a{level}_{i}"
        if level < depth:
            inner, value = block(level + 1, last, pad + "    ")
            lines += [f"{pad}%r{level} : Tensor = prim::If(%c)", f"{pad}  block0():", *inner, f"{pad}    -> ({value})",
                      f"{pad}  block1():", f"{pad}    -> ({last})"]
            last = f"%r{level}"
        return lines, last
    lines, last = block(0, "%x", "")
    return graph(lines, last[1:])


def nested_writes(n: int) -> str:
    """One branch in another, each with a write into what the graph made."""
    depth, lines, closing = max(1, n // 3), ["%w : Tensor = aten::mul(%x, %y)"], []
    for i in range(depth):
        pad = "    " * i
        lines += [f"{pad}%s{i} : Tensor = aten::add_(%w, %y, %one)", f"{pad} = prim::If(%c)", f"{pad}  block0():",
                  f"{pad}    %t{i} : Tensor = aten::mul(%w, %x)"]
        closing = [f"{pad}    -> ()", f"{pad}  block1():", f"{pad}    -> ()", *closing]
    return graph([*lines, *closing], "w")


def loops(n: int) -> str:
    """Loops, one after the other."""
    lines = []
    for i in range(n // 2):
        lines += [f"%r{i} : Tensor = prim::Loop(%k, %true, {before(i, 'r')})", f"  block0(%i{i} : int, %c{i} : Tensor):",
                  f"    %a{i} : Tensor = aten::mul(%c{i}, %y)", f"    -> (%true, %a{i})"]
    return graph(lines, f"r{n // 2 - 1}")


def carried(n: int) -> str:
    """One loop that carries many tensors."""
    n //= 2
    results, rounds = ", ".join(f"%r{i} : Tensor" for i in range(n)), ", ".join(f"%c{i} : Tensor" for i in range(n))
    body = [f"    %a{i} : Tensor = aten::mul(%c{i}, %y)" for i in range(n)]
    return graph([f"{results} = prim::Loop(%k, %true, {', '.join(['%x'] * n)})", f"  block0(%i : int, {rounds}):", *body,
                  "    -> (%true, " + ", ".join(f"%a{i}" for i in range(n)) + ")", joined("l", "r", n),
                  "%s : Tensor = aten::cat(%l, %zero)"], "s")


def writes(n: int) -> str:
    """Writes into one tensor, and readers of it in between."""
    return graph(["%v : Tensor = aten::mul(%x, %y)",
                  *[f"%e{i} : Tensor = aten::{('add_(%v, %y, %one)', 'mul(%v, %y)')[i % 2]}" for i in range(n)]], "v")


def many_writes(n: int) -> str:
    """Many tensors, each written into through a view."""
    lines = []
    for i in range(n // 4):
        lines += [f"%b{i} : Tensor = aten::mul({before(i, 'b')}, %y)", f"%v{i} : Tensor = aten::select(%b{i}, %zero, %one)",
                  f"%w{i} : Tensor = aten::mul_(%v{i}, %one)"]
    return graph(lines, f"b{n // 4 - 1}")


def written_list(n: int) -> str:
    """Many tensors, each written into, all in one list."""
    lines = []
    for i in range(n // 2):
        lines += [f"%b{i} : Tensor = aten::mul(%x, %y)", f"%w{i} : Tensor = aten::add_(%b{i}, %y, %one)"]
    return graph([*lines, joined("l", "b", n // 2), "%s : Tensor = aten::cat(%l, %zero)"], "s")


def views(n: int) -> str:
    """A chain of views of one tensor, with writes."""
    lines = []
    for i in range(n):
        last = before(i, "e", "v")
        lines.append(f"%e{i} : Tensor = aten::" + (f"transpose({last}, %zero, %one)" if i % 7 else f"relu_({last})"))
    return graph(["%v : Tensor = aten::mul(%x, %y)", *lines], f"e{n - 1}")


def reshapes(n: int) -> str:
    """Many tensors whose shape is changed in place."""
    lines = []
    for i in range(n // 3):
        lines += [f"%b{i} : Tensor = aten::mul(%x, %y)", f"%t{i} : Tensor = aten::unsqueeze_(%b{i}, %zero)",
                  f"%n{i} : Tensor = aten::tanh(%b{i})"]
    return graph(lines, *(f"n{i}" for i in range(n // 3)))


def appends(n: int) -> str:
    """A list that grows."""
    lines = [f"%e{i} : " + ("Tensor = aten::tanh(%x)" if i % 2 == 0 else f"Tensor[] = aten::append(%l, %e{i - 1})") for i in range(n)]
    return graph(["%l : Tensor[] = prim::ListConstruct()", *lines, "%s : Tensor = aten::cat(%l, %zero)"], "s")


def tuples(n: int) -> str:
    """Tuples made and taken apart."""
    lines = []
    for i in range(n // 2):
        lines += [f"%t{i} : (Tensor, Tensor) = prim::TupleConstruct({before(i, 'a')}, %y)",
                  f"%a{i} : Tensor, %b{i} : Tensor = prim::TupleUnpack(%t{i})"]
    return graph(lines, f"a{n // 2 - 1}")


def products(n: int) -> str:
    """Products of the same matrices, summed."""
    lines = ["%m : Tensor = aten::t(%y)", "%s0 : Tensor = aten::mm(%x, %m)"]
    for i in range(n // 2):
        lines += [f"%p{i} : Tensor = aten::mm(%x, %m)", f"%s{i + 1} : Tensor = aten::add(%s{i}, %p{i}, %one)"]
    return graph(lines, f"s{n // 2}")


def dead(n: int) -> str:
    """Nothing of it is read."""
    return graph([f"%e{i} : Tensor = aten::tanh({before(i, 'e')})" for i in range(n)], "x")


def many_lists(n: int) -> str:
    """Many lists, each appended to and joined."""
    lines = []
    for i in range(n // 4):
        lines += [f"%l{i} : Tensor[] = prim::ListConstruct(%x, {before(i, 's')})", f"%a{i} : Tensor[] = aten::append(%l{i}, %y)",
                  f"%s{i} : Tensor = aten::cat(%l{i}, %zero)"]
    return graph(lines, f"s{n // 4 - 1}")


def list_of_views(n: int) -> str:
    """A list that is taken apart, item by item."""
    lines = [f"%e{i} : Tensor = aten::tanh(%x)" for i in range(n // 3)]
    lines.append(joined("l", "e", n // 3))
    for i in range(n // 3):
        lines += [f"%k{i} : int = prim::Constant[value={i}]()", f"%g{i} : Tensor = aten::__getitem__(%l, %k{i})"]
    return graph([*lines, joined("m", "g", n // 3), "%s : Tensor = aten::cat(%m, %zero)"], "s")


def unpacked(n: int) -> str:
    """A list of as many tensors as there are nodes, split and unpacked."""
    names = ", ".join(f"%u{i} : Tensor" for i in range(n // 2))
    return graph(["%p : Tensor[] = aten::unbind(%x, %zero)", f"{names} = prim::ListUnpack(%p)",
                  *[f"%e{i} : Tensor = aten::mul(%u{i}, %y)" for i in range(n // 2)], joined("l", "e", n // 2),
                  "%s : Tensor = aten::cat(%l, %zero)"], "s")


def dictionary(n: int) -> str:
    """A dict of many entries, made at once; then each is read."""
    n //= 4
    lines = [f"%k{i} : str = prim::Constant[value=\"k{i}\"]()" for i in range(n)] + [f"%e{i} : Tensor = aten::tanh(%x)" for i in range(n)]
    lines.append("%d : Dict(str, Tensor) = prim::DictConstruct(" + ", ".join(f"%k{i}, %e{i}" for i in range(n)) + ")")
    lines += [f"%g{i} : Tensor = aten::__getitem__(%d, %k{i})" for i in range(n)]
    return graph([*lines, joined("m", "g", n), "%s : Tensor = aten::cat(%m, %zero)"], "s")


def entries(n: int) -> str:
    """A dict that grows."""
    n //= 3
    lines = ["%d : Dict(str, Tensor) = prim::DictConstruct()"]
    for i in range(n):
        lines += [f"%k{i} : str = prim::Constant[value=\"k{i}\"]()", f"%e{i} : Tensor = aten::tanh(%x)",
                  f"= aten::_set_item(%d, %k{i}, %e{i})"]
    return graph([*lines, "%s : Tensor = aten::__getitem__(%d, %k0)"], "s")


def outputs(n: int) -> str:
    """Every result is an output."""
    return graph([f"%e{i} : Tensor = aten::mul({before(i // 2, 'e')}, %y)" for i in range(n)], *(f"e{i}" for i in range(n)))


def inputs(n: int) -> str:
    """As many inputs as nodes."""
    names = "".join(f", %x{i} : {FLOAT}" for i in range(n))
    text = graph([f"%e{i} : Tensor = aten::mul({before(i, 'e')}, %x{i})" for i in range(n)], f"e{n - 1}")
    return text.replace(", %c : bool", f"{names}, %c : bool", 1)


def deep_tuples(n: int) -> str:
    """A tuple in a tuple in a tuple, then all taken apart: types are as long as the tuple is deep, so that the depth is bounded."""
    lines, depth = [], 12
    for t in range(max(1, n // (2 * depth))):
        types, last = ["Tensor"], before(t, "s")
        for i in range(depth):
            types.append(f"({types[-1]}, Tensor)")
            lines.append(f"%t{t}_{i} : {types[-1]} = prim::TupleConstruct({last}, %y)")
            last = f"%t{t}_{i}"
        for i in range(depth):
            lines.append(f"%u{t}_{i} : {types[-2 - i]}, %w{t}_{i} : Tensor = prim::TupleUnpack({last})")
            last = f"%u{t}_{i}"
        lines.append(f"%s{t} : Tensor = aten::tanh({last})")
    return graph(lines, f"s{max(1, n // (2 * depth)) - 1}")


def wide_branch(n: int) -> str:
    """One branch that gives many results."""
    n //= 3
    results = ", ".join(f"%r{i} : Tensor" for i in range(n))
    first = [f"    %a{i} : Tensor = aten::mul(%x, %y)" for i in range(n)]
    second = [f"    %b{i} : Tensor = aten::tanh(%x)" for i in range(n)]
    return graph([f"{results} = prim::If(%c)", "  block0():", *first, "    -> (" + ", ".join(f"%a{i}" for i in range(n)) + ")",
                  "  block1():", *second, "    -> (" + ", ".join(f"%b{i}" for i in range(n)) + ")", joined("l", "r", n),
                  "%s : Tensor = aten::cat(%l, %zero)"], "s")


def own_parts(n: int) -> str:
    """Tensors taken apart, whose parts are written into and read, as in traced LSTM cells."""
    lines = []
    for i in range(n // 5):
        lines += [f"%a{i} : Tensor = aten::mul({before(i, 'm')}, %x)", f"%l{i} : Tensor[] = aten::unsafe_chunk(%a{i}, %k, %zero)",
                  f"%p{i} : Tensor, %q{i} : Tensor = prim::ListUnpack(%l{i})", f"%s{i} : Tensor = aten::sigmoid_(%p{i})",
                  f"%m{i} : Tensor = aten::mul(%q{i}, %s{i})"]
    return graph(lines, f"m{n // 5 - 1}")


def shared_parts(n: int) -> str:
    """Parts of parts of an input, which are written into."""
    lines = []
    for i in range(n // 3):
        lines += [f"%l{i} : Tensor[] = aten::unsafe_chunk({before(i, 'p')}, %k, %zero)",
                  f"%p{i} : Tensor, %q{i} : Tensor = prim::ListUnpack(%l{i})", f"%s{i} : Tensor = aten::sigmoid_(%q{i})"]
    return graph(lines, f"p{n // 3 - 1}")


def views_of_one(n: int) -> str:
    """Many views of one tensor, each written into."""
    lines = ["%b : Tensor = aten::mul(%x, %y)"]
    for i in range(n // 2):
        lines += [f"%v{i} : Tensor = aten::select(%b, %zero, %one)", f"%w{i} : Tensor = aten::mul_(%v{i}, %one)"]
    return graph(lines, "b")


def prints(n: int) -> str:
    """Nodes with side effects, and what they read."""
    lines = []
    for i in range(n // 2):
        lines += [f"%e{i} : Tensor = aten::tanh({before(i, 'e')})", f"= prim::Print(%e{i})"]
    return graph(lines, f"e{n // 2 - 1}")


def cats(n: int) -> str:
    """Tensors that are written into and put behind one that grows, as decoders do."""
    lines = []
    for i in range(n // 4):
        lines += [f"%a{i} : {FLOAT} = aten::mul(%x, %y)", f"%b{i} : {FLOAT} = aten::relu_(%a{i})",
                  f"%l{i} : Tensor[] = prim::ListConstruct({before(i, 'c')}, %b{i})", f"%c{i} : {FLOAT} = aten::cat(%l{i}, %zero)"]
    return graph(lines, f"c{n // 4 - 1}")


SHAPES: tuple[Callable[[int], str], ...] = (
    chain, fan_out, long_list, branches, branches_through, nested_branches, nested_writes, loops, carried, writes, many_writes,
    written_list, views, reshapes, appends, tuples, products, dead, many_lists, list_of_views, unpacked, dictionary, entries, outputs,
    inputs, deep_tuples, wide_branch, views_of_one, own_parts, shared_parts, prints, cats)
