"""Statements about lists, dicts, tuples, numbers and functions, for the programs of source.py."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fuzz.expressions import Facts, category

if TYPE_CHECKING:
    from fuzz.source import Writer


def lists(writer: Writer) -> None:
    """A list of tensors of one dtype and shape that changes, also in a loop, and what is read of it."""
    a = writer.pick()
    mates = [each for each in writer.names if (each.facts.dtype, each.facts.shape) == (a.facts.dtype, a.facts.shape)]
    name, other = writer.fresh("l"), writer.random.choice(mates)
    writer.emit(f"{name} = [{a.text}, {other.text}]" if writer.random.random() < 0.6 else f"{name}: List[Tensor] = [{a.text}]")
    for _ in range(writer.random.randint(1, 3)):
        item = writer.random.choice(mates).text
        text = writer.random.choice((f"{name}.append({item})", f"{name}[0] = {item}", f"{name}.insert(0, {item})", f"{name} += [{item}]",
                                   f"{name}.append({name}.pop(0))", f"{name} = {name}[-2:]", f"{name}.extend([{item}, {item}])",
                                   f"{name}.reverse()"))
        if writer.random.random() < 0.4:
            head = writer.random.choice((f"for {writer.fresh('j')} in range({writer.number()}):", f"if len({name}) > 1:",
                                       "if flag:" if "flag" in writer.inputs else f"if {writer.number()} > 0:"))
            writer.emit(head)
            text = "    " + text
        writer.emit(text)
    facts = Facts(a.facts.dtype, a.facts.shape, None)
    read: list[tuple[str, Facts]] = [(f"{name}[-1]", facts), (f"{name}[0]", facts), (f"{name}[len({name}) - 1]", facts)]
    if category(facts.dtype) >= 2 and facts.count < 10**5:
        read += [(f"torch.stack({name}).sum(0)", Facts(facts.dtype, facts.shape, None))] * 2
        read += [(f"torch.cat({name}).sum(0)", Facts(facts.dtype, facts.shape[1:], None))] * bool(facts.shape)
    text, facts = writer.random.choice(read)
    writer.define(text, facts, a.memory)
    writer.ints.append(f"len({name})")
    if writer.carried is None and writer.random.random() < 0.3:
        writer.results.append(name)


def sizes(writer: Writer) -> None:
    """A list of sizes that changes before it is used."""
    name, sizes = writer.fresh("s"), [writer.random.choice((1, 2, 3)) for _ in range(writer.random.randint(0, 2))]
    writer.emit(f"{name}: List[int] = {sizes}")
    for _ in range(writer.random.randint(0, 2)):
        new = writer.random.choice((1, 2, 3))
        if sizes and writer.random.random() < 0.4:
            writer.emit(f"{name}[0] = {new}")
            sizes[0] = new
        else:
            writer.emit(f"{name}.append({new})")
            sizes.append(new)
    text, dtype = writer.random.choice((("torch.zeros({s}, dtype=torch.float64)", "float64"),
                                      ("torch.full({s}, 0.5, dtype=torch.float64)", "float64")))
    writer.define(text.format(s=name), Facts(dtype, tuple(sizes)), writer.new_memory())


def dicts(writer: Writer) -> None:
    """A dict of tensors, read by key and in a loop."""
    a = writer.pick()
    mates = [each for each in writer.names if (each.facts.dtype, each.facts.shape) == (a.facts.dtype, a.facts.shape)]
    name = writer.fresh("d")
    writer.emit(f'{name} = {{"a": {a.text}, "b": {writer.random.choice(mates).text}}}')
    if writer.random.random() < 0.6:
        writer.emit(f'{name}["{writer.random.choice("abc")}"] = {writer.random.choice(mates).text}')
    if writer.random.random() < 0.3:
        writer.emit(f'{name}.pop("b")')
    text = writer.random.choice((f'{name}["a"]', f"list({name}.values())[-1]", f'{name}["a"]'))
    writer.define(text, Facts(a.facts.dtype, a.facts.shape, None), a.memory)
    if writer.carried is None and writer.random.random() < 0.5:
        writer.results.append(name)


def tuples(writer: Writer) -> None:
    """Two values at once."""
    a, b = writer.pick(), writer.pick()
    name, one, two = writer.fresh("t"), writer.fresh(), writer.fresh()
    writer.emit(f"{name} = ({a.text}, {b.text})")
    writer.emit(f"{one}, {two} = {name}")
    writer.add(one, a)
    writer.add(two, b)
    if writer.carried is None and writer.random.random() < 0.3:
        writer.results.append(name)


def walks(writer: Writer) -> None:
    """A loop over tensors of a list, with what is made of them in another list, or added up."""
    a = writer.pick()
    mates = [each.text for each in writer.names if (each.facts.dtype, each.facts.shape) == (a.facts.dtype, a.facts.shape)]
    if category(a.facts.dtype) == 0:
        return
    items, out, one, place = writer.fresh("l"), writer.fresh("l"), writer.fresh("e"), writer.fresh("i")
    writer.emit(f"{items} = [{writer.random.choice(mates)}, {writer.random.choice(mates)}, {a.text}]")
    how = writer.random.randrange(5)
    if how == 0:
        writer.emit(f"{out} = [{one} + {writer.number()} for {one} in {items}]")
    elif how == 1:
        writer.emit(f"{out} = [{a.text} * {writer.number()}]")
        writer.emit(f"for {place}, {one} in enumerate({items}):")
        writer.emit(f"    {out}.append({one} * {place} + {out}[-1])")
    elif how == 2:
        writer.emit(f"{out}: List[Tensor] = []")
        writer.emit(f"for {place}, {one} in zip({items}, {items}[1:]):")
        writer.emit(f"    {out}.append({place} + {one})")
    elif how == 3:
        writer.emit(f"{out} = [{a.text} * 1]")
        writer.emit(f"while len({out}) < 3:")
        writer.emit(f"    {out}.append({out}[-1] + {items}[len({out}) - 1])")
    else:
        writer.emit(f"{out} = [{a.text} * 1, {a.text} + 1]")
        writer.emit(f"for {place} in range(2):")
        writer.emit(f"    {out}[{place}] += {items}[{place}]")
        writer.emit(f"    {out}[0].mul_({writer.number()})")
    facts = Facts(a.facts.dtype, a.facts.shape, None)
    writer.define(writer.random.choice((f"{out}[-1]", f"{out}[0]", f"{out}[len({out}) - 1] - {out}[0]")), facts, writer.new_memory())
    writer.ints.append(f"len({out})")


def maybes(writer: Writer) -> None:
    """A tensor that may not be there, until it is."""
    a, name = writer.pick(), writer.fresh("o")
    if category(a.facts.dtype) == 0:
        return
    writer.emit(f"{name}: Optional[Tensor] = None")
    how = writer.random.randrange(3)
    if how == 0:
        writer.emit(f"if {writer.condition()}:")
        writer.emit(f"    {name} = {a.text} * 2")
        text = f"{name} + 1 if {name} is not None else {a.text} * 1"
    else:
        place = writer.fresh("i")
        writer.emit(f"for {place} in range({'2' if how == 1 else writer.number()}):")
        writer.emit(f"    if {name} is None:")
        writer.emit(f"        {name} = {a.text} * 1")
        writer.emit("    else:")
        writer.emit(f"        {name} = {name} + {a.text}" if how == 1 else f"        {name}.add_({place})")
        text = f"{name} if {name} is not None else {a.text} + 0"
    writer.define(text, Facts(a.facts.dtype, a.facts.shape, None), writer.new_memory())


def unions(writer: Writer) -> None:
    """A tensor or a number, by itself or in a list, which is a tensor again where the program asks."""
    a, name, one = writer.pick(), writer.fresh("u"), writer.fresh("e")
    if category(a.facts.dtype) == 0:
        return
    number = writer.number()
    facts = Facts(a.facts.dtype, a.facts.shape, None)
    if writer.random.random() < 0.5:
        writer.emit(f"{name}: Union[Tensor, int] = {a.text} * 2")
        writer.emit(f"if {writer.condition()}:")
        writer.emit(f"    {name} = {writer.random.choice((a.text, number))}")
        writer.define(f"{name} + 1 if isinstance({name}, Tensor) else {a.text} * 1", facts, writer.new_memory())
        return
    writer.emit(f"{name}: List[Union[Tensor, int]] = [{a.text}, {number}]")
    writer.emit(f"{name}.append({a.text} * 2)")
    total = writer.define(f"{a.text} * 1", facts, writer.new_memory())
    writer.emit(f"for {one} in {name}:")
    writer.emit(f"    if isinstance({one}, Tensor):")
    writer.emit(f"        {total.text} = {total.text} + {one}")


def nested_lists(writer: Writer) -> None:
    """A list of lists, one of which changes under another name."""
    a, name, inner = writer.pick(), writer.fresh("l"), writer.fresh("l")
    writer.emit(f"{inner} = [{a.text}]")
    writer.emit(f"{name} = [{inner}, [{a.text}, {a.text}]]")
    writer.emit(writer.random.choice((f"{inner}.append({a.text})", f"{name}[0].append({a.text})", f"{name}[1][0] = {a.text}",
                                      f"{name}.append({inner})")))
    writer.define(writer.random.choice((f"{name}[0][-1]", f"{name}[-1][0]", f"{inner}[0]")), Facts(a.facts.dtype, a.facts.shape, None),
                  a.memory)
    writer.ints.append(f"len({name}[0])")
    if writer.carried is None and writer.random.random() < 0.3:
        writer.results.append(name)


def number_lists(writer: Writer) -> None:
    """A list of numbers that grows in a loop, and its sum."""
    name, total, place = writer.fresh("n"), writer.fresh("k"), writer.fresh("i")
    is_whole = writer.random.random() < 0.5
    writer.emit(f"{name}: List[{'int' if is_whole else 'float'}] = []")
    writer.emit(f"for {place} in range({writer.number()}):")
    writer.emit(f"    {name}.append({place} * {writer.number() if is_whole else writer.real()})")
    writer.emit(f"{total} = len({name})" if writer.random.random() < 0.4 else f"{total} = sum({name}) + {'1' if is_whole else '0.5'}")
    (writer.ints if is_whole or "len" in writer.lines[-1] else writer.reals).append(total)
    if writer.carried is None and not writer.style.grad and writer.random.random() < 0.4:
        writer.results.append(name)


def changing_pair(writer: Writer) -> None:
    """Two names that change places in a loop."""
    a = writer.pick()
    mates = [each for each in writer.names if (each.facts.dtype, each.facts.shape) == (a.facts.dtype, a.facts.shape)]
    b = writer.random.choice(mates)
    if category(a.facts.dtype) == 0:
        return
    one, two = (writer.define(f"{each.text} * 1", Facts(a.facts.dtype, a.facts.shape, None), writer.new_memory()) for each in (a, b))
    writer.emit(f"for {writer.fresh('i')} in range({writer.random.choice(('2', '3', writer.number()))}):")
    writer.emit("    " + writer.random.choice((f"{one.text}, {two.text} = {two.text}, {one.text} + {two.text}",
                                               f"{one.text}, {two.text} = {two.text} * 2, {one.text}",
                                              f"{one.text} -= {two.text}")))
    if writer.random.random() < 0.4:
        writer.emit(f"    {two.text}.add_({one.text})")


STATEMENTS: tuple[Callable[[Writer], None], ...] = (lists, lists, sizes, dicts, tuples, walks, maybes, unions, nested_lists, number_lists,
                                                    changing_pair)
"""What a statement may be, besides what source.py writes itself."""
