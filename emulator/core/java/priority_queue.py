"""Java's `java.util.PriorityQueue`: a binary heap whose order of equal elements Kafka's assignors show.

Python's `heapq` sifts another way, and so returns equal elements in another order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A heap of elements by `load`, which must not change while an element is in it."""

    def __init__(self, load: Callable[[T], float]) -> None:
        self._load = load
        self._heap: list[T] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: T) -> None:
        """Put an element below the first of its ancestors that is not greater."""
        heap, load = self._heap, self._load(element)
        at = len(heap)
        heap.append(element)
        while at:
            parent = (at - 1) // 2
            if load >= self._load(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = element

    def poll(self) -> T | None:
        """Remove the least element and return it; None if there is none."""
        heap = self._heap
        if not heap:
            return None
        least, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return least

    def _sift_down(self, element: T) -> None:
        heap, load = self._heap, self._load(element)
        at, child = 0, 1
        while child < len(heap):
            right = child + 1
            if right < len(heap) and self._load(heap[child]) > self._load(heap[right]):
                child = right
            if load <= self._load(heap[child]):
                break
            heap[at] = heap[child]
            at, child = child, 2 * child + 1
        heap[at] = element
