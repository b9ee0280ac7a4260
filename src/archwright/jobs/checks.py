"""What can be wrong with the options of `compress`, found before anything is written or trained."""

from archwright.errors import BadInput
from archwright.jobs import options as o
from archwright.jobs.scene import Scene
from archwright.jobs.searching import check_latency
from archwright.jobs.training import fresh
from archwright.networks.load import stock_config, supernet_config
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives import measure_latency
from archwright.search import smallest
from archwright.spaces.subnetwork import SubnetSpace, subnet_space
from archwright.subnet.keep import anatomy


def check_training(settings: o.Supernet, output: o.Output) -> None:
    """Numbers that no training can use."""
    rules = {
        "--epochs": settings.epochs > 0,
        "--original-epochs": settings.original_epochs is None or settings.original_epochs >= 0,
        "--learning-rate": 0 < settings.learning_rate < 1,
        "--batch-size": settings.batch_size >= 1,
        "--temperature": settings.temperature > 0,
        "--checkpoint-seconds": settings.checkpoint_seconds >= 0,
        "--seed": output.seed >= 0,
        "--threads": output.threads >= 0,
    }
    for name, kept in rules.items():
        if not kept:
            value = {**vars(settings), **vars(output)}[name[2:].replace("-", "_")]
            raise BadInput(f"{name} is out of range, got {value}; see `archwright compress --help`.")


def space_before(scene: Scene, settings: o.Supernet) -> SubnetSpace:
    """The space as it can be known before the weights are loaded."""
    config = supernet_config(stock_config(scene.source), labels=scene.task.labels, pooling="cls")
    return subnet_space(settings.space, anatomy(config))


def check_network(scene: Scene, model: o.Model, settings: o.Supernet, budget: o.Budget, measure: o.Measure) -> None:
    """What is wrong with the weights, or asks too much of them, found before anything is written."""
    network = fresh(scene, model, settings)
    check_room(
        network, {"--max-length": max(e.lengths.max() for e in scene.encoded.values()), "--length": measure.length}
    )
    if budget.latency_ms is None:
        return
    space = subnet_space(settings.space, anatomy(network.config))
    keeps = {"smallest": space.build(smallest(space.choices))}
    timings = measure_latency(network, keeps, batch=1, length=scene.length(measure.length), rounds=measure.rounds)
    check_latency(budget.latency_ms, timings["smallest"].low)


def check_room(network: PrunedNetwork, lengths: dict[str, int]) -> None:
    positions = network.backbone.embeddings.position_embeddings
    room = positions.num_embeddings - (0 if positions.padding_idx is None else positions.padding_idx + 1)
    for option, length in lengths.items():
        if length > room:
            raise BadInput(f"{option} must be at most {room}, the positions of this model, got {length} tokens.")
