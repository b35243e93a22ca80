"""Where units begin and end in rows that stand together, and what happens when they do not."""

from __future__ import annotations

import polars as pl
import pytest

from docrecall.errors import SplitUnitError
from docrecall.kernel.batch import Batch, find_units
from docrecall.kernel.labels import ByQuery, Labels
from docrecall.kernel.match import match


def rows(*triples: tuple[str, int, str], run: str | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(triples, schema={"query_id": str, "rank": int, "doc_id": str}, orient="row")
    return frame if run is None else frame.with_columns(run_id=pl.lit(run))


def labels(*triples: tuple[str, str, int]) -> Labels:
    qrels = pl.DataFrame(triples, schema={"query_id": str, "doc_id": str, "relevance": int}, orient="row")
    nobody = pl.Series("query_id", [], dtype=pl.String)
    held = qrels.sort("query_id").with_columns(served=pl.lit(True), stale=pl.lit(False))
    return Labels(ByQuery(held), None, None, None, nobody, nobody, nobody, has_index=False)


def test_units_are_found_with_their_hits_and_gaps():
    """Each unit has its number of rows; a jump between ranks is a gap, and so is a first rank above 1."""
    found = find_units(
        rows(("b", 1, "x"), ("b", 2, "x"), ("a", 3, "x"), ("c", 1, "x"), ("c", 3, "x"), ("c", 9, "x")), ["query_id"]
    )

    assert found.rows() == [("b", 2, 0), ("a", 1, 1), ("c", 3, 2)]


def test_runs_part_the_units_of_one_query():
    """The same query in two runs is two units."""
    both = pl.concat([rows(("q", 1, "x"), run="a"), rows(("q", 1, "x"), ("q", 2, "y"), run="b")])

    found = find_units(both, ["run_id", "query_id"])

    assert found.rows() == [("a", "q", 1, 0), ("b", "q", 2, 0)]


def test_no_rows_have_no_units():
    """Rows without any unit give the frame without rows."""
    assert find_units(rows(), ["query_id"]).rows() == []


def test_a_unit_in_two_places_is_an_error():
    """Rows of one unit with another between them are a fault of the planner, and never a wrong number."""
    with pytest.raises(SplitUnitError, match="more than one place"):
        find_units(rows(("a", 1, "x"), ("b", 1, "x"), ("a", 2, "x")), ["query_id"])


def test_a_batch_that_lacks_rows_of_its_units_is_an_error():
    """When fewer rows are read than the units have, a part of a unit is elsewhere."""
    units = pl.DataFrame({"run_id": ["r"], "query_id": ["a"], "n_hits": [3], "n_gaps": [0], "rejected": [False]})
    batch = Batch(units, rows(("a", 1, "x"), ("a", 2, "y")).lazy())

    with pytest.raises(SplitUnitError, match="3 rows was read as another number"):
        match(batch, labels(("a", "x", 1)), of_hits=set(), of_rows={"rank", "doc_id"}, passages=False)


@pytest.mark.parametrize("gap", [True, False], ids=["a rank is left out", "ranks are not read"])
@pytest.mark.parametrize("all_rows", [True, False])
def test_hits_meet_labels_of_their_own_unit(all_rows: bool, gap: bool):
    """A document is judged where its own query judges it, by exact ids; units without rows may stand anywhere."""
    units = pl.DataFrame(
        {
            "run_id": ["r"] * 3,
            "query_id": ["a", "none", "b"],
            "n_hits": [3, 0, 2],
            "n_gaps": [int(gap), 0, 0],
            "rejected": [False] * 3,
        }
    )
    log = rows(("a", 1, "x"), ("a", 2, "y"), ("a", 3 + gap, "x"), ("b", 1, "y"), ("b", 2, "x"))
    gold = labels(("a", "x", 2), ("b", "y", 1), ("none", "x", 1))

    met = match(
        Batch(units, log.lazy()),
        gold,
        of_hits=set(),
        of_rows={"rank", "doc_id"} if all_rows else set(),
        passages=False,
    )

    found = zip(met.hit_row.tolist(), met.hits["rank"].to_list(), met.grade[met.hit_target].tolist(), strict=True)
    assert list(found) == [(0, 1, 2), (2, 3 + gap, 2), (3, 1, 1)]
    assert met.met.tolist() == [0, 1, 2]
    assert met.starts.tolist() == [0, 3, 3, 5]


def test_distinct_documents_are_counted_before_each_row():
    """`docs_before` counts (unit, document) pairs: a document comes back in the next unit as a new one."""
    units = pl.DataFrame(
        {"run_id": ["r"] * 2, "query_id": ["a", "b"], "n_hits": [3, 2], "n_gaps": [0] * 2, "rejected": [False] * 2}
    )
    log = rows(("a", 1, "x"), ("a", 2, "x"), ("a", 3, "y"), ("b", 1, "x"), ("b", 2, "y"))

    met = match(
        Batch(units, log.lazy()), labels(("a", "x", 1)), of_hits=set(), of_rows={"rank", "doc_id"}, passages=False
    )

    assert met.docs_before.tolist() == [0, 1, 1, 2, 3, 4]
    assert met.row_unit.tolist() == [0, 0, 0, 1, 1]
