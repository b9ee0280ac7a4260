"""Devices other than the CPU, as far as a machine without a GPU can tell: fake ones, and bfloat16 on the CPU."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from archwright import devices
from archwright.compression import ray_search
from archwright.compression.budgets.targets import validate_target
from archwright.configs.compress import CompressConfig, MeasureOptions, SearchOptions
from archwright.errors import BadInput
from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.mixers import MIXERS
from archwright.objectives import latency
from archwright.subnet.anatomy import read_anatomy
from tests.tiny import tiny

WIDTH, HEADS = 64, 2


@pytest.mark.parametrize("tokens", [64, 256])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", ["LT/DFT", "LT/DCT"])
@pytest.mark.parametrize("autocast", [True, False], ids=["autocast", "bfloat16 weights"])
def test_transforms_are_exact_in_bfloat16(name: str, padded: bool, tokens: int, autocast: bool) -> None:
    torch.manual_seed(0)
    mixer = MIXERS[name](FlexiBertConfig(hidden_size=WIDTH), HEADS)
    hidden = torch.randn(2, tokens, WIDTH)
    mask = torch.ones(2, tokens, dtype=torch.bool)
    mask[1, tokens // 2 :] = False
    mask = mask if padded else None
    with torch.no_grad():
        exact = mixer(hidden, mask)
        if autocast:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                rounded = mixer(hidden, mask)
        else:
            rounded = mixer.to(torch.bfloat16)(hidden.bfloat16(), mask)
    assert float((rounded.float() - exact).norm() / exact.norm()) < 0.02


class Answer(torch.nn.Module):
    """A network that works on any device: real ones look at values, and meta tensors have none."""

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        return inputs["input_ids"] + 1


def test_latency_is_measured_on_the_device_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    network, meta = tiny("bert"), torch.device("meta")
    full = read_anatomy(network.config).full
    assert {p.device.type for p in latency.extract_for_timing(network, full, meta).parameters()} == {"meta"}
    assert {p.device.type for p in network.parameters()} == {"cpu"}
    monkeypatch.setattr(latency, "synchronize", lambda device: waited.append(device.type))
    monkeypatch.setattr(latency, "extract_for_timing", lambda model, spec, device: Answer().to(device))
    timings = latency.measure_latency(network, {"whole": full}, batch=1, length=8, rounds=3, device=meta)
    assert timings["whole"].median > 0
    assert set(waited) == {"meta"}


def test_only_a_cpu_is_timed_by_processor_time() -> None:
    import time

    assert latency.device_clock(torch.device("cpu")) is time.thread_time
    assert latency.device_clock(torch.device("cuda")) is time.perf_counter


def test_a_clock_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch, "get_device_module", lambda device: SimpleNamespace(synchronize=waited.append))
    devices.synchronize(torch.device("cpu"))
    devices.synchronize(torch.device("cuda:1"))
    assert waited == [torch.device("cuda:1")]


@pytest.mark.parametrize(
    ("visible", "count", "expected"),
    [
        (None, 2, ["0", "1", "0"]),
        ("4,6", 2, ["4", "6", "4"]),
        ("GPU-a", 1, ["GPU-a", "GPU-a", "GPU-a"]),
    ],
)
def test_every_worker_has_a_gpu_of_its_own(
    visible: str | None, count: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    chosen = [devices.one_gpu_environment(process)["CUDA_VISIBLE_DEVICES"] for process in range(3)]
    assert chosen == expected


def test_without_gpus_workers_see_what_their_parent_sees() -> None:
    assert devices.one_gpu_environment(1) == {}


@pytest.mark.parametrize(
    ("gpus", "device", "asked", "places"), [(0, "auto", 0, 8), (2, "auto", 1, 2), (2, "cpu", 0, 8)]
)
def test_ray_is_asked_for_gpus_where_it_has_some(
    gpus: int, device: str, asked: int, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: dict[str, object] = {}

    class FakeRay:
        def cluster_resources(self) -> dict[str, float]:
            return {"CPU": 8.0, **({"GPU": float(gpus)} if gpus else {})}

        def put(self, value: object) -> object:
            return value

        def remote(self, **resources: object) -> object:
            wanted.update(resources)
            return lambda function: function

    monkeypatch.setattr(ray_search, "run_state", lambda run: "{}")
    monkeypatch.setattr(ray_search, "StandaloneWeights", object)
    config = SimpleNamespace(output=SimpleNamespace(device=device))
    evaluator = SimpleNamespace(weights=object(), context=SimpleNamespace(run=None, config=config))
    nodes = ray_search.RayNodes(FakeRay(), evaluator, work=len)
    assert wanted["num_gpus"] == asked
    assert nodes.places == places


def test_deterministic_mode_ends_where_it_was_asked_for() -> None:
    assert not torch.are_deterministic_algorithms_enabled()
    with devices.deterministic_algorithms(True):
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    with devices.deterministic_algorithms(False):
        assert not torch.are_deterministic_algorithms_enabled()


def test_a_cuda_device_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(BadInput, match="--latency-device cuda needs a CUDA device"):
        devices.resolve_device("cuda", "--latency-device")


def test_onnx_is_not_timed_on_a_gpu() -> None:
    config = CompressConfig(search=SearchOptions(for_="onnx"), measure=MeasureOptions(latency_device="cuda"))
    with pytest.raises(BadInput, match="--for onnx is timed in onnxruntime"):
        validate_target(config, stock_family=True, family="bert")


def test_targets_of_regression_keep_their_digits() -> None:
    from archwright.training.losses import task_loss

    targets = torch.from_numpy(np.array([3.1416, 2.7183], dtype=np.float32))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = task_loss(torch.zeros(2, 1, dtype=torch.bfloat16), targets)
    assert float(loss) == pytest.approx(float((targets**2).mean()), rel=1e-6)


def test_compiled_products_are_not_kept_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    name, usual = devices.KERNEL_CACHE
    monkeypatch.setenv(name, "7")
    devices.limit_kernel_cache()
    assert os.environ[name] == "7"
    monkeypatch.delenv(name)
    devices.limit_kernel_cache()
    assert os.environ[name] == usual
