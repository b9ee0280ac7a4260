"""lts-gpt2: the counts of our networks are the published ones for every row, and broken files are told apart."""

from collections import Counter
from pathlib import Path
from shutil import copytree

import pytest
from scipy.stats import kendalltau, spearmanr

from archwright.benchmarks import BENCHMARKS, BenchmarkTable
from archwright.benchmarks.lts_gpt2 import INNER, INNERS, load_lts_gpt2
from archwright.errors import BadInput
from archwright.networks.lts_gpt2 import meta_network
from archwright.spaces.lts_gpt2 import LtsGpt2Space


@pytest.fixture(scope="module")
def original(data_folder: Path) -> Path:
    folder = data_folder / "lts-gpt2"
    if not folder.is_dir():
        pytest.skip(f"no test data: {folder} is not a folder")
    return folder


@pytest.fixture(scope="module")
def benchmark(original: Path) -> BenchmarkTable:
    return BENCHMARKS["lts-gpt2"].load(original, "trained")


def test_all_rows_are_there_and_either_folder_will_do(benchmark: BenchmarkTable, original: Path) -> None:
    assert len(benchmark.rows) >= 120
    assert benchmark.missing == ()
    assert load_lts_gpt2(original / INNER) == benchmark
    assert benchmark.licence == "MIT"
    assert set(benchmark.targets) == {"test_ppl", "valid_ppl"} == set(benchmark.rows[0].trained)


def test_the_first_row_is_as_the_files_have_it(benchmark: BenchmarkTable) -> None:
    row = benchmark.rows[0]
    assert row.id == "config_0_j0"
    assert row.trained == {"test_ppl": -45.11893898899607, "valid_ppl": -45.022968707221274}
    assert [row.config[f"d_inner{layer}"] for layer in range(6)] == [1071, 640, 1286, 800, 1871, 512]
    assert [row.config[name] for name in ("n_layer", "d_model", "d_embed", "div_val")] == [5, 128, 256, 4]


def test_counts_are_the_published_ones_for_every_row(benchmark: BenchmarkTable) -> None:
    """Counted on the modules of real networks, without memory for their weights."""
    space = benchmark.space
    assert isinstance(space, LtsGpt2Space)
    ours = {row.id: meta_network(space.plan(row.config)).sizes() for row in benchmark.rows}
    assert ours == {row.id: row.published for row in benchmark.rows}


def test_the_space_counts_the_same(benchmark: BenchmarkTable) -> None:
    for row in benchmark.rows[:10]:
        counts = benchmark.space.counts(row.config)
        published = {"total": counts.parameters, "nonembedding": counts.nonembedding}
        published |= {"Attn": counts.attention, "FFN": counts.ffn}
        assert published.items() <= row.published.items()


GOLDEN = {"Attn": (0.981, 0.894), "FFN": (0.953, 0.820), "nonembedding": (0.966, 0.849), "total": (0.678, 0.524)}
"""Spearman and Kendall with test perplexity on the 120 rows of the test data."""


@pytest.mark.parametrize("name", GOLDEN)
def test_how_well_sizes_alone_rank(benchmark: BenchmarkTable, name: str) -> None:
    sizes = [row.published[name] for row in benchmark.rows]
    trained = [row.trained["test_ppl"] for row in benchmark.rows]
    found = float(spearmanr(sizes, trained)[0]), float(kendalltau(sizes, trained)[0])
    assert name != "Attn" or found[0] >= 0.97
    if len(benchmark.rows) == 120:
        assert found == pytest.approx(GOLDEN[name], abs=0.0006)


def test_cells_are_large_enough_to_rank_within(benchmark: BenchmarkTable) -> None:
    cells = Counter(row.cell for row in benchmark.rows)
    assert len(cells) == 12
    assert min(cells.values()) >= 5
    assert benchmark.rows[0].cell == "2-6 layers, 128 wide"


def test_some_rows_are_narrower_inside_than_the_grid_allows(benchmark: BenchmarkTable) -> None:
    grid, narrow = LtsGpt2Space("grid"), 0
    for row in benchmark.rows:
        inners = [row.config[f"d_inner{layer}"] for layer in range(row.config["n_layer"])]
        narrow += min(inners) < 2 * row.config["d_model"]
        assert grid.domain.widening * row.config["d_model"] <= 1024
    assert narrow >= 19


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    """A copy of the architectures of config_0, to spoil."""
    inner = tmp_path / INNER
    copytree(original / INNER / "config_0", inner / "config_0")
    for name in ("ppl_summary.yaml", "params_summary.yaml"):
        entries = (original / INNER / name).read_text().split("config_")
        (inner / name).write_text("".join(f"config_{entry}" for entry in entries if entry.startswith("0_")))
    return inner


def reasons(found: BenchmarkTable) -> dict[str, str]:
    return {one.id: one.reason for one in found.missing}


MODEL = "config_0/j0/model_config.yaml"
ROW_FAULTS = {
    "no YAML": (MODEL, "adaptive: true", "adaptive: [", "must be readable YAML"),
    "an impossible date": (MODEL, "d_model: 128", "d_model: 2001-99-99", "must be readable YAML"),
    "key gone": (MODEL, "d_model: 128\n", "", "has no d_model"),
    "too few layers": (MODEL, "n_layer: 5", "n_layer: 6", "one entry for each of 6 layers"),
    "outside the space": (MODEL, "d_embed: 256", "d_embed: 200", "d_embed must be one of 128, 256, 512, got 200"),
    "a number as text": (MODEL, "- 1071", "- many", "d_inner0 must be an integer, got 'many'"),
    "another network": (MODEL, "tie_weight: true", "tie_weight: false", "tie_weight must be True, got False"),
    "not a number": ("ppl_summary.yaml", "test_ppl: 45.11893898899607", "test_ppl: .nan", "test_ppl in ppl_summary"),
    "infinite": ("ppl_summary.yaml", "valid_ppl: 45.022968707221274", "valid_ppl: .inf", "positive number, got inf"),
    "result gone": ("ppl_summary.yaml", "config_0_j0:", "config_0_j77:", "ppl_summary.yaml has no entry config_0_j0"),
    "count gone": ("params_summary.yaml", "Attn: 330240.0", "Attn:", "Attn in params_summary.yaml must be a positive"),
}


@pytest.mark.parametrize(("name", "old", "new", "reason"), ROW_FAULTS.values(), ids=ROW_FAULTS)
def test_what_is_wrong_with_one_architecture_costs_that_row_alone(
    copy: Path, name: str, old: str, new: str, reason: str
) -> None:
    whole, path = load_lts_gpt2(copy), copy / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    spoilt = load_lts_gpt2(copy)
    assert reason in reasons(spoilt)["config_0_j0"]
    assert "\n" not in reasons(spoilt)["config_0_j0"]
    assert spoilt.rows == whole.rows[1:]


def test_a_result_without_its_architecture_is_missing(copy: Path) -> None:
    (copy / MODEL).unlink()
    assert reasons(load_lts_gpt2(copy)) == {
        "config_0_j0": f"{copy / MODEL} must be a file with the keys of an architecture"
    }


FILE_FAULTS = {
    "no YAML": ("config_0_j0: {", "must be readable YAML"),
    "a list": ("- 1", "must map names of architectures to entries, got list"),
    "empty": ("", "must map names of architectures to entries, got NoneType"),
}


@pytest.mark.parametrize(("text", "message"), FILE_FAULTS.values(), ids=FILE_FAULTS)
@pytest.mark.parametrize("name", ["ppl_summary.yaml", "params_summary.yaml"])
def test_a_broken_summary_is_named(copy: Path, name: str, text: str, message: str) -> None:
    (copy / name).write_text(text)
    with pytest.raises(BadInput, match=f"{name} {message}"):
        load_lts_gpt2(copy)


def test_a_folder_without_the_benchmark_says_where_to_download_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"params_summary\.yaml must be a file .*https://github\.com/microsoft/archai"):
        load_lts_gpt2(tmp_path)


def test_summaries_without_any_architecture_are_no_benchmark(tmp_path: Path) -> None:
    for name in ("ppl_summary.yaml", "params_summary.yaml"):
        (tmp_path / name).write_text("config_0_j0: {test_ppl: 3.0, valid_ppl: 3.0}")
    with pytest.raises(
        BadInput, match=r"got no usable one \(.*must be a file with the keys of an architecture\); download them from"
    ):
        load_lts_gpt2(tmp_path)


def test_other_variants_are_refused(original: Path) -> None:
    with pytest.raises(BadInput, match="must be one of trained, lm1b, got 'described'"):
        BENCHMARKS["lts-gpt2"].load(original, "described")


@pytest.fixture
def sibling(copy: Path) -> Path:
    """A folder as random_GPT2_lm1b is: another vocabulary, and cutoffs that fit it."""
    folder = copy.rename(copy.parent / INNERS["lm1b"])
    for path in folder.glob("config_*/j*/model_config.yaml"):
        text = path.read_text()
        for old, new in (("- 19997", "- 59997"), ("- 39997", "- 99997"), ("- 199997", "- 639997")):
            assert old in text
            text = text.replace(old, new)
        text = text.replace("50264", "267735").replace("tgt_len: 192", "tgt_len: 32")
        path.write_text(text)
    return folder


def test_lm1b_has_the_vocabulary_of_its_files(sibling: Path, benchmark: BenchmarkTable) -> None:
    found = BENCHMARKS["lts-gpt2"].load(sibling.parent, "lm1b")
    assert found.missing == () and found.rows == load_lts_gpt2(sibling, "trained").rows
    space = found.space
    assert isinstance(space, LtsGpt2Space)
    assert (space.words, space.cutoffs, space.positions) == (267735, (59997, 99997, 639997), 32)
    row = found.rows[0]
    config = row.config
    assert [config[name] for name in ("d_model", "d_embed", "div_val")] == [128, 256, 4]
    sizes, ends = [256, 64, 16], [0, 59997, 99997, 267735]  # by hand: a table and a projection per cluster
    tables = sum((end - start) * size for start, end, size in zip(ends[:-1], ends[1:], sizes, strict=True))
    embedding = tables + sum(sizes) * 128 + 32 * 128
    head = 267735 + (256 * 2 + 2) + 256 * 128  # biases, the choice of a cluster, the projection that is not tied
    counts = space.counts(config)
    assert counts.nonembedding == benchmark.space.counts(benchmark.rows[0].config).nonembedding
    assert counts.parameters == counts.nonembedding + embedding + head


def test_architectures_of_two_vocabularies_are_told_apart(sibling: Path) -> None:
    path = sibling / MODEL
    path.write_text(path.read_text().replace("267735", "50264"))
    found = load_lts_gpt2(sibling)
    assert "not those of the other architectures" in reasons(found)["config_0_j0"]


@pytest.mark.parametrize("wrong", ["- 59997.5", "- 199997", "- none"])
def test_cutoffs_that_cannot_be_are_named(sibling: Path, wrong: str) -> None:
    path = sibling / MODEL
    path.write_text(path.read_text().replace("- 59997", wrong, 1))
    assert (
        "cutoffs must be rising whole numbers, then n_token (267735)" in reasons(load_lts_gpt2(sibling))["config_0_j0"]
    )
