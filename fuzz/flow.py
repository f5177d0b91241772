"""Statements about numbers, strings, lists of numbers, functions, and the ways out of loops, for the programs of source.py."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fuzz.expressions import Facts, category

if TYPE_CHECKING:
    from fuzz.source import Writer

WHOLE = ("{n} - 3", "-1 * {n} // 2", "({n} - 2) % 3", "{n} ** 2", "abs({n} - 2)", "{n} << 1", "{n} & 1", "{n} | 2", "{n} ^ 3",
         "int({r})", "int({n} > 1)", "{n} if {n} > 1 else 2", "divmod({n}, 2)[0]", "int(round({r} * 3))", "max({n}, 1, 2)",
         "math.floor({r})", "math.ceil({r} * 0.3)", "{n} // 1", "int('{n}') + 1", "len(str({n}))", "math.gcd({n}, 6)",
         "len('a,b,{n}'.split(','))", "sum([{n}, 1])", "[{n}, 5, 1][0]", "min([3, {n}])", "sorted([{n}, 2, 1])[0]", "{a}.dim()",
         "{a}.size(-1) if {a}.dim() > 0 else 1",
         "{a}.numel() // 2 % 4", "{n} % -2", "-7 // ({n} + 1)", "(3, {n})[1]", "bool({n}) + 1", "[7, 8, 9, {n}][-1]", "ord('b') % 4",
         "[{n}, 1, 2].index(1)", "[1, {n}, 1].count(1)")
REAL = ("{r} ** 2", "-1 * {r} / 3", "{r} // 0.3", "{r} % 0.7", "float('{r}') + 1", "math.sqrt(abs({r}))", "math.exp({r} * 0.1)", "abs({r})",
        "{n} ** -1.0 if {n} > 0 else 0.5", "min({r}, 1.0)", "math.fmod({r}, 0.4)", "float({n} > 1)", "{r} if {n} == 1 else 0.5 - {r}",
        "{n} / 4 + {r}", "sum([{r}, 0.5])", "max([{r}, 0.25])", "math.pi * {r}", "round({r})", "float(int({r}))", "math.copysign(2.0, {r})",
        "{r} * ({n} > 0)")
TRUTH = ("{n} in [1, 3]", "not {n} or {r} > 0", "{n} == 1 and {r} < 1.0 or {n} > 2", "({n}, 1) == (1, 1)", "[{n}] == [1]",
         "{a}.size() == {b}.size()", "{n} != len({a}.size())", "str({n}) == '1'", "'{n}' in {{'1': 0, '2': 1}}", "{a}.is_floating_point()",
         "{a}.dtype == torch.float32", "{a} is None", "{a} is not None", "bool({n} - 1)", "isinstance({n}, int)", "{n} not in (1, 2)",
         "'b' in 'abc'[{n}:]", "({r} > 0) == ({n} > 1)", "{a}.shape[:1] == [3]",
         "any([{n} > 2, {r} > 1.0])", "all([{n} > 0])", "{b}.dim() == {a}.dim()")


def some(writer: Writer, texts: tuple[str, ...]) -> str:
    """One of the expressions, filled in."""
    a, b = writer.pick().text, writer.pick().text
    text = writer.random.choice(texts)
    number = writer.number() if "'{n}'" not in text and "b,{n}'" not in text else "2"
    return text.format(a=a, b=b, n=number, r=writer.real() if "'{r}'" not in text else "0.5")


def numbers(writer: Writer) -> None:
    """Arithmetic of Python numbers and truth values."""
    how, name = writer.random.randrange(3), writer.fresh("k")
    writer.emit(f"{name} = {some(writer, (WHOLE, REAL, TRUTH)[how])}")
    if how < 2:
        kept = f"max(-5, min({name}, 5))"       # what is a size or an exponent must stay small
        writer.emit(f"{name} = {kept}" if not how else f"{name} = max(-3.0, min(float({name}), 3.0))")
        (writer.ints, writer.reals)[how].append(f"abs({name})" if not how else name)
    else:
        a = writer.pick()
        if category(a.facts.dtype) > 0:
            writer.define(f"{a.text} * 2 if {name} else {a.text} + 0", Facts(*numbered(a.facts)), writer.new_memory())
    if writer.carried is None and not writer.style.grad and writer.random.random() < 0.4:
        writer.results.append(name)


def numbered(facts: Facts) -> tuple[str, tuple[int, ...], None]:
    """Dtype and shape, of what is rounded from now on."""
    return facts.dtype, facts.shape, None


def keys(writer: Writer) -> None:
    """A dict whose keys are made of numbers, and a walk over it."""
    a = writer.pick()
    mates = [each.text for each in writer.names if (each.facts.dtype, each.facts.shape) == (a.facts.dtype, a.facts.shape)]
    name, key, total, item = writer.fresh("d"), writer.fresh("s"), writer.fresh(), writer.fresh("e")
    if category(a.facts.dtype) == 0:
        return
    writer.emit(f"{name}: Dict[str, Tensor] = {{}}")
    made = writer.random.choice((
        "'a' + str({n})", "'a{{}}'.format({n})", "'a%d' % {n}", "'A2'.lower()", "'-'.join(['a', 'b'])"))
    writer.emit(f"{key} = {made.format(n=writer.random.choice(('n', '2')) if 'n' in writer.inputs else '2')}")
    writer.emit(f"{name}[{key}] = {a.text}")
    writer.emit(f"{name}['a2'] = {writer.random.choice(mates)}")
    writer.emit(f"{total} = {a.text} * 1")
    writer.emit(writer.random.choice((f"for {key}, {item} in {name}.items():", f"for {item} in {name}.values():",
                                      f"for {key} in list({name}.keys()):")))
    if f" {item} " in writer.lines[-1]:
        writer.emit("    " + writer.random.choice((f"{total} = {total} + {item}", f"{total}.add_({item})", f"{total} *= 2")))
    else:
        writer.emit("    " + f"{total} += {name}[{key}]")
    facts = Facts(*numbered(a.facts))
    writer.define(writer.random.choice((total, f"{name}[{key}] if {key} in {name} else {total}", f"{name}.get('zz', {total})",
                                        f"{name}.pop('a2') + {total}")), facts, a.memory)
    writer.ints.append(f"len({name})")


def number_lists(writer: Writer) -> None:
    """A list of numbers that is sorted, cut, extended, and read."""
    name, place = writer.fresh("n"), writer.fresh("i")
    writer.emit(f"{name} = [{writer.number()}, 3, {writer.number()}]")
    for _ in range(writer.random.randint(1, 3)):
        writer.emit(writer.random.choice((
            f"{name}.sort()", f"{name}.reverse()", f"{name}.append({writer.number()})", f"{name} = {name}[1:] + [4]", f"{name}[-1] += 1",
            f"{name} = {name} * 2", f"{name}.extend([1, {writer.number()}])", f"{name} = [{place} * 2 for {place} in {name}]",
            f"del {name}[0]", f"{name}.insert(1, 2)", f"{name} = [{place} + 1 for {place} in range(3)]",
            f"{name} = sorted({name})", f"{name}.remove(3)")))
    writer.ints.append(f"{name}[{writer.random.choice((0, -1))}] % 4")
    a = writer.pick()
    if category(a.facts.dtype) and writer.random.random() < 0.6:
        writer.define(f"{a.text} * sum({name})", Facts(*numbered(a.facts)), writer.new_memory())
    if writer.carried is None and not writer.style.grad and writer.random.random() < 0.5:
        writer.results.append(name)


def elements(writer: Writer) -> None:
    """A tensor that is filled element by element, row by row, or through a view."""
    rows = [each for each in writer.names if each.facts.shape and 0 < each.facts.shape[0] < 9 and category(each.facts.dtype) > 0
            and "complex" not in each.facts.dtype]
    if not rows:
        return
    a, i, j = writer.random.choice(rows), writer.fresh("i"), writer.fresh("j")
    facts = Facts(*numbered(a.facts))
    made = writer.random.choice((f"torch.zeros_like({a.text})", f"{a.text}.clone()", f"torch.empty_like({a.text}).fill_(1)"))
    out = writer.define(made, facts, writer.new_memory())
    o, x, n = out.text, a.text, writer.number()
    rank = len(facts.shape)
    how = writer.random.randrange(7 if rank > 1 else 4)
    head = f"for {i} in range({x}.size(0)):"
    if how == 0:
        body = [head, f"    {o}[{i}] = {x}[{i}] * {i}"]
    elif how == 1:
        body = [f"for {i} in range(1, {x}.size(0)):", f"    {o}[{i}] += {o}[{i} - 1] * {n}"]
    elif how == 2:
        body = [f"for {i} in range({x}.size(0) - 1, -1, -1):", f"    {o}[{i}] = {x}[{i}] + {n}", f"    if {i} == 1:", "        break"]
    elif how == 3:
        body = [f"{i} = 0", "while True:", f"    if {i} >= {x}.size(0):", "        break", f"    {o}[{i}:] *= 2", f"    {i} += 1"]
    elif how == 4:
        body = [head, f"    {j} = {o}[{i}]", f"    {j}.add_({x}[{i}])", f"    {j}[0] = {j}[-1] * 2"]
    elif how == 5:
        body = [head, f"    for {j} in range({x}.size(1)):", f"        if {j} > {i}:",
                f"            {writer.random.choice(('break', 'continue'))}", f"        {o}[{i}, {j}] = {x}[{i}, {j}] * {n}"]
    else:
        body = [head, f"    {o}[{i}, 0] = {o}[{i}, -1] + {x}[0, 0]", f"    {o}[{i}, 1:] += {i}", f"    {o}[:, {i} % {o}.size(1)] = {n}"]
    if 0 in facts.shape[1:2]:
        return
    for line in body:
        writer.emit(line)


def early(writer: Writer) -> None:
    """A way out of the function; what it returns is filled in when the last line is known."""
    if writer.style.one_result or writer.in_helper:
        return
    writer.emit(f"if {writer.condition()}:")
    writer.exits.append((len(writer.lines), [each.text for each in writer.names], writer.depth + 1))
    writer.emit("    pass")


def helper(writer: Writer) -> None:
    """A call of another function, which may write into what it is given."""
    if writer.in_helper or writer.carried is not None:
        return
    a, b = writer.pick(), writer.pick()
    inner = writer.of_helper()
    for name, each in (("a", a), ("b", b)):
        inner.names.append(type(a)(name, Facts(*numbered(each.facts)), each.memory))
    inner.fixed = writer.fixed
    inner.ints.append("n")
    for _ in range(writer.random.randint(1, 4)):
        inner.statement()
    result = writer.random.choice(inner.names)
    is_pair = writer.random.random() < 0.25
    title = writer.fresh("g")
    kind = "Tuple[Tensor, Tensor]" if is_pair else "Tensor"
    writer.helpers.append("\n".join([f"def {title}(a: Tensor, b: Tensor, n: int = 2) -> {kind}:", *inner.lines,
                                     f"    return {f'{result.text}, a' if is_pair else result.text}"]) + "\n")
    writer.count = inner.count
    call = writer.random.choice((f"{title}({a.text}, {b.text})", f"{title}({a.text}, {b.text}, {writer.number()})",
                                 f"{title}({a.text}, n={writer.number()}, b={b.text})"))
    if writer.style.compiled and writer.random.random() < 0.25:     # waited for at once: torch may run it at any time until then
        call = f"torch.jit._wait(torch.jit._fork({title}, {call.partition('(')[2]})"
    for each in (a, b):     # what shapes it changed in place are changed here, too
        writer.rounded(each.memory)
        each.facts.shape = next(one.facts.shape for one in inner.names if one.text == ("a" if each is a else "b"))
    writer.define(f"{call}[0]" if is_pair else call, Facts(*numbered(result.facts)), result.memory)


def checks(writer: Writer) -> None:
    """An assertion that holds, or an exception that nobody sees."""
    a = writer.pick()
    if writer.random.random() < 0.5:
        writer.emit(f"assert {a.text}.numel() >= 0, 'of {writer.count}'")
        return
    writer.emit(f"if {a.text}.dim() > 7:")
    writer.emit(f"    raise {writer.random.choice(('ValueError', 'RuntimeError'))}('too many: {{}}'.format({a.text}.dim()))")


def counted(writer: Writer) -> None:
    """Loops in loops that count, with ways out, over ranges, lists and their numbers."""
    a = writer.pick()
    if category(a.facts.dtype) == 0:
        return
    total, count, i, j = writer.fresh(), writer.fresh("k"), writer.fresh("i"), writer.fresh("j")
    writer.emit(f"{total} = {a.text} * 1")
    writer.emit(f"{count} = 0")
    head = writer.random.choice((f"for {i} in range(1, 6, 2):", f"for {i} in [3, 1, {writer.number()}]:",
                                 f"for {j}, {i} in enumerate([2, 1]):",
                                 f"for {i}, {j} in zip([1, 2], range(5)):", f"for {i} in range(3, 0, -1):",
                                 f"for {i} in range({writer.number()}):"))
    writer.emit(head)
    inner = [f"{count} += {i}", f"{total} = {total} + {count}"] if writer.random.random() < 0.5 else \
        [f"{total} *= {i}", f"if {count} > 2:", f"    {writer.random.choice(('break', 'continue'))}", f"{count} += 1"]
    if writer.random.random() < 0.5:
        inner = [f"for {j}x in range(3):", f"    if {j}x == {i}:", f"        {writer.random.choice(('break', 'continue'))}",
                 *[f"    {line}" for line in inner]]
    for line in inner:
        writer.emit(f"    {line}")
    facts = Facts(*numbered(a.facts))
    writer.names.append(type(a)(total, facts, writer.new_memory()))
    writer.ints.append(f"{count} % 4")


STATEMENTS: tuple[Callable[[Writer], None], ...] = (numbers, numbers, numbers, keys, number_lists, elements, elements, early, helper,
                                                    helper, checks, counted)
"""What a statement may be, besides those of structures.py."""
