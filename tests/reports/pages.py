"""What stands in the HTML of a page: its data, its sections, its text."""

import html
import json
import re
from typing import Any


def page_data(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def section_ids(page: str) -> list[str]:
    return re.findall(r'<section id="([\w-]+)"', page)


def page_text(page: str) -> str:
    """What a reader sees without scripts, spaces as ordinary ones."""
    body = page[page.index("<body>") : page.index('<script type="application/json"')]
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", body).split())).replace("\u00a0", " ")


def headline(page: str) -> str:
    found = re.search(r'id="headline">(.*?)</p>', page, re.DOTALL)
    assert found
    return html.unescape(found[1])
