"""Rival: the first layers of a pre-trained checkpoint, fine-tuned with the labels (Sajjad et al. 2022)."""

from dataclasses import replace
from pathlib import Path

import torch

from archwright.configs import training as to
from archwright.networks.embeddings import keep_tokens
from archwright.networks.pruned import PrunedConfig, PrunedNetwork
from archwright.rivals import NoRival, RivalRequest, RivalResult
from archwright.rivals.checkpoint import find_pretrained
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec, parameters
from archwright.training.objectives.finetune import load_student_and_task
from archwright.training.pipeline import prepare_context, run_training
from archwright.training.task_data import prune_vocabulary, save_network

PASSES = 1e6
"""Over the training rows: more than there is time for, so that the minutes end the training."""


def train_first_layers(request: RivalRequest) -> RivalResult:
    """Cuts the checkpoint to the size of the student and fine-tunes it at the preset's rates until the time is up."""
    cut, config = request.folder / "checkpoint", request.config
    if not cut.exists():
        cut_checkpoint(request, cut)
    schedule = to.ScheduleOptions(
        epochs=PASSES,
        minutes=request.minutes,
        batch_size=config.schedule.batch_size,
        accumulate=config.schedule.accumulate,
        precision=config.schedule.precision,
        restart_collapsed=config.schedule.restart_collapsed,
        checkpoint_seconds=config.schedule.checkpoint_seconds,
    )
    result = run_training(plain_config(config, cut, schedule), request.folder / "training")
    return RivalResult(
        describe_cut(PrunedConfig.from_pretrained(cut), find_pretrained(request.checkpoint)),
        result["parameters"],
        result["seconds"]["total"],
        result["validation"]["after"],
        result["steps"],
    )


def plain_config(config: to.TrainConfig, model: Path | str, schedule: to.ScheduleOptions) -> to.TrainConfig:
    """The same task, learnt by trained weights from its labels alone."""
    return replace(
        config,
        student=to.StudentOptions(model=str(model), pooling=config.student.pooling),
        objective=to.ObjectiveOptions(preset=config.objective.preset),
        teaching=to.TeachingOptions(),
        schedule=schedule,
        checks=to.CheckOptions(submission=False),
    )


def cut_checkpoint(request: RivalRequest, folder: Path) -> None:
    """Writes as many first layers as fit beside the whole token table, else beside the tokens of the training rows."""
    checkpoint = find_pretrained(request.checkpoint)
    context = prepare_context(plain_config(request.config, checkpoint, to.ScheduleOptions()), request.folder)
    task_data, network = load_student_and_task(context)
    spec = first_layers_within(network, request.parameters)
    if spec is None:
        task_data = prune_vocabulary(task_data, "task", request.config.task.max_length)
        assert task_data.vocabulary is not None
        keep_tokens(network, torch.from_numpy(task_data.vocabulary.kept))
        spec = first_layers_within(network, request.parameters)
    if spec is None:
        anatomy = read_anatomy(network.config)
        least = parameters(anatomy, first_layers(network, 1))
        raise NoRival(f"one layer of {Path(checkpoint).name} has {least:,} parameters with the task's tokens alone")
    save_network(extract(network, spec), task_data, folder)


def first_layers(network: PrunedNetwork, depth: int) -> SubnetSpec:
    anatomy = read_anatomy(network.config)
    return anatomy.full[:depth] + (LayerSpec(0, 0),) * (anatomy.layers - depth)


def first_layers_within(network: PrunedNetwork, most: int) -> SubnetSpec | None:
    """The most first layers of the network that have no more parameters in all; None: not even one has."""
    anatomy = read_anatomy(network.config)
    specs = (first_layers(network, depth) for depth in range(anatomy.layers, 0, -1))
    return next((spec for spec in specs if parameters(anatomy, spec) <= most), None)


def describe_cut(config: PrunedConfig, checkpoint: str) -> str:
    depth = len(config.layers)
    layers = "first layer" if depth == 1 else f"first {depth} layers"
    return f"{layers} of {Path(checkpoint).name}, {config.backbone['vocab_size']:,} tokens"
