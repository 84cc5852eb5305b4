"""Screenshots: checks of their colours, and the images of the docs."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

DOCS = Path(__file__).parents[3] / "docs"

KEEP = "KOORDINATOR_PICTURES"
"""Set this environment variable to update the images of the docs."""

NEAR = 6
"""Maximum difference of a colour channel; canvases mix colours only at edges."""


class Drawn:
    """The current content of a page."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def has(self, *colours: str, inside: str) -> bool:
        """Assert that the canvases of an element show each of these colours of the style sheet as an area."""
        counts = self._page.evaluate(COUNT, [inside, list(colours), NEAR])
        assert all(counts.values()), {name: count for name, count in counts.items() if not count}
        return True


COUNT = """([inside, names, near]) => {
    const root = document.querySelector(".k-timeline");
    const copy = document.createElement("canvas");
    const probe = copy.getContext("2d", {willReadFrequently: true});
    const rgb = (name) => {
        probe.fillStyle = getComputedStyle(root).getPropertyValue("--k-" + name);
        probe.fillRect(0, 0, 1, 1);
        return probe.getImageData(0, 0, 1, 1).data;
    };
    const expected = Object.fromEntries(names.map((name) => [name, rgb(name)]));
    const counts = Object.fromEntries(names.map((name) => [name, 0]));
    for (const canvas of document.querySelectorAll(inside + " canvas")) {
        [copy.width, copy.height] = [canvas.width, canvas.height];
        probe.drawImage(canvas, 0, 0);
        const data = probe.getImageData(0, 0, canvas.width, canvas.height).data;
        for (let n = 0; n < data.length; n += 4)
            for (const name of names)
                if ([0, 1, 2].every((c) => Math.abs(data[n + c] - expected[name][c]) <= near)) counts[name] += 1;
    }
    return counts;
}"""


@contextmanager
def kept(page: Page, name: str, only: str = "body") -> Iterator[Drawn]:
    """Yield the content for assertions; if they hold and `KEEP` is set, save the image of an element for the docs."""
    yield Drawn(page)
    if os.environ.get(KEEP) and any(f"img/{name}.png" in text.read_text() for text in DOCS.glob("*.md")):
        page.locator(only).screenshot(path=DOCS / "img" / f"{name}.png")
