"""The page of a failed test, with the bug of a real client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing.screenshots import kept

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.needs("chromium")

LATE_COMMIT = '''
    """svc-1 does not poll during the rebalance, is removed, and then commits an offset."""
    import time

    from confluent_kafka import Consumer, TopicPartition

    def test_a_commit_survives_a_rebalance(koordinator):
        koordinator.create_topic("orders", partitions=6)
        group = koordinator.group("orders-svc")
        config = koordinator.client_config("confluent-kafka", **{"group.id": group.id, "client.id": "svc-1"})
        consumer = Consumer(config)
        consumer.subscribe(["orders"], on_revoke=lambda *_: None)
        while group.state != "Stable":
            consumer.poll(0.05)
        consumer.commit(offsets=[TopicPartition("orders", 2, 10)], asynchronous=False)

        peer = group.create_puppet("peer", topics=("orders",))
        peer.join()
        group.wait_state("PreparingRebalance")
        group.expire_join_phase()
        group.wait_stable(members=1)
        consumer.commit(offsets=[TopicPartition("orders", 2, 41)], asynchronous=False)
'''


@pytest.fixture
def failed(pytester: pytest.Pytester) -> Path:
    """Run a failing test and return its page."""
    pytester.makepyfile(test_app=LATE_COMMIT)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=170)
    result.assert_outcomes(failed=1)
    (page,) = pytester.path.rglob("trace.html")
    return page


def test_the_page_of_a_failed_test_shows_lanes_barrier_and_first_error(page: Page, failed: Path) -> None:
    page.goto(failed.as_uri())
    assert page.locator("h1").inner_text() == "test_app.py::test_a_commit_survives_a_rebalance"
    assert "UNKNOWN_MEMBER_ID" in page.locator(".k-subtitle").inner_text()
    assert page.locator(".k-l-lane").all_inner_texts() == ["svc-1", "peer"]
    story = page.locator(".k-item").all_inner_texts()
    assert any("svc-1 did not rejoin in time" in text for text in story)
    assert any("First error: svc-1 received UNKNOWN_MEMBER_ID" in text for text in story)
    assert page.locator(".k-row.k-first").is_visible()
    assert page.evaluate("Koordinator.timeline.group.barriers.at(-1).steps.at(-1).remark") == ", without svc-1"
    with kept(page, "timeline-failed-test") as drawn:
        assert drawn.has("PreparingRebalance", "joining", "removed", "bad", inside=".k-chart")
