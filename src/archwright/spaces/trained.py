"""A space whose designs also say how long each of them is trained: what standard NAS searches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archwright.search import EPOCHS, Bits, Config
from archwright.spaces.subnetwork import SubnetSpace
from archwright.subnet.spec import Anatomy, SubnetSpec


@dataclass(frozen=True)
class TrainedSpace:
    """The sub-networks of `space`, each with one of `epochs` (rising) as one more choice."""

    space: SubnetSpace
    epochs: tuple[float, ...]

    @property
    def name(self) -> str:
        return self.space.name

    @property
    def anatomy(self) -> Anatomy:
        return self.space.anatomy

    @property
    def choices(self) -> Mapping[str, Sequence[float] | Sequence[int] | Bits]:
        return {**self.space.choices, EPOCHS: self.epochs}

    def build(self, config: Config) -> SubnetSpec:
        return self.space.build(config)

    def canonical(self, config: Config) -> Config:
        """The same network after another number of epochs is another one."""
        return {**self.space.canonical(config), EPOCHS: config[EPOCHS]}
