"""How fast the live page is, and what it costs the search that it shows.

    python -m experiments.web.measure [--seconds 60] [--viewers 50] [--out FILE.json]

First paint: largest contentful paint in Chromium with 5,000 trials, of a finished run and of a running search, median
of 5 visits of a browser that has visited no page before. Live: seconds from a told trial until the page shows it,
median of 10. Load: so many viewers of a running search for so long, in turns with as long a time without any; failed
requests, and how many trials the search told per second of the clock and of its own processor time in both.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from psutil import Process

from archwright.statistics import hypervolume_over_time
from archwright.store import RunFolder
from tests.chromium import CHROMIUM, FLAGS
from tests.reports.conftest import synthetic
from tests.web.served import tell, write_finished, write_search

TRIALS, VISITS, TOLD, TURNS = 5000, 5, 10, 2
WATCH = """
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.paint = entry.startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });
"""
SEARCH = """
import sys, time, json
from pathlib import Path
import numpy as np
import optuna
from archwright.store import RunFolder, open_study
optuna.logging.set_verbosity(optuna.logging.WARNING)
run, rng = RunFolder(Path(sys.argv[1])), np.random.default_rng(0)
study = open_study(run, None, sampler=optuna.samplers.RandomSampler(), directions=["minimize"] * 2)
with run.lock():
    told = 0
    while True:
        trial = study.ask()
        size = trial.suggest_float("size", 0.05, 1.0)
        a = rng.normal(size=(320, 320))
        for _ in range(100):
            a = np.tanh(a @ a / 320)
        study.tell(trial, [0.5 - 0.3 * size, size * 10_800_000])
        told += 1
        print(json.dumps([told, time.monotonic(), time.process_time()]), flush=True)
"""
"""A search whose trials are matrix products, and a study in a journal file."""


def many_trials(count: int) -> dict[str, Any]:
    result, rng = synthetic(150), np.random.default_rng(0)
    rows = [result["trials"][at % 150] for at in range(count)]
    result["trials"] = [
        row
        | {
            "trial": n,
            "seconds": 1.5 * n,
            "validation_error": min(1.0, row["validation_error"] + abs(rng.normal(0, 0.02))),
        }
        | {"layers": int(rng.integers(2, 7)), "heads": int(rng.integers(1, 73)), "units": int(rng.integers(128, 9000))}
        for n, row in enumerate(rows)
    ]
    points = [(row["validation_error"], row["nonembedding_share"]) for row in result["trials"]]
    return result | {"hypervolume_over_time": hypervolume_over_time(points, (1.0, 1.0))}


class Served:
    """`archwright serve` as a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "archwright", "serve", str(folder), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.address = self.process.stderr.readline().split(" at ")[1].split()[0].rstrip("/")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def first_paints(browser: Any, address: str, path: str) -> list[float]:
    times = []
    for _ in range(VISITS):
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        context.add_init_script(WATCH)
        page = context.new_page()
        page.set_default_timeout(300_000)
        page.goto(address + path)
        page.wait_for_timeout(1500)
        times.append(page.evaluate("window.paint") / 1000)
        context.close()
    return times


def live_delays(browser: Any, address: str, run: RunFolder) -> list[float]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(300_000)
    page.goto(f"{address}/run/{run.path.name}")
    page.wait_for_timeout(3000)
    delays = []
    for _ in range(TOLD):
        known = page.locator("#status").get_attribute("data-trials")
        begun = time.monotonic()
        tell(run, 1)
        while page.locator("#status").get_attribute("data-trials") == known:
            page.wait_for_timeout(20)
        delays.append(time.monotonic() - begun)
        page.wait_for_timeout(500)
    context.close()
    return delays


def watch(address: str, name: str, until: float, counts: dict[str, int], lock: threading.Lock) -> None:
    """One viewer: the page with its scripts and styles, then its events."""
    try:
        for path in (f"/run/{name}", "/api/runs"):
            with urllib.request.urlopen(address + path, timeout=120) as answer:
                answer.read()
            with lock:
                counts["requests"] += 1
        with urllib.request.urlopen(f"{address}/api/events/{name}?after=0", timeout=120) as events:
            while time.monotonic() < until:
                line = events.readline()
                if not line:
                    raise OSError("the stream ended")
                if line.startswith(b"event:"):
                    with lock:
                        counts["events"] += 1
            with lock:
                counts["requests"] += 1
    except (OSError, urllib.error.URLError) as error:
        with lock:
            counts["failed"] += 1
            counts[str(error)] = counts.get(str(error), 0) + 1


def speeds(lines: list[list[float]], spans: list[tuple[float, float]]) -> dict[str, float]:
    """Trials per second of the clock and of the search's processor time within these spans."""
    told = clock = processor = 0.0
    for begun, ended in spans:
        inside = [line for line in lines if begun <= line[1] <= ended]
        told += inside[-1][0] - inside[0][0]
        clock += inside[-1][1] - inside[0][1]
        processor += inside[-1][2] - inside[0][2]
    return {"per_second": told / clock, "per_processor_second": told / processor}


def processor_seconds(served: Served) -> float:
    times = Process(served.process.pid).cpu_times()
    return times.user + times.system


def load(folder: Path, seconds: float, viewers: int) -> dict[str, Any]:
    run = write_search(folder / "loaded")
    served = Served(folder)
    search = subprocess.Popen([sys.executable, "-c", SEARCH, str(run.path)], stdout=subprocess.PIPE, text=True)
    lines: list[list[float]] = []
    assert search.stdout is not None
    reader = threading.Thread(
        target=lambda: lines.extend(json.loads(line) for line in search.stdout or ()), daemon=True
    )
    reader.start()
    while len(lines) < 5:
        time.sleep(0.1)
    counts, lock = {"requests": 0, "events": 0, "failed": 0}, threading.Lock()
    spans: dict[str, list[tuple[float, float]]] = {"alone": [], "watched": []}
    server: dict[str, float] = {"alone": 0.0, "watched": 0.0}
    for turn in range(TURNS):
        for kind in list(spans)[:: 1 if turn % 2 == 0 else -1]:
            begun, spent = time.monotonic(), processor_seconds(served)
            until = begun + seconds / TURNS
            arguments = (served.address, "loaded", until, counts, lock)
            threads = [
                threading.Thread(target=watch, args=arguments) for _ in range(viewers if kind == "watched" else 0)
            ]
            for thread in threads:
                thread.start()
            time.sleep(max(0.0, until - time.monotonic()))
            spans[kind].append((begun, time.monotonic()))
            for thread in threads:
                thread.join()
            server[kind] += processor_seconds(served) - spent
    search.kill()
    served.close()
    return {
        "viewers": viewers,
        "seconds": seconds,
        **counts,
        "server_processor_seconds": server,
        **{kind: speeds(lines, own) for kind, own in spans.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        loaded = load(folder, options.seconds, options.viewers)
        write_finished(folder / "finished", many_trials(TRIALS))
        with patch("os.fsync"):  # thousands of trials at once are no search
            run = write_search(folder / "running", trials=TRIALS)
        served = Served(folder)
        with sync_playwright() as driver, run.lock():
            browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
            paints = {name: first_paints(browser, served.address, path) for name, path in PAGES.items()}
            delays = live_delays(browser, served.address, run)
            browser.close()
        served.close()
    result = {
        "largest_contentful_paint_s": {name: [statistics.median(times), *times] for name, times in paints.items()},
        "live_update_s": [statistics.median(delays), *delays],
        "load": loaded,
        "machine_load": Path("/proc/loadavg").read_text().split()[:3],
    }
    text = json.dumps(result, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


PAGES = {"runs": "/", "finished, 5,000 trials": "/run/finished", "running, 5,000 trials": "/run/running"}

if __name__ == "__main__":
    main()
