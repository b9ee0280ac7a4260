"""A screenshot of every page of `archwright serve`, in light and dark, 1,400 and 400 pixels wide.

python -m scripts.make_screenshots RUNS_DIR FOLDER [--all]

Without --all only the wide light ones are made, and of the run one that is dark and one as narrow as a phone; they are
made small for the repository. With it all pages are taken whole, for looking at them.
"""

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from archwright.commands import COMMANDS
from archwright.web.folder import FINISHED, STOPPED, open_folder, summarize
from archwright.web.server import prepare_server

CHROMIUM = "/usr/bin/chromium"
WIDTHS = (1400, 400)
TEXT = "A lovely film, with bright music and a story that stays."
SECOND = "A film with bright music."
PATIENCE = 240_000
SETTLE = 1200
"""Milliseconds until plots have been drawn anew."""
TALLEST, WIDEST, COLOURS = 1900, 1000, 96
"""Pixels and colours of a committed picture."""


@contextmanager
def served(runs: Path) -> Iterator[str]:
    prepared = prepare_server(runs, host="127.0.0.1", port=0, token=None, start_options=COMMANDS["compress"].first)
    thread = prepared.start()
    try:
        yield prepared.address.rstrip("/")
    finally:
        prepared.stop()
        thread.join(timeout=10)


def hold(runs: Path, path: str) -> AbstractContextManager[None]:
    """A stopped run as if its search were running."""
    return open_folder(runs).run(unquote(path.removeprefix("/run/"))).lock()


def page_addresses(runs: Path) -> dict[str, str]:
    """Every page by name, as far as the folder has something to show on it."""
    folder = open_folder(runs)
    rows = [summarize(folder, name) for name in folder.run_names()]
    done = [row for row in rows if row["state"] == FINISHED and row.get("front")]
    pages = {"runs": "/", "proxies": "/proxies", "architectures": "/architectures", "start": "/start"}
    if done:
        real = max(done, key=lambda row: ((folder.root / row["name"] / "original").is_dir(), row["trials"]))
        done = [real, *(row for row in done if row is not real and row["task"] == real["task"])]
        trials = [trial for share, _, trial in real["front"] if share and share <= 0.7] or [real["front"][0][2]]
        pages |= {"run": f"/run/{quote(real['name'])}", "network": f"/network/{trials[-1]}/{quote(real['name'])}"}
        chosen = "&".join(f"run={quote(row['name'])}" for row in done[:3])
        both = "&".join(f"network={trial}:{quote(real['name'])}" for trial in trials[-2:])
        pages["compare"] = f"/compare?{chosen}&{both}"
        report = folder.root / real["name"] / "report.html"
        pages |= {"report": report.as_uri()} if report.exists() else {}
    waiting = [row for row in rows if row["state"] == STOPPED and row["kind"] == "compress"]
    pages |= {"live": f"/run/{quote(waiting[0]['name'])}"} if waiting else {}
    for name in list(folder.documents("design"))[:1]:
        pages["architecture"] = f"/architecture/{quote(name)}"
    for name in list(folder.documents("rank"))[:1]:
        pages["ranking"] = f"/proxies/{quote(name)}"
    return pages


def use(page: Any, name: str) -> None:
    """What a reader does before there is everything to see."""
    if name == "network":
        page.fill("#try-text", TEXT)
        if page.locator("#try-pair[required]").count():
            page.fill("#try-pair", SECOND)
        page.click("#try-button")
        page.locator("#answers .answer").first.wait_for()
        page.click("#inspect-button")
        page.locator("#different > *").first.wait_for()
    if name == "start":
        page.fill("#run-name", "sst2-small")
        page.fill("#option-trials", "60")
        page.locator("#command code").wait_for()


def shrink(file: Path) -> None:
    """Small enough for the repository: the upper part, in fewer pixels and colours."""
    from PIL import Image

    with Image.open(file) as whole:
        picture = whole.convert("RGB").crop((0, 0, whole.width, min(whole.height, TALLEST)))
    scale = min(1.0, WIDEST / picture.width)
    picture = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.Resampling.LANCZOS)
    method = Image.Quantize.MAXCOVERAGE  # keeps the few pixels of an accent in their colour
    picture.quantize(COLOURS, method, dither=Image.Dither.NONE).save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", nargs="*", default=())
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with served(options.runs) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, path in page_addresses(options.runs).items():
            if not options.only or name in options.only:
                where = path if path.startswith("file:") else address + path
                with hold(options.runs, path) if name == "live" else nullcontext():
                    take_variants(browser, name, where, options.folder, whole=options.all)
        browser.close()


def take_variants(browser: Any, name: str, address: str, folder: Path, *, whole: bool) -> None:
    """One visit, all variants: widths and colours are changed under the open page, as a reader may do."""
    context = browser.new_context(viewport={"width": WIDTHS[0], "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda message: print(name, message.text))
    page.on("pageerror", lambda error: print(name, error))
    page.goto(address)
    use(page, name)
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            usual = width == WIDTHS[0] and scheme == "light"
            sample = name == "run" and (width == WIDTHS[0]) != (scheme == "light")
            if not (whole or usual or sample):
                continue
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(SETTLE)
            file = folder / f"{name}{'' if usual else f'-{width}-{scheme}'}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(file), full_page=True, animations="disabled")
            if not whole:
                shrink(file)
    context.close()


if __name__ == "__main__":
    main()
