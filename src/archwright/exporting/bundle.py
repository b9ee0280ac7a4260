"""Classes of the project as one Python file that needs nothing of it: what a checkpoint carries to load anywhere.

Only what the classes need is taken, module by module in the order in which they import each other; imports of the
project are dropped, all others stand once at the top. A class of another package is taken with what it needs of that
package. A name can mean only one thing in one file, so two definitions of it are refused.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path

PROJECT = __name__.partition(".")[0]
HEADER = '"""Written by archwright: the classes of this checkpoint, for transformers with trust_remote_code=True."""\n'


@dataclass(frozen=True)
class Statement:
    """A top-level statement with the string that describes it, if any."""

    defines: frozenset[str]
    """Empty: it is there for its effect."""
    uses: frozenset[str]
    text: str


@dataclass(frozen=True)
class SourceModule:
    """A module of the project, or of a package that adds to it."""

    name: str
    statements: tuple[Statement, ...]
    ours: dict[str, tuple[str, str]]
    """Names that come from the project or from its own package: module and name there."""
    theirs: dict[str, str]
    """Names that come from elsewhere: the line that imports each."""

    def definition(self, name: str) -> int | None:
        """The number of the statement that defines a name."""
        return next((number for number, each in enumerate(self.statements) if name in each.defines), None)


@dataclass
class Bundle:
    """What was found to be needed so far; modules in the order in which they must stand."""

    modules: dict[str, set[int]] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    """Where each name comes from: a module of ours, or the line that imports it."""
    registries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Registries that become dicts of these members, each given as module:attribute."""

    def take(self, module: str, name: str) -> None:
        """Takes a name as a module sees it, with everything it needs in turn."""
        source = read_module(module)
        if name in source.ours:
            origin, there = source.ours[name]
            if name != there:
                raise ValueError(f"a bundle keeps names as they are, got {name!r} imported under another in {module}.")
            self.take(origin, there)
        elif name in source.theirs:
            self.claim(name, source.theirs[name])
        elif (number := source.definition(name)) is not None:
            self.claim(name, module)
            if name not in self.registries:
                self.take_statement(source, number)
            for target in self.registries.get(name, {}).values():
                self.take(*target.split(":"))

    def take_statement(self, source: SourceModule, number: int) -> None:
        taken = self.modules.setdefault(source.name, set())
        if number not in taken:
            taken.add(number)
            for name in sorted(source.statements[number].uses):
                self.take(source.name, name)

    def claim(self, name: str, home: str) -> None:
        known = self.homes.setdefault(name, home)
        if known != home:
            raise ValueError(f"one file can have one {name!r}, got one of {known!r} and one of {home!r}; rename one.")

    def text(self) -> str:
        lines = {home for home in self.homes.values() if " " in home}
        parts = [HEADER + "\n" + "\n".join(merge_imports(lines))]
        for module in sort_modules(self.modules):
            source, taken = read_module(module), self.modules[module]
            parts.append(f"# {module}")
            parts += [each.text for number, each in enumerate(source.statements) if number in taken]
        for name, members in self.registries.items():
            entries = ", ".join(f'"{key}": {target.partition(":")[2]}' for key, target in members.items())
            parts.append(f"{name} = {{{entries}}}")
        return "\n\n\n".join(parts) + "\n"


def bundle_classes(classes: Sequence[type], *, registries: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The file with these classes; in place of a registry it has a dict of the members named, as module:attribute."""
    bundle = Bundle(registries=registries or {})
    for each in classes:
        bundle.take(each.__module__, each.__name__)
    return bundle.text()


def merge_imports(lines: Iterable[str]) -> list[str]:
    """One line per package, whole packages first."""
    packages: dict[str, list[str]] = {}
    for line in sorted(lines, key=lambda line: (line.startswith("from "), line)):
        start, _, name = line.rpartition("import ")
        packages.setdefault(start or line, []).append(name)
    return [
        start if start.startswith("import ") else f"{start}import {', '.join(names)}"
        for start, names in packages.items()
    ]


def sort_modules(modules: dict[str, set[int]]) -> list[str]:
    """Every module after those it imports."""
    order: list[str] = []

    def visit(module: str) -> None:
        if module not in seen:
            seen.add(module)
            for other, _ in read_module(module).ours.values():
                visit(other)
            order.append(module)

    seen: set[str] = set()
    for module in modules:
        visit(module)
    return [module for module in order if module in modules]


@cache
def read_module(module: str) -> SourceModule:
    """A module as statements; nothing of it is run."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"a bundle is made of modules, got {module!r}.")
    text = Path(spec.origin).read_text(encoding="utf-8")
    tree = ast.parse(text)
    ours: dict[str, tuple[str, str]] = {}
    theirs: dict[str, str] = {}
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        origin = ""
        if isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), module.rpartition(".")[0])
        if origin.partition(".")[0] in (PROJECT, module.partition(".")[0]):
            ours |= {alias.asname or alias.name: (origin, alias.name) for alias in node.names}
        else:
            start = f"from {node.module} import " if isinstance(node, ast.ImportFrom) else "import "
            for alias in node.names:
                end = f" as {alias.asname}" if alias.asname else ""
                theirs[alias.asname or alias.name.partition(".")[0]] = start + alias.name + end
    return SourceModule(module, tuple(split_statements(tree, text.splitlines())), ours, theirs)


def split_statements(tree: ast.Module, lines: list[str]) -> Iterator[Statement]:
    """All but imports and the module's own description; names that are only local may bring along too much."""
    body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if is_description(node):
            continue
        assigns = isinstance(node, ast.Assign | ast.AnnAssign)
        end = after.end_lineno if after is not None and is_description(after) and assigns else node.end_lineno
        start = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
        uses = frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        yield Statement(defined_names(node), uses, "\n".join(lines[start - 1 : end]))


def is_description(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def defined_names(node: ast.stmt) -> frozenset[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return frozenset({node.name})
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    flat = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return frozenset(each.id for each in flat if isinstance(each, ast.Name))
