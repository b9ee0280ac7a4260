"""Peers in environments of their own; these need the package index."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from experiments.peers import environments
from experiments.peers.environments import peer_python
from experiments.peers.job import Job

ROOT = Path(__file__).parents[2]
PRUNE = """
from experiments.peers.torch_pruning_peer import prune_to
from experiments.peers.network import predict
from tests.peers.test_network import tiny_classifier, tiny_rows

network, rows = tiny_classifier(), tiny_rows()
whole = network.prunable_parameters()
prune_to(network, 0.6 * whole, rows, seed=0)
print(network.prunable_parameters() / whole, predict(network, rows).shape, network.shape())
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}


def test_another_torch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "version", lambda _: "2.9.1")
    with pytest.raises(SystemExit, match=r"peers are compared under torch 2\.13\.0, got 2\.9\.1"):
        peer_python("torch-pruning", tmp_path)


@pytest.mark.slow
def test_torch_pruning_prunes_to_a_size_in_its_own_environment(tmp_path: Path) -> None:
    python = peer_python("torch-pruning", tmp_path)
    assert python == peer_python("torch-pruning", tmp_path)  # made once
    told = subprocess.run([python, "-c", PRUNE], env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
    share = float(told.split()[0])
    assert 0.5 < share <= 0.65 and "(64, 2)" in told
    alone = subprocess.run([sys.executable, "-c", "import torch_pruning"], capture_output=True)
    assert alone.returncode, "the peer is not installed beside archwright"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["optipfair-width", "optipfair-depth"])
def test_optipfair_prunes_a_decoder_and_records_both_perplexities(tmp_path: Path, method: str) -> None:
    sizes = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 96, "head_dim": 8, "tie_word_embeddings": True}
    config = LlamaConfig(num_hidden_layers=10, num_attention_heads=4, num_key_value_heads=2, **sizes)
    LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "rows.json").write_text(json.dumps({"pretrained": str(tmp_path / "model")}))
    for name in ("train", "test"):
        ids = np.random.default_rng(0).integers(60, size=(16, 9))
        np.savez(rows / f"{name}.npz", ids=ids[:, :-1], targets=ids[:, 1:])
    job = Job(method, "lm", 0, rows, tmp_path / "original", tmp_path / "out", 0.2, sizes=(90, 80, 50))
    python = peer_python(method, tmp_path / "environments")
    command = [python, "-m", "experiments.peers.optipfair_peer", job.write()]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    networks = {network["name"]: network for network in json.loads(job.networks_file.read_text())["networks"]}
    assert list(networks) == ["original", *(f"{size}%{end}" for size in (90, 80, 50) for end in ("-calibrated", ""))]
    for size in (90, 80, 50):
        assert networks[f"{size}%"]["share"] == pytest.approx(size / 100, abs=0.03)
        assert networks[f"{size}%"]["steps"] > 0
        assert networks[f"{size}%"]["perplexity"] != networks[f"{size}%-calibrated"]["perplexity"]
