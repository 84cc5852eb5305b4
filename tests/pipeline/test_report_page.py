"""The report's page is self-contained and safe for any table content; the summary is plain Markdown."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from spark.report_store import EVIL, empty_facts, query_of, store_facts

from koordinator.pipeline import schema
from koordinator.pipeline.report.charts import draw_charts
from koordinator.pipeline.report.facts import STATES, Facts, read_facts
from koordinator.pipeline.report.page import CONTENTS, cell, code, page, summary

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ADDRESS = "report-timelines/t.html"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of each section."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._section = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "section" or "content" in (dict(attrs).get("class") or "").split():
            self._section = dict(attrs).get("id") or self._section

    def handle_data(self, data: str) -> None:
        self.texts[self._section] = f"{self.texts.get(self._section, '')} {' '.join(data.split())}"


@pytest.fixture(scope="module")
def facts(spark: SparkSession) -> Facts:
    return store_facts(spark)


@pytest.fixture(scope="module")
def text(facts: Facts) -> str:
    return page(facts, title="a report", timelines={"t": ADDRESS})


def test_the_page_is_one_file_that_loads_nothing(text: str) -> None:
    assert re.findall(r"https?:", text) == []
    assert not re.search(r"@import|url\((?!#)", text)
    for tag, attributes in Elements(text).found:
        assert tag not in {"script", "link", "iframe", "object", "img", "base", "form"}
        assert not {"src", "srcset", "action"} & attributes.keys()
        target = attributes.get("href") or attributes.get("xlink:href") or "#"
        assert target.startswith(("#", ADDRESS)), tag


def test_every_topic_has_a_section_and_a_chart(text: str) -> None:
    elements = Elements(text)
    contents = [attributes["id"] for _, attributes in elements.found if attributes.get("class") == "content"]
    assert contents == [name for name, _ in CONTENTS]
    charts = [attributes["aria-labelledby"] for tag, attributes in elements.found if tag == "svg"]
    assert charts[::2] == charts[1::2]  # wide and narrow
    assert charts[::2] == [
        "title-by_time",
        "title-stopped_groups",
        "title-stopped_members",
        "title-join_times",
        "title-state_times",
        "title-moves",
        "title-cohorts",
    ]


def test_ids_are_unique_and_references_resolve(text: str) -> None:
    found = Elements(text).found
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)
    assert {a or b for a, b in inside} <= set(ids)


def test_names_are_escaped(text: str) -> None:
    assert "<img" not in text
    assert "</script>" not in text
    assert EVIL[:15] in " ".join(Elements(text).texts.values())


def test_failures_link_to_their_events_in_the_timeline(text: str) -> None:
    links = [attributes["href"] for tag, attributes in Elements(text).found if tag == "a"]
    assert links.count(f"{ADDRESS}#seq=3") == 2
    assert f"{ADDRESS}#seq=20" in links


def test_the_tiles_show_the_totals(text: str) -> None:
    tiles = Elements(text).texts["tiles"]
    for headline in ("6 rebalances", "3 avoided", "760 ms members stopped", "1 checks failed", "2 commits refused"):
        assert headline in re.sub(r"\s+", " ", tiles)


def test_sentences_name_the_origin_of_storms_and_the_greatest_gain(facts: Facts) -> None:
    rows = {"group_id": "g", "scope": "s", "rebalances_before": 1, "rebalances_now": 3, "least_ms_before": 1.0}
    rows |= {"least_ms_now": 2.0, "most_ms_before": 4.0, "most_ms_now": 9.0}
    totals = facts.totals | {"since_s": 0, "until_s": 8 * 86_400}
    texts = Elements(page(Facts(facts, weeks=[rows], totals=totals), title="", timelines={})).texts
    shown = {section: re.sub(r"\s+", " ", text) for section, text in texts.items()}
    assert "1 of 1 storm began with blue-1 ." in shown["wasted"]
    assert "d would gain most: with static members up to 2 of its 5 rebalances (330 ms)" in shown["membership"]
    assert "with a cooperative assignor up to 460 ms of stopped members." in shown["membership"]
    assert "that of g: 1 rebalance last week, 3 this week; it stood still for at most 4 ms and 9 ms." in shown["weeks"]
    assert "Of the last week the input has only 1 d." in shown["weeks"]


def test_the_same_facts_give_the_same_page(facts: Facts, text: str) -> None:
    assert page(facts, title="a report", timelines={"t": ADDRESS}) == text


def test_empty_tables_have_a_page_and_a_summary(spark: SparkSession) -> None:
    empty = empty_facts(spark)
    text, short = page(empty, title="nothing", timelines={}), summary(empty, title="nothing")
    assert "Nothing to show" in text
    assert "**0 rebalances**" in short
    assert "The store is empty." in text
    assert "The store is empty." in short


def test_checks_that_judged_nothing_have_no_number_of_failures(spark: SparkSession, tmp_path: Path) -> None:
    idle = {schema.VERDICT.path: [{"group_id": "g", "check_id": "C03", "status": "not_applicable"}]}
    for facts in (empty_facts(spark), read_facts(query_of(spark, tmp_path, idle))):
        tiles = re.sub(r"\s+", " ", Elements(page(facts, title="nothing", timelines={})).texts["tiles"])
        assert "\N{EN DASH} checks failed nothing was judged" in tiles
        assert "### Verdicts: nothing was judged" in summary(facts, title="nothing")


def test_the_summary_has_counts_and_failures(facts: Facts) -> None:
    lines = summary(facts, title="a report").splitlines()
    assert lines[0] == "## a report"
    assert lines[2].startswith("**6 rebalances** in 3 groups")
    assert "| `member_join` | 5 | 4 | 50 ms | 200 ms |" in lines
    assert "| completed rebalances | 1 | 3 | 2 |" in lines
    assert "### Verdicts: 1 failed" in lines
    assert any(line.startswith("| `test_flaky` | 10 | 3 |") for line in lines)
    assert "1 of 502 rows are in quarantine: 1 bad_json." in lines


def test_lines_of_logs_that_were_not_understood_are_shown_with_examples(facts: Facts, text: str) -> None:
    shown = re.sub(r"\s+", " ", Elements(text).texts["input"])
    assert "Lines of logs that were not understood: 1,205 in 2 files" in shown
    assert "b.log other_text 2 svc" in shown
    assert shown.index("other_text") < shown.index("b.log foreign 1,200 app-1 | hello")
    lines = summary(facts, title="a report").splitlines()
    assert "### 1,205 lines of 2 logs were not understood" in lines
    assert "| `b.log` | `foreign` | 1,200 | `app-1 \\| hello` |" in lines


def test_removed_members_are_shown_even_without_a_rebalance(facts: Facts, text: str) -> None:
    assert [(row["group_id"], row["cause"], row["n"], row["members"]) for row in facts.removals] == [
        ("x", "session_expired", 2, 2),
        ("d", "join_timeout", 1, 1),
    ]
    assert "Members that the coordinator removed" in Elements(text).texts["health"]
    assert "### Members that the coordinator removed" in summary(facts, title="a report")


@pytest.mark.filterwarnings("error")
def test_no_warning_of_a_library_reaches_a_user(facts: Facts) -> None:
    rows = [{"group_id": "群", "scope": "s"} | dict.fromkeys(STATES, 0.0)]
    draw_charts(Facts(facts, state_times=rows))


def test_every_summary_table_row_has_all_columns(facts: Facts) -> None:
    for block in summary(facts, title="a report").split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1, block


def test_names_in_the_summary_are_code_and_text_mentions_no_user() -> None:
    assert code("a`b|c\nd") == "`` a`b\\|c d ``"
    assert code(None) == ""
    assert cell("<b> @all [x](y) a|b") == r"&lt;b&gt; \@all \[x\](y) a\|b"
