"""The front as a small SVG: every member, lower errors lower, text that stays text, and a missing number."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from archwright.reports.compress.front_picture import front_svg


def circles(picture: ET.Element) -> dict[str, tuple[float, float]]:
    return {str(node[0].text): (float(node.attrib["cx"]), float(node.attrib["cy"])) for node in picture.iter("circle")}


@pytest.mark.parametrize("metric", ["accuracy", "perplexity"])
def test_every_member_stands_where_it_belongs(result: dict[str, Any], metric: str) -> None:
    if metric == "perplexity":
        for network in (*result["front"], result["original"]):
            network["test_error"] = 20 * (1 + network["test_error"])
    picture = ET.fromstring(front_svg(result | {"metric": metric}, "test_error"))
    places = [
        next(place for words, place in circles(picture).items() if words.startswith(f"trial {member['trial']}:"))
        for member in result["front"]
    ]
    assert len(circles(picture)) == len(result["front"]) and len(list(picture.iter("path"))) == 3
    for key, at, sign in (("nonembedding_share", 0, 1), ("test_error", 1, -1)):  # the picture counts downwards
        by_value = sorted(range(len(places)), key=lambda place: result["front"][place][key])
        assert [places[place][at] * sign for place in by_value] == sorted(place[at] * sign for place in places)
    assert all(0 < x < 520 and 0 < y < 250 for x, y in places)


def test_names_stay_text_and_nothing_gives_nothing(result: dict[str, Any]) -> None:
    result["front"][0]["trial"] = "<script>alert(1)</script>"
    assert "<script" not in front_svg(result, "test_error")
    assert front_svg({**result, "front": []}, "test_error") == ""
    result["original"]["test_error"] = None
    assert front_svg(result, "test_error").count("<path") == 2
