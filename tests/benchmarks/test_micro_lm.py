"""micro-lm: sizes matched and exact, results as the file has them, the held-out rule, and broken files told apart."""

import csv
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch

from archwright.benchmarks import BENCHMARKS
from archwright.benchmarks.micro_lm import BUDGETS, FILE, SHORT, STEPS, TABLES, read_design
from archwright.data.text.kinds import TEXT_KINDS
from archwright.errors import BadInput
from archwright.networks.flexibert.mixers import MIXERS
from archwright.spaces.micro_lm import MICRO_LM, WORDS
from experiments.micro_benchmark.designs import CELLS, blocks, design_name, is_held_out, jobs, layers_of
from experiments.micro_benchmark.muon import orthogonal

RECORD = BENCHMARKS["micro-lm"]
NETWORKS = {design_name(job.config): job.config for job in jobs()}
COLUMNS = ("design", "seed", "rate", "steps", "loss", "parameters", "nonembedding", "seconds")


def write(folder: Path, designs: list[str], *, seeds: tuple[int, ...] = (0, 1), **changed: str) -> Path:
    """A file in which every network gets better by 1 with every budget."""
    with (folder / FILE).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number, design in enumerate(designs):
            for seed in seeds:
                for place, steps in enumerate(sorted({*SHORT, *BUDGETS.values()})):
                    line = dict(
                        zip(
                            COLUMNS, (design, seed, 1.0, steps, 9 - place + number + seed / 4, 5, 4, place), strict=True
                        )
                    )
                    writer.writerow({**line, **changed}.values())
    return folder


def test_every_line_that_is_shipped_has_the_size_of_its_network() -> None:
    with (TABLES / FILE).open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert lines
    for design, parameters, nonembedding in {(x["design"], x["parameters"], x["nonembedding"]) for x in lines}:
        counts = MICRO_LM.counts(read_design(design, MICRO_LM))
        assert (counts.parameters, counts.nonembedding) == (int(parameters), int(nonembedding)), design
        assert design in NETWORKS and not is_held_out(NETWORKS[design])


def test_the_golden_counts() -> None:
    """By hand: 1,024 words, 16 positions, 1 segment and a norm of width 48; layers with 6 and 10 squares of it."""
    config = read_design("2x48 SA/SDP:2:small SA/SDP:4:large", MICRO_LM)
    counts = MICRO_LM.counts(config)
    tables = (1024 + 16 + 1) * 48
    layers = sum(4 * 48 * 48 + 4 * 48 + 2 * 48 * ffn + ffn + 48 + 4 * 48 for ffn in (48, 144))
    assert counts.parameters == tables + 2 * 48 + layers and counts.nonembedding == 2 * 48 + layers


def test_networks_of_a_cell_have_the_same_size_whatever_their_operators() -> None:
    sizes = defaultdict(list)
    for config in NETWORKS.values():
        sizes[config["layers"], config["hidden"]].append(MICRO_LM.counts(config).nonembedding)
    assert set(sizes) == set(CELLS) and all(max(cell) / min(cell) < 1.003 for cell in sizes.values())


def test_every_block_has_each_operator_equally_often_at_each_place_of_each_cell() -> None:
    for block in blocks():
        count = Counter(
            (config["layers"], config["hidden"], place, layer.operation)
            for config in block
            for place, layer in enumerate(layers_of(config))
        )
        assert set(count.values()) == {1} and len(count) == 2 * (2 + 4) * len(MIXERS)


def test_the_order_of_the_work() -> None:
    """168 networks, both seeds together, ten networks of the gate first; three tenths are kept apart."""
    order = list(jobs())
    assert len(NETWORKS) == 168 and len({(design_name(j.config), j.seed, j.rate) for j in order}) == len(order)
    assert all(
        a.config == b.config and (a.seed, b.seed) == (0, 1) for a, b in zip(order[:48:2], order[1:48:2], strict=True)
    )
    gate = [job.config for job in order[:20:2]]
    assert {config["operation.0"] for config in gate} == set(MIXERS)
    assert {(c["layers"], c["hidden"]) for c in gate if c["operation.0"] == "SA/SDP"} == set(CELLS)
    assert 0.2 < np.mean([is_held_out(config) for config in NETWORKS.values()]) < 0.4


def test_results_are_means_over_seeds_and_short_trainings_have_a_cost(tmp_path: Path) -> None:
    designs = [name for name in NETWORKS][:3]
    table = RECORD.load(write(tmp_path, designs))
    first, second, _ = table.rows
    assert first.trained == {"loss": -4.125, "loss_half": -5.125, "loss_quarter": -6.125, "loss_eighth": -7.125}
    assert second.trained["loss"] == -5.125 and first.runs == {"seed 0": -4.0, "seed 1": -4.25}
    assert [(short.steps, short.result, short.seconds) for short in first.short] == [(50, -9.0, 0.0), (100, -8.0, 1.0)]
    assert max(BUDGETS.values()) == STEPS


def test_a_network_with_one_seed_is_missing(tmp_path: Path) -> None:
    designs = list(NETWORKS)[:2]
    write(tmp_path, designs)
    lines = (tmp_path / FILE).read_text().splitlines(keepends=True)
    (tmp_path / FILE).write_text("".join(lines[:-3]))
    table = RECORD.load(tmp_path)
    assert [row.id for row in table.rows] == designs[:1]
    assert table.missing[0].id == designs[1] and "both seeds" in table.missing[0].reason


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"loss": "nan"}, "must name a design and its loss"),
        ({"steps": "many"}, "not laid out"),
        ({"design": "2x48"}, "must name a design"),
        ({"design": "2x48 SA/SDP:2:huge SA/SDP:2:small"}, "size.0 must be one of small, large"),
        ({"design": "4x48 SA/SDP:2:small SA/SDP:2:small"}, "no usable network"),
    ],
)
def test_broken_files_are_refused_in_one_line(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words) as refusal:
        RECORD.load(write(tmp_path, list(NETWORKS)[:1], **changed))
    assert "\n" not in str(refusal.value)


def test_operators_work_from_the_first_step() -> None:
    """A changed word changes what is said about another one, about as much with any operator; positions differ."""
    ids = torch.randint(3, WORDS, (4, 16), generator=torch.Generator().manual_seed(0))
    other = ids.clone()
    other[:, 3] = (ids[:, 3] + 7) % WORDS
    shares = {}
    for operation in MIXERS:
        config = read_design(f"2x48 {operation}:2:small {operation}:4:large", MICRO_LM)
        network = MICRO_LM.network(config, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            before, after = (network.encoder(rows).last_hidden_state[:, 4] for rows in (ids, other))
        shares[operation] = float((before - after).norm() / before.norm())
    assert min(shares.values()) > 0.02 and max(shares.values()) < 1.5, shares


def test_the_vocabulary_of_the_package() -> None:
    encoder = TEXT_KINDS["micro"].encoder(Path("any"))
    assert encoder.size == WORDS and encoder.mask_id == 1
    assert encoder.encode("The <unk> of THE") == encoder.encode("the <unk> of the")
    tokenizer = TEXT_KINDS["micro"].tokenizer([], None)
    assert tokenizer("the <unk> of the")["input_ids"] == encoder.encode("the <unk> of the")
    assert len(encoder.encode("the <unk> of the")) == 4


def test_muon_steps_are_nearly_orthogonal() -> None:
    matrices = torch.randn(3, 24, 48, generator=torch.Generator().manual_seed(0))
    for batch in (matrices, matrices.mT):
        strengths = torch.linalg.svdvals(orthogonal(batch))
        assert strengths.min() > 0.6 and strengths.max() < 1.3
