"""Grouping of equal error messages, and the known issue of each group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import records as rows

from reports.analysis.errors.messages import Message, Sort, messages
from reports.analysis.errors.wording import address, first_sentence, template
from reports.render.site.build import render
from reports.store.results import Results, load

DEVICES = (
    "Received incompatible devices for jitted computation. Got argument {} of {} with shape {}"
)


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        (
            "numbers and names",
            "axis 3 is out of bounds for array of dimension 2",
            "axis … is out of bounds for array of dimension …",
        ),
        (
            "the first sentence",
            DEVICES.format("args[0]", "f", "float32[8]"),
            "Received incompatible devices for jitted computation",
        ),
        (
            "a line that announces another",
            "Cannot lower jaxpr with verifier errors:\n\tInvalid replica id -1\n\t\tat loc(x)",
            "Cannot lower jaxpr with verifier errors: Invalid replica id -…",
        ),
        (
            "arguments of a call, however deep",
            "NamedSharding(mesh=Mesh('i': 8, axis_types=(Auto,)), spec=P('i',)) does not fit",
            "NamedSharding(…) does not fit",
        ),
        (
            "quoted names",
            "shard_map applied to the function 'my_step' was given too much",
            "shard_map applied to the function … was given too much",
        ),
        (
            "but not a name that Python does not know",
            "make_mesh() got an unexpected keyword argument 'shape'",
            "make_mesh() got an unexpected keyword argument 'shape'",
        ),
        (
            "an apostrophe quotes nothing",
            "device_put's second argument can't be a device's number",
            "device_put's second argument can't be a device's number",
        ),
        (
            "words in brackets stay",
            "not implemented (and it moves data, so you don't want it)",
            "not implemented (and it moves data, so you don't want it)",
        ),
        ("names in brackets go", "The backend (cpu, cpu) cannot", "The backend (…) cannot"),
        ("shapes", "got float32[8,3] and float32[]", "got float… and float…"),
        ("places", "true_fun is f at ~/a/b.py:12 here", "true_fun is f at … here"),
        ("an open bracket", "got (1, 2 and no end", "got (… and no end"),
        ("nothing", "", ""),
    ],
)
def test_leaves_out_what_differs_each_time(name: str, message: str, expected: str) -> None:
    assert template(message) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("short", "got (1,) here"),
        ("long", "a word " * 100),
        ("a megabyte", "(" * 500_000 + "x" * 500_000),
        ("hostile", '<script>alert("x")</script> \u202e\x00 \ud800'),
    ],
)
def test_an_address_is_short_and_harmless(name: str, message: str) -> None:
    found = address("ValueError", template(message))
    assert 0 < len(found) <= 80
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_few_words_are_told_apart_by_the_type() -> None:
    assert address("KeyError", template("'i'")) == "keyerror"
    assert address("KeyError", "") != address("StopIteration", "")


def test_other_names_other_words() -> None:
    shape, sizes = (
        address("TypeError", template(f"make_mesh() got an unexpected keyword argument '{n}'"))
        for n in ("shape", "axis_sizes")
    )
    assert shape != sizes


def raised(process: int = 0, **exception: Any) -> rows.Record:
    return rows.observation(rows.raised(**exception), process=process)


def at(id: str, jax: str, *observations: rows.Record, **other: Any) -> rows.Record:
    return rows.cell(id, target=f"jax=={jax}", observations=list(observations), **other)


def test_a_title_names_files_without_their_folders() -> None:
    message = "UNKNOWN: ~/.cache/some/workers/0a1b/worker/proving.py:58:15: error: no attribute"
    assert first_sentence(message) == "UNKNOWN: …: error: no attribute"  # a line of the program
    assert first_sentence("cannot open /a/b/c.so: no file") == "cannot open …/c.so: no file"
    assert first_sentence("neither and/or nor 3/4") == "neither and/or nor 3/4"


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Two programs that meet one message, in three versions; a warning, a signal, our own error."""
    message = DEVICES.format("args[0]", "f", "float32[8]")
    other = DEVICES.format("x", "PlainImplementation.map", "float32[4,4]")
    warned = rows.sample_step(warnings=[{"category": "UserWarning", "message": "It moves. So."}])
    child = {"type": "ChildError", "module": "conformance.worker.child"}
    records = [
        *(rows.target(target=f"jax=={v}", jax=v) for v in ("0.9.0", "0.9.1", "0.10.0")),
        rows.claim("migrate-pmap.errors"),
        rows.cause("elsewhere", tags=["Received incompatible devices", "x"]),
        rows.cause("frequent"),
        *(rows.clause(f"errors.{n}") for n in ("a", "b", "c", "d", "e", "f")),
        at("errors.a", "0.9.0", raised(message=message), raised(1, message=message)),
        at("errors.a", "0.9.1", rows.observation(rows.sample_step(warnings=[]))),
        at("errors.a", "0.10.0", raised(message=other)),
        at("errors.b", "0.10.0", raised(message=other), verdict="known deviation")
        | {"deviation": rows.deviation(cause="elsewhere")},
        *(
            at(f"errors.{n}", "0.10.0", raised(message=other), verdict="known deviation")
            | {"deviation": rows.deviation(cause="frequent")}
            for n in ("c", "d")
        ),
        at("errors.c", "0.9.0", rows.observation(warned)),
        at("errors.d", "0.9.0", raised(message="KeyError: 'merge'", **child)),
        at("errors.e", "0.9.0", raised(message="something of ours", module="harness.running")),
        at("errors.f", "0.9.0", verdict="crashed"),
    ]
    return load([rows.write(tmp_path / "r.jsonl", records)])


def the(found: tuple[Message, ...], title: str) -> Message:
    return next(one for one in found if one.title == title)


def test_one_message_for_all_that_differ_in_names(results: Results) -> None:
    one = the(messages(results), "Received incompatible devices for jitted computation")
    assert one.sort is Sort.ERROR
    assert one.slug == "received-incompatible-devices-for-jitted-computation"
    assert set(one.clauses) == {"errors.a", "errors.b", "errors.c", "errors.d"}
    assert "PlainImplementation" not in one.example


def test_a_version_where_it_ran_and_said_nothing_breaks_the_range(results: Results) -> None:
    one = the(messages(results), "Received incompatible devices for jitted computation")
    assert [(s.implementation, s.jax) for s in one.shown] == [("new_pmap", "0.9.0, 0.10.0")]


def test_a_cause_that_quotes_the_message_comes_before_more_frequent_ones(results: Results) -> None:
    one = the(messages(results), "Received incompatible devices for jitted computation")
    assert [(m.cause, m.claim, len(m.clauses)) for m in one.meanings] == [
        ("elsewhere", "", 1),
        ("frequent", "", 2),
        ("", "migrate-pmap.errors", 1),
    ]


def test_warnings_and_signals_are_messages_too(results: Results) -> None:
    found = messages(results)
    assert the(found, "It moves").sort is Sort.WARNING
    killed = the(found, "The process is killed by SIGSEGV")
    assert (killed.sort, killed.slug) == (Sort.SIGNAL, "killed-by-sigsegv")
    assert "Fatal Python error" in killed.example
    assert [one.sort for one in found] == sorted((one.sort for one in found), key=list(Sort).index)


def test_the_harness_is_not_heard(results: Results) -> None:
    said = " ".join(one.example for one in messages(results))
    assert "something of ours" not in said
    assert the(messages(results), "KeyError 'merge'").types == ("KeyError",)


def known(id: str, jax: str, slug: str) -> rows.Record:
    """A program that raises in a version, for a known reason."""
    said = raised(type="ValueError", message="It does not fit.")
    return at(id, jax, said, verdict="known deviation") | {"deviation": rows.deviation(cause=slug)}


@pytest.fixture
def ended(tmp_path: Path) -> Results:
    """A message that two programs met for a reason that is no more, and one still does."""
    records = [
        *(rows.target(target=f"jax=={v}", jax=v) for v in ("0.9.2", "0.10.0")),
        rows.claim("migrate-pmap.errors"),
        rows.cause("earlier", tags=["It does not fit"]),
        rows.cause("still"),
        *(rows.clause(f"errors.{n}") for n in ("a", "b", "c")),
        known("errors.a", "0.9.2", "earlier"),
        known("errors.b", "0.9.2", "earlier"),
        known("errors.c", "0.9.2", "still"),
        known("errors.c", "0.10.0", "still"),
    ]
    return load([rows.write(tmp_path / "ended.jsonl", records)])


ORDINARY = "results-stay-on-all-devices"


def reasons(tmp_path: Path, title: str, other: rows.Record, *cells: rows.Record) -> list[str]:
    """The known issues behind a message in order: an ordinary one and another, by three tests."""
    records = [
        rows.target(target="jax==0.10.0", jax="0.10.0"),
        rows.claim("migrate-pmap.errors"),
        rows.cause(ORDINARY),
        other,
        *(rows.clause(f"errors.{n}") for n in ("a", "b", "c")),
        *cells,
    ]
    found = messages(load([rows.write(tmp_path / "reasons.jsonl", records)]))
    return [one.cause for one in the(found, title).meanings]


def test_what_most_programs_do_comes_before_what_more_tests_show(tmp_path: Path) -> None:
    assert reasons(
        tmp_path,
        "It does not fit",
        rows.cause("quoting", tags=["It does not fit"]),
        known("errors.a", "0.10.0", "quoting"),
        known("errors.b", "0.10.0", "quoting"),
        known("errors.c", "0.10.0", ORDINARY),
    ) == [ORDINARY, "quoting"]


def killed(id: str, slug: str) -> rows.Record:
    """A program that crashes, for a known reason."""
    died = at(id, "0.10.0", verdict="known deviation", fault=rows.fault("crashed"))
    return died | {"deviation": rows.deviation(cause=slug)}


def test_of_a_signal_the_reason_of_most_tests_comes_first(tmp_path: Path) -> None:
    assert reasons(
        tmp_path,
        "The process is killed by SIGSEGV",
        rows.cause("rare"),
        killed("errors.a", "rare"),
        killed("errors.b", "rare"),
        killed("errors.c", ORDINARY),
    ) == ["rare", ORDINARY]


def test_of_a_signal_what_needs_an_unusual_call_comes_last(tmp_path: Path) -> None:
    assert reasons(
        tmp_path,
        "The process is killed by SIGSEGV",
        rows.cause("odd"),
        rows.claim("pmap-silence.odd", claim_kind="silence"),
        killed("errors.a", "odd"),
        killed("errors.b", "odd"),
        rows.clause("errors.a", claim="pmap-silence.odd"),
        rows.clause("errors.b", claim="pmap-silence.odd"),
        killed("errors.c", ORDINARY),
    ) == [ORDINARY, "odd"]


@pytest.mark.parametrize(("end", "met"), [("SIGABRT", True), ("SIGTERM", False), ("exit 1", False)])
def test_a_process_of_a_plain_job_may_end_by_a_signal(tmp_path: Path, end: str, met: bool) -> None:
    ended = rows.step("process 0", extra={"text": f"{end} | lost"})
    records = [
        rows.target(target="jax==0.10.0", jax="0.10.0"),
        rows.claim("migrate-pmap.errors"),
        rows.clause("errors.a"),
        at("errors.a", "0.10.0", rows.observation(ended)),
    ]
    found = messages(load([rows.write(tmp_path / "job.jsonl", records)]))
    assert [one.title for one in found] == ["The process is killed by SIGABRT"] * met
    assert [one.shown[0].topologies for one in found] == [("standalone job",)] * met


def test_what_is_behind_it_in_the_newest_version_comes_first(ended: Results) -> None:
    one = the(messages(ended), "It does not fit")
    assert [(m.cause, m.until) for m in one.meanings] == [("still", ""), ("earlier", "0.9.2")]


def test_a_page_names_the_reasons_of_earlier_versions_below(ended: Results) -> None:
    page = render(ended)[f"errors/{the(messages(ended), 'It does not fit').slug}.html"]
    meaning = page[page.index("What it means") :].partition("</section>")[0]
    held, _, below = meaning.partition("<details")
    assert "Title of still" in held
    assert "new pmap: JAX 0.9.2 to 0.10.0" in held
    assert "Title of earlier" not in held
    assert "Only in versions before JAX 0.10.0: 1 reason" in below
    assert "new pmap: JAX 0.9.2 (2 tests)" in below


def test_a_warning_is_of_the_known_issue_that_quotes_it_whatever_else_its_program_shows(
    tmp_path: Path,
) -> None:
    warned = rows.step(warnings=[{"category": "DeprecationWarning", "message": "It is old. Go."}])
    entry = rows.deviation(cause="other")
    records = [
        rows.target(target="jax==0.10.0", jax="0.10.0"),
        rows.claim("migrate-pmap.errors"),
        rows.cause("other"),
        rows.cause("short", tags=["It is old"]),
        rows.cause("exact", tags=["It is old. Go."]),
        rows.clause("errors.a"),
        at(
            "errors.a",
            "0.10.0",
            rows.observation(warned),
            verdict="known deviation",
            deviation=entry,
        ),
    ]
    found = messages(load([rows.write(tmp_path / "quoted.jsonl", records)]))
    assert [m.cause for m in the(found, "It is old").meanings] == ["exact"]


def test_a_warning_and_an_error_of_one_text_are_two_messages(tmp_path: Path) -> None:
    text = "It is old. Go."
    warned = rows.step(warnings=[{"category": "DeprecationWarning", "message": text}])
    records = [
        rows.target(target="jax==0.10.0", jax="0.10.0"),
        rows.claim("migrate-pmap.errors"),
        rows.clause("errors.a"),
        rows.clause("errors.b"),
        at("errors.a", "0.10.0", rows.observation(warned)),
        at("errors.b", "0.10.0", rows.observation(rows.raised("AttributeError", text))),
    ]
    found = messages(load([rows.write(tmp_path / "two.jsonl", records)]))
    assert {(one.sort, one.types) for one in found} == {
        (Sort.WARNING, ("DeprecationWarning",)),
        (Sort.ERROR, ("AttributeError",)),
    }
    assert len({one.slug for one in found}) == 2
