"""The grammar: a measure's text, what it means, and what is refused with an offer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import docrecall as dr
from docrecall.measures.grammar import Cut, Measure, parse, parse_all
from docrecall.measures.registry import DEFAULT_MEASURES, REGISTRY

KS = st.integers(1, 2**31 - 1)
CUTS = st.one_of(
    KS.map(lambda k: Cut("chunks", k)),
    KS.map(lambda k: Cut("docs", k)),
    KS.map(lambda k: Cut("tokens", k)),
    st.sampled_from([Cut("context"), Cut("all")]),
)
VALUES = {
    "coverage": st.floats(0, 1, exclude_min=True, allow_subnormal=False),
    "gap": st.integers(0, 2**31 - 1),
}


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    """A measure with a cut that it may have, and some of its parameters in any order."""
    definition = REGISTRY[draw(st.sampled_from(sorted(REGISTRY)))]
    cut = draw(CUTS.filter(lambda cut: definition.by_docs or cut.unit != "docs"))
    names = draw(st.lists(st.sampled_from(sorted(definition.params)), unique=True)) if definition.params else []
    return Measure(definition.name, cut, tuple((name, draw(VALUES[name])) for name in names))


MEASURES = measures()


@given(MEASURES)
def test_parse_is_the_inverse_of_str(measure: Measure):
    """The printed name of every measure is read as that measure."""
    assert parse(str(measure)) == measure


@given(st.lists(MEASURES, min_size=1))
def test_lists_keep_their_order_and_hold_each_measure_once(given_measures: list[Measure]):
    """Measures come in the order asked for, as values or as text; a repeated one stands where it stood first."""
    wanted = tuple(dict.fromkeys(given_measures))

    assert parse_all(given_measures) == wanted
    assert parse_all(map(str, given_measures)) == wanted


@given(st.text(max_size=30))
def test_any_other_text_is_a_measure_error(text: str):
    """Whatever the text, it is read or refused with a MeasureError, and what is read prints as itself."""
    try:
        measures = parse_all([text])
    except dr.MeasureError:
        return
    assert parse_all(map(str, measures)) == measures


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("doc_recall@1,3,10", ["doc_recall@1", "doc_recall@3", "doc_recall@10"]),
        ("doc_recall@1docs,3docs", ["doc_recall@1docs", "doc_recall@3docs"]),
        ("doc_recall@1docs,3", ["doc_recall@1docs", "doc_recall@3"]),
        ("doc_recall@1chunks,3docs,all", ["doc_recall@1", "doc_recall@3docs", "doc_recall@all"]),
        ("doc_recall@3chunks", ["doc_recall@3"]),
        ("doc_recall@3,3chunks,03", ["doc_recall@3"]),
        (" doc_recall @ 3docs , 5 ", ["doc_recall@3docs", "doc_recall@5"]),
        ("doc_ndcg@2147483647", ["doc_ndcg@2147483647"]),
    ],
)
def test_a_list_of_cuts_is_one_measure_each(text: str, names: list[str]):
    """Cuts after one name are measures of their own, and `chunks` is never written."""
    assert [str(measure) for measure in parse_all(text)] == names


def test_units_are_part_of_the_value():
    """`@3` and `@3docs` are different measures; `@3chunks` is `@3`."""
    assert parse("doc_recall@3") == Measure("doc_recall", Cut("chunks", 3)) == parse("doc_recall@3chunks")
    assert parse("doc_recall@3docs") == Measure("doc_recall", Cut("docs", 3)) != parse("doc_recall@3")
    assert parse("doc_recall@all") == Measure("doc_recall", Cut("all"))


@pytest.mark.parametrize("text", ["doc_recall@1,3,10docs", "doc_recall@1, 3, 10docs", "doc_recall@+1,3,10docs"])
def test_one_unit_for_many_cuts_is_refused_with_both_readings(text: str):
    """In `@1,3,10docs` the unit may be meant for one cut or for all, so the message writes both out."""
    with pytest.raises(dr.MeasureError) as caught:
        parse_all(text)

    message = str(caught.value).replace("+", "")
    assert "doc_recall@1docs,3docs,10docs" in message
    assert "doc_recall@1chunks,3chunks,10docs" in message


@pytest.mark.parametrize(
    "text", ["doc_recall@0", "doc_recall@-1", "doc_recall@3,0", "doc_recall@0docs", "doc_recall@-0"]
)
def test_k_must_be_positive(text: str):
    """A k below 1 is a ValueError in the words of the definition."""
    with pytest.raises(ValueError, match="k must be positive"):
        parse_all(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("doc_recall@1.5", "whole number"),
        ("doc_recall@2147483648", "largest"),
        ("doc_recall", r"names no cut.*doc_recall@3.*doc_recall@3docs"),
        ("doc_recall@", "names no cut"),
        ("doc_recall@3,", "is not a cut"),
        ("doc_recall@1,,3", "is not a cut"),
        ("doc_recall@three", "is not a cut"),
        ("doc_recall@3@4", "is not a cut"),
        ("doc_recall@3doc", 'unknown unit .doc.*Did you mean "docs"'),
        ("doc_recall@3passages", "unknown unit"),
        ("doc_recall(x=1)@3", "takes no parameters"),
        ("doc_recal@3", 'Did you mean "doc_recall"'),
        ("doc_ndgc@3", 'Did you mean "doc_ndcg"'),
        ("", "is not a measure"),
        ("@3", "is not a measure"),
    ],
)
def test_what_is_no_measure_is_refused(text: str, says: str):
    """Each fault has its own message, with the nearest name where there is one."""
    with pytest.raises(dr.MeasureError, match=says):
        parse_all([text])


@pytest.mark.parametrize(
    ("foreign", "chunks", "docs"),
    [
        ("recall@3", "doc_recall@3", "doc_recall@3docs"),
        ("recall_5", "doc_recall@5", "doc_recall@5docs"),
        ("R@100", "doc_recall@100", "doc_recall@100docs"),
        ("P@10", "doc_precision@10", "doc_precision@10docs"),
        ("P_5", "doc_precision@5", "doc_precision@5docs"),
        ("ndcg_cut_10", "doc_ndcg@10", "doc_ndcg@10docs"),
        ("nDCG@10", "doc_ndcg@10", "doc_ndcg@10docs"),
        ("map_cut_10", "doc_ap@10", "doc_ap@10docs"),
        ("success_1", "doc_hit@1", "doc_hit@1docs"),
        ("hit_rate@5", "doc_hit@5", "doc_hit@5docs"),
        ("MRR@10", "doc_rr@10", "doc_rr@10docs"),
        ("MRR", "doc_rr@all", "doc_rr@10docs"),
        ("recip_rank", "doc_rr@all", "doc_rr@10docs"),
        ("map", "doc_ap@all", "doc_ap@10docs"),
    ],
)
def test_names_of_other_tools_are_answered_with_ours(foreign: str, chunks: str, docs: str):
    """A name that another evaluator uses is refused with our two names for it, which are measures."""
    with pytest.raises(dr.MeasureError, match="another tool") as caught:
        parse_all([foreign])

    assert f"{chunks} looks at" in str(caught.value)
    assert f"{docs} at" in str(caught.value)
    assert [str(measure) for measure in parse_all([chunks, docs])] == [chunks, docs]


@pytest.mark.parametrize("nothing", [[], (), iter(())])
def test_no_measures_at_all_are_refused(nothing: object):
    """An empty list scores nothing, and says so."""
    with pytest.raises(dr.MeasureError, match="no measures"):
        parse_all(nothing)


@pytest.mark.parametrize("given", [3, None, [3], [None], [["doc_recall@3"]]])
def test_measures_are_text(given: object):
    """Anything but text and measures is a usage error and no fault of ours."""
    with pytest.raises(dr.UsageError):
        parse_all(given)


@pytest.mark.parametrize("unit", ["chunks", "docs"])
def test_cuts_made_by_hand_keep_the_same_rules(unit: str):
    """A Cut cannot be built without its number, with one that is not positive, or with one where none belongs."""
    for k in (None, 0, -1, 2**31):
        with pytest.raises(dr.MeasureError):
            Cut(unit, k)
    with pytest.raises(dr.MeasureError):
        Cut("all", 3)


def test_names_made_by_hand_are_in_the_registry():
    """A Measure cannot be built with an unknown name."""
    with pytest.raises(dr.MeasureError, match='Did you mean "doc_recall"'):
        Measure("doc_recal", Cut("all"))


def test_one_measure_is_asked_for_where_one_is_read():
    """`parse` reads exactly one measure."""
    with pytest.raises(dr.MeasureError, match="2 measures"):
        parse("doc_recall@1,3")


def test_default_measures():
    """Without measures these are scored, in this order."""
    assert [str(measure) for measure in parse_all(DEFAULT_MEASURES)] == [
        "naive_recall@10",
        "doc_recall@1",
        "doc_recall@3",
        "doc_recall@10",
        "doc_recall@10docs",
        "doc_ndcg@10docs",
        "repeat_share@10",
    ]


@pytest.mark.parametrize(("given", "ours"), [("recall@3docs", "doc_recall@3docs"), ("NDCG@10,20", "doc_ndcg@10,20")])
def test_foreign_name_with_our_cut_is_answered_with_that_cut(given: str, ours: str) -> None:
    """A name of another tool with a cut of ours is answered with our name and the same cut."""
    with pytest.raises(dr.MeasureError, match=f"ours is {ours}\\."):
        parse_all(given)
