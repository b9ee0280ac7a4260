"""One registry for every kind of thing: proxies, spaces, families, benchmarks, samplers, tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from archwright.errors import BadInput

Member = TypeVar("Member")


@dataclass(frozen=True)
class Lazy:
    """A member that is imported when it is first used; its description is known before."""

    target: str
    """module:attribute"""
    description: str = ""


class Registry(Mapping[str, Member], Generic[Member]):
    """Members of one kind by name: our own, and those that installed packages declare as Python entry points.

    A member is one record that holds everything the program must know about it. Names and the descriptions of `Lazy`
    members are known without importing anything, so that `--help` stays quick. Our own names come first, in the order
    given; a package cannot replace them.
    """

    def __init__(self, kind: str, members: Mapping[str, Member | Lazy], *, group: str | None = None) -> None:
        self.kind = kind
        self.group = group
        """Entry points of this group are members too, for example archwright.proxies."""
        self._members: dict[str, Member | Lazy] = dict(members)
        self._descriptions = {name: member.description for name, member in members.items() if isinstance(member, Lazy)}
        self._targets = {name: member.target for name, member in members.items() if isinstance(member, Lazy)}

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        found = entry_points(group=self.group) if self.group else ()
        return {entry.name: entry for entry in found if entry.name not in self._members}

    def __getitem__(self, name: str) -> Member:
        if name not in self._members and name in self._installed:
            self._members[name] = self._load(self._installed[name])
        member = self._members[name]
        if isinstance(member, Lazy):
            module, _, attribute = member.target.partition(":")
            member = self._members[name] = getattr(import_module(module), attribute)
        return member

    def _load(self, entry: EntryPoint) -> Any:
        try:
            return entry.load()
        except Exception as error:
            package = entry.dist.name if entry.dist else entry.value
            raise BadInput(
                f"the {self.kind} {entry.name!r} of the package {package} cannot be loaded "
                f"({type(error).__name__}: {error}); mend or uninstall that package."
            ) from error

    def __contains__(self, name: object) -> bool:
        return name in self._members or name in self._installed

    def __iter__(self) -> Iterator[str]:
        yield from self._members
        yield from (name for name in self._installed if name not in self._members)

    def __len__(self) -> int:
        return len({*self._members, *self._installed})

    def target(self, name: str) -> str:
        """module:attribute of a member that is lazy or comes from another package."""
        return self._targets[name] if name in self._targets else self._installed[name].value

    def find(self, name: str, *, option: str) -> Member:
        """The member of this name; BadInput with the nearest name when there is none."""
        if name not in self:
            close = get_close_matches(name, list(self), n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(self)}."
            raise BadInput(f"{option} must be a {self.kind}, got {name!r}{hint}")
        return self[name]

    def descriptions(self) -> dict[str, str]:
        """Name -> one line for `--help`; members of other packages are loaded for it."""
        return {name: self._describe(name) for name in self}

    def _describe(self, name: str) -> str:
        if self._descriptions.get(name):  # also after the member was loaded, which need not repeat it
            return self._descriptions[name]
        member = self[name]
        text = getattr(member, "description", None) or getattr(member, "__doc__", None) or ""
        return text.strip().splitlines()[0] if text.strip() else ""
