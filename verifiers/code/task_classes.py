"""Which classes of the candidate's the tests of a task are about, and what they do with their instances.

Read from the task's text alone, so that no program can choose it.  A name is a class where the solution defines it so,
or a prompt that is Python; where the tests ask for instances of it, take an attribute of it or of what it makes, or
compare and combine what it makes; or where they add to what it makes and do not compare that with data, as they would a
list that a function returned.  A capital letter alone is none, because functions have such names, too.

Not covered: instances that reach an expression through a container in a container or a method of the tests' own.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from types import MappingProxyType

from adjudge.sandbox.codec import BETWEEN
from adjudge.verifiers.code.names import nodes_of, syntax_tree

_TWO = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
_ORDER = {ast.Lt: ("lt", "gt"), ast.Gt: ("gt", "lt"), ast.LtE: ("le", "ge"), ast.GtE: ("ge", "le")}
_SAID = {"assertEqual": "eq", "assertNotEqual": "eq", "assertEquals": "eq", "assertCountEqual": "eq"}
_KINDS = frozenset({"isinstance", "issubclass", "assertIsInstance", "assertNotIsInstance"})
_OF_DATA = frozenset({"asdict", "astuple", "fields", "replace", "is_dataclass"})
_PLAIN = frozenset(
    name for kind in (str, bytes, int, float, complex, list, tuple, dict, set) for name in dir(kind)
 if not name.startswith("_")
) | {"shape", "dtype", "columns", "values", "iloc", "loc", "equals", "tolist", "size", "T"}  # fmt: skip
_ADDING = frozenset({"add", "append", "appendleft", "extend", "insert", "update"})
_JUDGING = frozenset(
    "__eq__ __lt__ __le__ __gt__ __ge__ issubset issuperset isdisjoint startswith endswith equals".split()
)


def stated_classes(*texts: str) -> tuple[str, ...]:
    """Return the classes that a task's own texts define, as far as they are Python; prose may quote a candidate."""
    nodes = [node for text in texts if text and (tree := syntax_tree(text)) for node in tree.body]
    return tuple(sorted({node.name for node in nodes if isinstance(node, ast.ClassDef)}))


def records(*texts: str) -> Mapping[str, str]:
    """Return the sources of classes in a task's texts that have a constructor alone, as LeetCode's `ListNode` does."""
    found = {}
    for node in (node for text in texts if text and (tree := syntax_tree(text)) for node in tree.body):
        match node:
            case ast.ClassDef(name=name, bases=[], decorator_list=[], body=[ast.FunctionDef(name="__init__")]):
                found[name] = ast.unparse(node)
    return MappingProxyType(found)


@functools.lru_cache(maxsize=256)
def task_classes(sources: tuple[str, ...], module: str, stated: tuple[str, ...] = ()) -> Mapping[str, tuple[str, ...]]:
    """Return the classes by name, each with the attributes and operators that tests use on its instances.

    Sources are the tests and their setup; the module is the name under which they import the candidate; `stated` are
    classes if the tests name them.
    """
    reading = _Reading(module, stated)
    for source in sources:
        reading.read(ast.parse(source))
    reading.classes.update(name for name in reading.grown if _JUDGING.isdisjoint(reading.used.get(name, ())))
    return MappingProxyType({name: tuple(sorted(reading.used.get(name, ()))) for name in sorted(reading.classes)})


@functools.lru_cache(maxsize=256)
def idle_methods(sources: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the methods of whose answers tests only ask which object it is, or for a method; None if they ask nothing.

    The other answers are perhaps what a test expects.
    """
    nodes = [node for source in sources for node in nodes_of(ast.parse(source))]
    asking: list[ast.expr] = []
    idle: list[ast.AST] = []
    for node in nodes:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=rights) if {*map(type, ops)} <= {ast.Is, ast.IsNot}:
                if not any(isinstance(side, ast.Constant) or _is_type(side) for side in (left, *rights)):
                    asking += [left, *rights]
            case ast.Call(func=ast.Name(id="id") | ast.Attribute(attr="assertIs" | "assertIsNot"), args=args):
                asking += args
            case ast.Expr(value=value) | ast.Attribute(value=value):
                idle.append(value)
    if not asking:
        return None
    used = {id(node.func) for node in (*idle, *asking) if isinstance(node, ast.Call)}
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute) and id(node) in used}
    names -= {node.attr for node in nodes if isinstance(node, ast.Attribute) and id(node) not in used}
    return tuple(sorted(names.difference(node.value for node in nodes if isinstance(node, ast.Constant))))


class _Reading:
    def __init__(self, module: str, stated: tuple[str, ...]) -> None:
        self._modules = {module}
        self._stated = frozenset(stated)
        self._held: dict[str, set[str]] = {}  # of "x[]", the items of x; of "x()", what a call of x makes
        self._parameters: dict[str, list[ast.Name]] = {}
        self._about = {"type", "vars", "dataclasses"}
        self.classes: set[str] = set()
        self.grown: set[str] = set()  # to what they make, the tests add
        self.used: dict[str, set[str]] = {}

    def read(self, tree: ast.Module) -> None:
        """Take in one source."""
        nodes = nodes_of(tree)
        for node in nodes:
            if isinstance(node, ast.Import):
                self._modules |= {alias.asname for alias in node.names if alias.asname and alias.name in self._modules}
            elif isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
                self._about |= {alias.asname or alias.name for alias in node.names if alias.name in _OF_DATA}
            elif isinstance(node, ast.FunctionDef):
                self._parameters[node.name] = [ast.Name(word.arg) for word in node.args.args]
        for _ in range(2):  # a variable may hold what another one held
            for node in nodes:
                self._hold(node)
        for node in nodes:
            self._see(node)

    def _hold(self, node: ast.AST) -> None:
        """Note which variables hold instances of what."""
        pairs: list[tuple[ast.expr, ast.expr]] = []
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                pairs = [(target, value)]
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                pairs = [(target, value)]
            case ast.For(target=target, iter=items) | ast.comprehension(target=target, iter=items):
                pairs = [(target, item) for item in getattr(items, "elts", (_item(items),))]
            case ast.FunctionDef(name=name, decorator_list=marks):
                parts = (part for part in nodes_of(node) if isinstance(part, ast.Return | ast.Yield))
                given = [part.value for part in parts if part.value]
                pairs = [(ast.Name(name), value) for value in given if marks]  # a fixture
                self._held.setdefault(f"{name}()", set()).update(*map(self._made, given))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=named) if name in self._parameters:
                pairs = [*zip(self._parameters[name], args, strict=False)]
                pairs += [(ast.Name(word.arg or ""), word.value) for word in named]
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, items, *_]):
                pairs = [(_target(names), _parameter(item)) for item in getattr(items, "elts", ())]
        for target, value in pairs:
            if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
                for one, other in zip(target.elts, value.elts, strict=False):
                    self._put(one, other)
            else:
                self._put(target, value)

    def _put(self, target: ast.expr, value: ast.expr) -> None:
        """Note what a variable holds, as itself, as items, or as a class."""
        key = _key(target)
        self._held.setdefault(key, set()).update(self._made(value))
        if self._capital(name := self._named(value)):
            self._held.setdefault(f"{key}()", set()).add(name)
        items = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", (_item(value),))
        for item in items:
            self._held.setdefault(f"{key}[]", set()).update(self._made(item))

    def _named(self, node: ast.expr) -> str:
        """Return the name of the candidate's that an expression is, or ""."""
        match node:
            case ast.Name(id=name):
                return name
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in self._modules:
                return name
        return ""

    def _capital(self, name: str) -> bool:
        return name in self._stated or (name[:1].isupper() and "_" not in name)

    def _made(self, node: ast.expr) -> set[str]:
        """Return the names, with a capital letter, of which an expression may be an instance."""
        match node:
            case ast.Call(func=func):
                return {name} if self._capital(name := self._named(func)) else self._held.get(f"{_key(func)}()", set())
            case ast.Attribute(value=value) if (name := self._named(value)) and self._capital(name):
                return {name}  # a member of an enumeration
            case ast.BinOp(left=left, right=right):
                return self._made(left) | self._made(right)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
                return self._made(operand)
            case ast.NamedExpr(value=value):
                return self._made(value)
        return self._held.get(_key(node), set()) if _key(node) else set()

    def _calls(self, node: ast.expr) -> set[str]:
        return self._made(node).union(*(self._made(part) for part in nodes_of(node) if isinstance(part, ast.Call)))

    def _see(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name | ast.Attribute):
            self.classes |= self._stated & {self._named(node)}
        match node:
            case ast.Attribute(value=value, attr=attr):
                if (name := self._named(value)) and self._capital(name):
                    self.classes.add(name)
                for name in self._made(value):
                    self._use(name, attr)
                    if attr not in _PLAIN:
                        self.classes.add(name)
            case ast.ClassDef(bases=bases):
                self.classes.update(filter(None, map(self._named, bases)))
            case ast.withitem(context_expr=value):
                self.classes |= self._made(value)
            case ast.Subscript(value=value, ctx=context):
                self._use_all(value, "__getitem__")
                if isinstance(context, ast.Store):
                    self.grown |= self._made(value)
            case ast.BinOp(left=left, op=op, right=right):
                self._pair(left, right, f"__{_TWO[type(op)]}__", f"__r{_TWO[type(op)]}__")
            case ast.AugAssign(target=target, op=op, value=value):
                self._pair(target, value, f"__{_TWO[type(op)]}__", f"__r{_TWO[type(op)]}__")
            case ast.Compare():
                self._compare(node)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value, attr=attr))) if attr in _ADDING:
                self.grown |= self._made(value)
            case ast.Expr(value=ast.BinOp() as value):  # for what it raises
                self.classes |= self._made(value)
            case ast.Call(args=[], keywords=[]):  # no function under test takes nothing
                self.classes |= self._made(node)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)), args=[value, *_]) if (
                name in self._about
            ):
                self.classes |= self._calls(value) | {self._named(value)} - {""}
            case ast.MatchClass(cls=kind) if name := self._named(kind):
                self.classes.add(name)
            case ast.Call(func=ast.Name(id="str" | "repr" | "len" | "bool" | "iter" | "hash" as name), args=[value]):
                self._use_all(value, f"__{name}__")
            case (
                ast.For(iter=value)
                | ast.comprehension(iter=value)
                | ast.Call(func=ast.Name(id="list" | "tuple" | "sorted" | "set" | "sum"), args=[value, *_])
            ):
                self._use_all(value, "__iter__")
            case ast.Call(func=func, args=[one, other, *_]):
                self._call(getattr(func, "attr", getattr(func, "id", "")), one, other)

    def _call(self, name: str, one: ast.expr, other: ast.expr) -> None:
        if name in _KINDS:
            self.classes.update(filter(None, map(self._named, other.elts if isinstance(other, ast.Tuple) else [other])))
            if name == "issubclass":
                self.classes.update(filter(None, [self._named(one)]))
        elif name in _SAID:
            self._pair(one, other, f"__{_SAID[name]}__", f"__{_SAID[name]}__")
            self.classes |= self._calls(one) & self._calls(other)
        elif name in ("assertIn", "assertNotIn"):
            self._pair(one, other, "", "__contains__")

    def _compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.Is) and _is_type(left):
                self.classes.update(filter(None, [self._named(right)]))
            self.classes |= self._calls(left) & self._calls(right)
            one, other = _ORDER.get(type(op), ("eq", "eq"))
            if isinstance(op, ast.In | ast.NotIn):
                self._pair(left, right, "", "__contains__")
            elif not isinstance(op, ast.Is | ast.IsNot):
                self._pair(left, right, f"__{one}__", f"__{other}__")
            left = right

    def _pair(self, left: ast.expr, right: ast.expr, of_left: str, of_right: str) -> None:
        """Note an operator between two expressions of which one is an instance of the candidate's."""
        one, other = self._made(left), self._made(right)
        self.classes |= one & other
        for name in one & other:
            self._use(name, f"{BETWEEN}{of_left}")
        if one and not other and of_left:
            self._use_all(left, of_left)
        if other and not one:
            self._use_all(right, of_right)

    def _use_all(self, node: ast.expr, word: str) -> None:
        for name in self._made(node):
            self._use(name, word)

    def _use(self, name: str, word: str) -> None:
        self.used.setdefault(name, set()).add(word)


def _key(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return f"self.{name}"
        case ast.Subscript(value=value) if key := _key(value):
            return f"{key}[]"
    return ""


def _item(items: ast.expr) -> ast.expr:
    """Return what stands for an item of what a variable holds."""
    return ast.Subscript(items, ast.Constant(0))


def _target(names: ast.expr) -> ast.expr:
    """Return the parameters that `pytest.mark.parametrize` names."""
    words = names.value.split(",") if isinstance(names, ast.Constant) and isinstance(names.value, str) else []
    words = words or [getattr(name, "value", "") for name in getattr(names, "elts", ())]
    return ast.Tuple([ast.Name(word.strip()) for word in words]) if len(words) != 1 else ast.Name(words[0].strip())


def _parameter(item: ast.expr) -> ast.expr:
    """Return what one item of `pytest.mark.parametrize` holds."""
    match item:
        case ast.Call(func=ast.Attribute(attr="param") | ast.Name(id="param"), args=[one]):
            return one
        case ast.Call(func=ast.Attribute(attr="param") | ast.Name(id="param"), args=args):
            return ast.Tuple(args)
    return item


def _is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "type"
