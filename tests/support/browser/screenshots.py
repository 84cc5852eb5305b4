"""Screenshots: what is to be seen in them, and those that the docs show."""

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
"""With this set, the pictures that the docs show are made anew."""

NEAR = 6
"""How far a channel of a pixel may be off: a canvas mixes colours at edges only."""


class Drawn:
    """What a page shows just now."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def has(self, *colours: str, inside: str) -> bool:
        """Whether each of these colours of the style sheet is seen, in the canvases of an element, as an area."""
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
    const wanted = Object.fromEntries(names.map((name) => [name, rgb(name)]));
    const counts = Object.fromEntries(names.map((name) => [name, 0]));
    for (const canvas of document.querySelectorAll(inside + " canvas")) {
        [copy.width, copy.height] = [canvas.width, canvas.height];
        probe.drawImage(canvas, 0, 0);
        const data = probe.getImageData(0, 0, canvas.width, canvas.height).data;
        for (let n = 0; n < data.length; n += 4)
            for (const name of names)
                if ([0, 1, 2].every((c) => Math.abs(data[n + c] - wanted[name][c]) <= near)) counts[name] += 1;
    }
    return counts;
}"""


@contextmanager
def kept(page: Page, name: str, only: str = "body") -> Iterator[Drawn]:
    """What is asserted of the picture; if it holds and `KEEP` is set, the picture of an element goes to the docs."""
    yield Drawn(page)
    if os.environ.get(KEEP) and any(f"img/{name}.png" in text.read_text() for text in DOCS.glob("*.md")):
        page.locator(only).screenshot(path=DOCS / "img" / f"{name}.png")
