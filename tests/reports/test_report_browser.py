"""The page in a real browser, opened from disk."""

from collections.abc import Callable
from typing import Any

import pytest

from archwright.reports.compress.page import render_compress_page
from archwright.reports.compress.preview import render_preview_page
from archwright.reports.numbers import DASH
from tests.reports.conftest import check_width, wait_until

Show = Callable[..., Any]


def pick(page: Any, group: str, value: str) -> None:
    page.locator(f"#{group} input[value={value}]").check(force=True)


def axis_title(page: Any, axis: str) -> str:
    return str(page.evaluate(f"document.getElementById('front-plot').layout.{axis}.title.text"))


def point(page: Any, index: int) -> tuple[float, float]:
    """Where the front's point lies on the screen."""
    box = page.locator("#front-plot .trace").nth(2).locator("path.point").nth(index).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_everything_is_there(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    assert page.locator("h1").inner_text() == "all-MiniLM-L6-v2, shrunk for glue/SST-2"
    assert "no worse than the original" in page.locator("#headline").inner_text()
    assert page.locator("#numbers tbody tr").count() == len(result["front"]) + 2
    assert page.locator("#layers .member").count() == len(result["front"])
    assert page.locator("#predicted-plot .points path.point").count() == len(result["latency"]["predicted_vs_measured"])
    assert page.locator("#front-plot .trace").nth(0).locator("path.point").count() == len(result["trials"]) - len(
        result["front"]
    )


def test_rectangles_add_up_to_the_hypervolume(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    pick(page, "view", "whole")
    area = page.evaluate(
        "document.getElementById('front-plot').layout.shapes.filter((s) => s.type === 'rect')"
        ".reduce((sum, s) => sum + (s.x1 - s.x0) * (s.y1 - s.y0), 0)"
    )
    assert area == pytest.approx(result["hypervolume"], abs=1e-9)
    assert page.evaluate("document.getElementById('front-plot').layout.yaxis.range[1]") > 1


def test_hover_shows_the_numbers_and_click_chooses(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    member = result["front"][2]
    page.mouse.move(*point(page, 2))
    page.locator("#front-plot .hovertext").wait_for()
    hover = page.locator("#front-plot .hovertext").first.text_content()
    assert f"sub-network of trial {member['trial']}" in hover and f"{member['validation_error'] * 100:.2f}" in hover
    page.mouse.click(*point(page, 2))
    assert page.locator("#chosen h3").inner_text() == f"Sub-network of trial {member['trial']}"
    assert f"--trial {member['trial']} " in page.locator("#chosen").inner_text()


def test_arrow_keys_walk_the_front(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    page.focus("#front-plot")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.locator("#chosen h3").inner_text().endswith(f"trial {result['front'][1]['trial']}")
    assert page.locator("tr[aria-selected=true]").get_attribute("data-member") == "1"
    page.keyboard.press("End")
    assert page.locator("#chosen h3").inner_text().endswith(f"trial {result['front'][-1]['trial']}")


def slide(page: Any, limit: str, place: int) -> None:
    page.evaluate(
        "([limit, place]) => { const slider = document.getElementById(`limit-${limit}`);"
        " slider.value = place; slider.dispatchEvent(new Event('input')); }",
        [limit, place],
    )


def test_slider_gives_the_best_within_the_budget(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    for share in (0.3, 0.6):
        slide(page, "share", round(1000 * share))
        fitting = [member for member in result["front"] if member["nonembedding_share"] <= share]
        best = min(fitting, key=lambda member: float(member["validation_error"]))
        assert page.locator("#chosen h3").inner_text().endswith(f"trial {best['trial']}")
        assert (
            f"archwright select minilm-sst2 --params {100 * share:g}%" in page.locator("#budget-command").inner_text()
        )
    page.focus("#limit-share")
    page.keyboard.press("Home")
    assert "No sub-network of the front fits" in page.locator("#budget-answer").inner_text()


def test_a_largest_loss_gives_the_smallest_that_is_good_enough(show: Show, result: dict[str, Any]) -> None:
    """Alone it asks for the smallest; all pictures dim what is outside, and unlimited nothing is."""
    page = show(render_compress_page(result))
    page.click("#limits-reset")
    assert page.locator("[data-outside]").count() == 0
    slide(page, "loss", 100)
    line = page.locator("#budget-command code").inner_text()
    most = float(line.rsplit(" ", 1)[1].rstrip("%")) / 100
    base = result["original"]["validation_error"]
    good = [member for member in result["front"] if member["validation_error"] - base <= most + 1e-12]
    assert page.locator("#chosen h3").inner_text().endswith(f"trial {good[0]['trial']}")
    assert page.locator(".member[data-outside]").count() == len(result["front"]) - len(good)
    wait_until(page, "document.getElementById('front-plot').data[2].marker.opacity.filter((o) => o < 1).length > 0")
    assert page.evaluate("document.getElementById('front-plot').data[0].marker.opacity.some((o) => o < 0.2)")


def test_a_limit_that_the_front_is_not_about_says_so(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    assert page.locator("#budget-note").inner_text() == ""
    slide(page, "latency", 500)
    assert "--latency-ms" in page.locator("#budget-command").inner_text()
    assert "looks among all trials" in page.locator("#budget-note").inner_text()


def test_brushes_and_sliders_work_together(show: Show, result: dict[str, Any]) -> None:
    """With the keyboard; a brush dims the front, and the sentence below counts what is left."""
    page = show(render_compress_page(result))
    page.click("#limits-reset")
    total = len(result["trials"])
    wait_until(page, f"document.getElementById('parallel-says').textContent.startsWith('{total} of {total} ')")
    page.focus("[data-axis=error]")
    for _ in range(16):
        page.keyboard.press("ArrowDown")
    errors = [trial["validation_error"] for trial in result["trials"]]
    most = max(errors) - 16 * (max(errors) - min(errors)) / 20
    left = sum(error <= most + 1e-12 for error in errors)
    wait_until(page, f"document.getElementById('parallel-says').textContent.startsWith('{left} of {total} ')")
    outside = sum(member["validation_error"] > most for member in result["front"])
    assert page.locator(".member[data-outside]").count() == outside > 0
    page.keyboard.press("Escape")
    assert page.locator("[data-outside]").count() == 0


def test_a_brush_is_drawn_with_the_mouse(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    page.click("#limits-reset")
    handle = page.locator("[data-axis=share]")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    page.mouse.move(box["x"] + 16, box["y"] + 280)
    page.mouse.down()
    page.mouse.move(box["x"] + 16, box["y"] + 180, steps=4)
    page.mouse.up()
    wait_until(page, "document.querySelectorAll('.member[data-outside]').length > 0")
    label = "document.querySelector('[data-axis=share]').getAttribute('aria-label')"
    wait_until(page, f"/^share: \\d.* to \\d/.test({label})")  # labels follow with the next frame


def test_heads_and_units_kept_follow_the_sliders(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    page.click("#limits-reset")
    bars = "document.getElementById('kept-plot').data"
    mean = sum(member["keep"][0][0] for member in result["front"]) / len(result["front"]) / result["heads"]
    wait_until(page, f"{bars} && Math.abs({bars}[0].y[0] - {mean}) < 1e-9")
    slide(page, "share", 200)
    small = [member for member in result["front"] if member["nonembedding_share"] <= 0.2]
    mean = sum(member["keep"][0][0] for member in small) / len(small) / result["heads"]
    wait_until(page, f"Math.abs({bars}[0].y[0] - {mean}) < 1e-9")


def test_hypervolume_over_seconds(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    pick(page, "progress-over", "seconds")
    assert page.evaluate("document.getElementById('progress-plot').data[0].x.at(-1)") == result["trials"][-1]["seconds"]


def test_tried_points_hide_and_show_their_time(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    pick(page, "tried", "time")
    assert page.evaluate("document.getElementById('front-plot').data[0].marker.color.length") > 10
    pick(page, "tried", "none")
    assert page.evaluate("document.getElementById('front-plot').data[0].x.length") == 0


def test_axes_switch(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    for value, word in {"parameters": "Parameters", "flops": "FLOPs", "int8": "int8", "latency": "latency"}.items():
        pick(page, "x-axis", value)
        assert word in axis_title(page, "xaxis")
        assert page.evaluate("document.getElementById('front-plot').data[2].x.length") == len(result["front"])
    assert page.locator("#front-plot .errorbar").count() > 0
    pick(page, "y-axis", "test")
    assert axis_title(page, "yaxis") == "Test error"
    pick(page, "y-axis", "flops")
    assert "FLOPs" in axis_title(page, "yaxis")
    pick(page, "view", "log")
    assert page.evaluate("document.getElementById('front-plot').layout.xaxis.type") == "log"


def test_a_heading_sorts_the_table(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result))
    page.get_by_role("button", name="Test error").click()
    first = page.locator("tr[data-member] button").first.inner_text()
    assert first == f"trial {min(result['front'], key=lambda member: float(member['test_error']))['trial']}"


def test_hostile_names_are_shown_as_text(show: Show, result: dict[str, Any], preview: dict[str, Any]) -> None:
    name = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    page = show(render_compress_page(result | dict.fromkeys(("model", "task", "run", "task_note", "sampler"), name)))
    assert page.locator("h1").inner_text() == f"{name}, shrunk for {name}"
    assert page.title().startswith(name)
    spaces = {name: next(iter(preview["spaces"].values()))}
    assert name in show(render_preview_page(preview | {"model": name, "spaces": spaces})).locator("h1").inner_text()


def nulled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: nulled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [nulled(item) for item in value]
    return None if isinstance(value, int | float) else value


def test_every_number_may_be_missing(show: Show, result: dict[str, Any], preview: dict[str, Any]) -> None:
    page = show(render_compress_page(nulled(result)))
    assert DASH in page.locator("#numbers").inner_text()
    assert page.evaluate("document.getElementById('front-plot').layout.yaxis.range") == [0, pytest.approx(1.08)]
    assert "NaN" not in page.locator("body").inner_text() and "null" not in page.locator("body").inner_text()
    assert "NaN" not in show(render_preview_page(nulled(preview))).locator("body").inner_text()


def test_without_test_set_and_latency(show: Show, result: dict[str, Any]) -> None:
    for network in [result["original"], result["supernet"], *result["front"]]:
        network.update(test_error=None, latency_ms=None)
    page = show(render_compress_page(result | {"latency": None}))
    assert page.locator("#y-axis input[value=test]").is_disabled()
    assert page.locator("#x-axis input[value=latency]").is_disabled()
    assert "validation error" in page.locator("#headline").inner_text()


def test_empty_front_and_no_trials(show: Show, result: dict[str, Any]) -> None:
    page = show(
        render_compress_page(result | {"front": [], "trials": [], "hypervolume_over_time": [], "supernet": None})
    )
    assert "No sub-network" in page.locator("#chosen").inner_text()
    assert "super-network" not in page.locator("#numbers").inner_text() + page.locator("#key").inner_text()


def test_layers_that_are_gone_say_so(show: Show, result: dict[str, Any]) -> None:
    result["front"] = result["front"][:1]
    result["front"][0]["keep"] = [[12, 1536], [0, 0], [3, 0], [0, 0], [0, 512], [1, 1]]
    picture = show(render_compress_page(result)).locator("#layers .stack")
    assert picture.get_by_text("gone", exact=True).count() == 2
    assert picture.locator("rect.kept").count() == 12 + 3 + 1


def test_dark_and_light_differ(show: Show, result: dict[str, Any]) -> None:
    page = show(render_compress_page(result), color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    line = "document.getElementById('front-plot').data[1].line.color"
    dark = page.evaluate(ground), page.evaluate(line)
    page.emulate_media(color_scheme="light")
    wait_until(page, f"{ground} !== '{dark[0]}' && {line} !== '{dark[1]}'")


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_windows_do_not_scroll_sideways(
    show: Show, result: dict[str, Any], preview: dict[str, Any], width: int
) -> None:
    for html in (render_compress_page(result | {"model": "m" * 120, "run": "r" * 120}), render_preview_page(preview)):
        check_width(show(html), width)


def count_elements(page: Any) -> int:
    """Elements of the page once its plots are drawn: what a browser lays out and paints."""
    wait_until(page, "document.querySelectorAll('#front-plot .main-svg').length > 0")
    return int(page.evaluate("document.querySelectorAll('*').length"))


def test_a_trial_is_at_most_one_element_of_the_page(show: Show, result: dict[str, Any]) -> None:
    """What keeps a page of 5,000 trials quick; seconds are nothing for a test."""
    few = count_elements(show(render_compress_page(result)))
    result["trials"] = [result["trials"][index % 150] | {"trial": index} for index in range(5000)]
    page = show(render_compress_page(result))
    assert count_elements(page) <= few + 5000 - 150
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint').length") == 1


def test_a_rescored_front_is_chosen_from_as_select_does(show: Show, result: dict[str, Any]) -> None:
    """The largest within half, unless a smaller one beats it; losses come with their intervals."""
    loss = {"value": 0.01, "low": -0.004, "high": 0.024, "standard_error": 0.007, "rows": 1000}
    front = [{**member, "beaten_by": [], "loss": loss, "test_loss": loss} for member in result["front"]]
    small = [place for place, member in enumerate(front) if member["nonembedding_share"] <= 0.5]
    front[small[-1]]["beaten_by"] = [front[small[-3]]["trial"]]
    selection = {"rule": "halves", "search_rows": 1000, "holdout_rows": 1000, "rescored": 30}
    page = show(render_compress_page({**result, "front": front, "selection": selection, "test_hypervolume": 0.75}))
    assert page.locator("#chosen h3").inner_text() == f"Sub-network of trial {front[small[-2]]['trial']}"
    assert "0.4 to +2.4, 1,000 rows" in page.locator("#chosen").inner_text()
    assert "0.4 to +2.4, 1,000 rows" in page.locator("#numbers tbody tr").last.inner_text()
    assert "1,000 others re-scored 30 networks" in page.locator("#front-note").inner_text()
    assert "cover 0.7500 on test rows" in page.locator("#progress-note").inner_text()
