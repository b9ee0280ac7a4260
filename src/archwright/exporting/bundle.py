"""Classes of the project as one Python file that needs nothing of it: what a checkpoint carries to load anywhere.

Only what the classes need is taken, module by module in the order in which they import each other; imports of the
project are dropped, all others stand once at the top. A name can mean only one thing in one file, so two definitions of
it are refused.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
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
class Source:
    """A module of the project."""

    name: str
    statements: tuple[Statement, ...]
    ours: dict[str, tuple[str, str]]
    """Names that come from the project: module and name there."""
    theirs: dict[str, str]
    """Names that come from elsewhere: the line that imports each."""

    def of(self, name: str) -> Statement | None:
        return next((each for each in self.statements if name in each.defines), None)


@dataclass
class Bundle:
    """What was found to be needed so far; modules in the order in which they must stand."""

    modules: dict[str, set[int]] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    """Where each name comes from: a module of ours, or the line that imports it."""
    registries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Registries that become dicts of these members, each given as module:attribute."""

    def need(self, module: str, name: str) -> None:
        """Takes a name as a module sees it, with everything it needs in turn."""
        source = source_of(module)
        if name in source.ours:
            self.need(*source.ours[name])
        elif name in source.theirs:
            self.claim(name, source.theirs[name])
        elif (found := source.of(name)) is not None:
            self.claim(name, module)
            if name not in self.registries:
                self.take(source, source.statements.index(found))
            for target in self.registries.get(name, {}).values():
                self.need(*target.split(":"))

    def take(self, source: Source, number: int) -> None:
        taken = self.modules.setdefault(source.name, set())
        if number not in taken:
            taken.add(number)
            for name in sorted(source.statements[number].uses):
                self.need(source.name, name)

    def claim(self, name: str, home: str) -> None:
        known = self.homes.setdefault(name, home)
        if known != home:
            raise ValueError(f"one file can have one {name!r}, got one of {known!r} and one of {home!r}; rename one.")

    def text(self) -> str:
        lines = {home for home in self.homes.values() if " " in home}
        parts = [HEADER + "\n" + "\n".join(merged(lines))]
        for module in ordered(self.modules):
            source, taken = source_of(module), self.modules[module]
            parts.append(f"# {module}")
            parts += [each.text for number, each in enumerate(source.statements) if number in taken]
        for name, members in self.registries.items():
            entries = ", ".join(f'"{key}": {target.partition(":")[2]}' for key, target in members.items())
            parts.append(f"{name} = {{{entries}}}")
        return "\n\n\n".join(parts) + "\n"


def bundled(classes: Sequence[type], *, registries: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The file with these classes; in place of a registry it has a dict of the members named, as module:attribute."""
    bundle = Bundle(registries=registries or {})
    for made in classes:
        bundle.need(made.__module__, made.__name__)
    return bundle.text()


def merged(lines: Iterable[str]) -> list[str]:
    """One line per package, whole packages first."""
    packages: dict[str, list[str]] = {}
    for line in sorted(lines, key=lambda line: (line.startswith("from "), line)):
        start, _, name = line.rpartition("import ")
        packages.setdefault(start or line, []).append(name)
    return [one if one.startswith("import ") else f"{one}import {', '.join(names)}" for one, names in packages.items()]


def ordered(modules: dict[str, set[int]]) -> list[str]:
    """Every module after those it imports."""
    found: list[str] = []

    def visit(module: str) -> None:
        if module not in seen:
            seen.add(module)
            for other, _ in source_of(module).ours.values():
                visit(other)
            found.append(module)

    seen: set[str] = set()
    for module in modules:
        visit(module)
    return [module for module in found if module in modules]


@cache
def source_of(module: str) -> Source:
    """A module as statements; nothing of it is run."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"a bundle is made of modules, got {module!r}.")
    text = Path(spec.origin).read_text(encoding="utf-8")
    tree = ast.parse(text)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    ours = {alias.asname or alias.name: (found, alias.name) for found, alias in of_project(imports)}
    renamed = [name for name, (_, there) in ours.items() if name != there]
    if renamed:
        raise ValueError(f"a bundle keeps names as they are, got {renamed[0]!r} imported under another in {module}.")
    return Source(module, tuple(statements(tree, text.splitlines())), ours, dict(of_others(imports)))


def of_project(imports: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.alias]]:
    for node in imports:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PROJECT:
            yield from ((str(node.module), alias) for alias in node.names)


def of_others(imports: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Names and the lines that import each of them alone."""
    for node in imports:
        start = f"from {node.module} import " if isinstance(node, ast.ImportFrom) else "import "
        if start.startswith(f"from {PROJECT}"):
            continue
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            name = alias.asname or alias.name.partition(".")[0]
            yield name, start + alias.name + (f" as {alias.asname}" if alias.asname else "")


def statements(tree: ast.Module, lines: list[str]) -> Iterator[Statement]:
    """All but imports and the module's own description."""
    body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    for number, node in enumerate(body):
        if describes(node):
            continue
        after = body[number + 1] if number + 1 < len(body) else None
        end = after.end_lineno if after is not None and describes(after) and assigns(node) else node.end_lineno
        yield Statement(defined(node), used(node), "\n".join(lines[first_line(node) - 1 : end]))


def describes(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def assigns(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign)


def first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def defined(node: ast.stmt) -> frozenset[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return frozenset({node.name})
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)] if assigns(node) else []
    flat = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return frozenset(each.id for each in flat if isinstance(each, ast.Name))


def used(node: ast.stmt) -> frozenset[str]:
    """All names in a statement; one that is only local may bring along more than is needed, never less."""
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
