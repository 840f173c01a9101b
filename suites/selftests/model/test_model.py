"""The records of results files: what is written is read again, and what is none is refused."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
import pytest
from msgspec import structs
from records import cause, cell, claim, clause, target, timing
from sample_results import sample

from conformance.model import records
from conformance.model.codec import (
    MOST_DEEP,
    NoValue,
    Part,
    decode_json,
    decode_observations,
    decode_record,
    encode_json,
    encode_record,
)
from conformance.model.schema import schema
from conformance.spec.expectation import Finding

VALIDATOR = jsonschema.Draft202012Validator(schema())
HALF = "half of a character: \ud800"


def line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


@pytest.mark.parametrize("record", sample(), ids=lambda one: one["kind"])
def test_a_record_that_is_read_and_written_says_the_same(record: dict[str, Any]) -> None:
    VALIDATOR.validate(record)
    read = decode_record(line(record))
    written = encode_record(read)
    VALIDATOR.validate(json.loads(written))
    again = decode_record(written)
    assert {name: getattr(again, name) for name in read.__struct_fields__} == {
        name: getattr(read, name) for name in read.__struct_fields__
    }
    assert json.loads(written).items() <= record.items()  # what is as it usually is, is left out


def test_the_long_parts_of_a_cell_are_not_read_before_they_are_asked_for() -> None:
    read = decode_record(line(cell("errors.a", observations=[{"process": "no number"}, 3])))
    assert isinstance(read, records.Cell)
    assert isinstance(read.observations, Part)
    assert encode_record(read).count(b'"no number"') == 1
    with pytest.raises(NoValue, match=r"observations: Expected `object`, got `int`"):
        list(read.observations)


@pytest.mark.parametrize("key", ["findings", "observations"])
def test_a_long_part_is_a_list(key: str) -> None:
    with pytest.raises(NoValue, match=rf"`array`.* `\$\.{key}`"):
        decode_record(line(cell("errors.a") | {key: {}}))


def test_a_cell_with_half_of_a_character_is_read_and_written() -> None:
    seen = [{"process": 0, "steps": [], "text": HALF}]
    read = decode_record(line(cell("errors.a", reason=HALF, observations=seen)))
    assert isinstance(read, records.Cell)
    again = decode_record(encode_record(read))
    assert isinstance(again, records.Cell)
    assert (again.reason, list(again.observations)) == (HALF, seen)


def test_a_verdict_of_a_newer_program_is_noted() -> None:
    notes: list[str] = []
    read = decode_record(line(cell("errors.a", "exploded", reason="it did")), note=notes.append)
    assert isinstance(read, records.Cell)
    assert (read.verdict, read.reason) == ("unknown", "exploded: it did")
    (note,) = notes
    assert "'exploded'" in note


def nested(depth: int, inner: str = "1") -> bytes:
    return ("[" * depth + inner + "]" * depth).encode()


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (nested(MOST_DEEP), ""),
        (nested(MOST_DEEP + 1), "nested too deeply"),
        (b'{"a":' * (MOST_DEEP + 1) + b"1" + b"}" * (MOST_DEEP + 1), "nested too deeply"),
        (b'[{"a":' * 128 + b"1" + b"}]" * 128, "nested too deeply"),
        (nested(MOST_DEEP, '"]]] \\" [[["'), ""),
        (nested(MOST_DEEP + 1, '"]]] \\\\"'), "nested too deeply"),
        (nested(3, '"' + "[" * 900 + '"'), ""),
        (b"1" + b"0" * 308, ""),
        (b"1" + b"0" * 309, "no float can hold"),
        (b'"' + b"1" * 400 + b'"', ""),
        (b"1e400", "no float can hold"),
        (b"NaN", "is not a number in JSON"),
    ],
)
def test_json_is_bounded(text: bytes, refused: str) -> None:
    if not refused:
        assert decode_json(text) == json.loads(text)
        return
    with pytest.raises(NoValue, match=refused):
        decode_json(text)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (target(schema=2), "schema 2 is newer than 1"),
        (target(jax=None), "an available target needs 'jax' and 'platform'"),
        (timing("errors.a", seconds=None), "either seconds or the reason"),
        (claim("migrate-pmap.errors") | {"slug": ""}, r"length >= 1 - at `\$\.slug`"),
        (clause("errors.a") | {"other": 1}, "unknown field `other`"),
        (cause("a-cause") | {"tags": "jax.pmap"}, r"Expected `array`, got `str` - at `\$\.tags`"),
        (cell("errors.a") | {"seconds": -1}, ">= 0"),
        (cell("errors.a", reason=HALF) | {HALF: 1}, "a key with an unpaired surrogate"),
    ],
)
def test_a_record_that_is_none_says_why(record: dict[str, Any], says: str) -> None:
    with pytest.raises(NoValue, match=says):
        decode_record(line(record))
    assert not VALIDATOR.is_valid(record) or record["kind"] == "timing"


def test_a_number_that_json_has_not_is_not_written() -> None:
    read = decode_record(line(cell("errors.a")))
    with pytest.raises(ValueError, match="seconds is inf"):
        encode_record(structs.replace(read, seconds=float("inf")))


def test_what_an_observation_may_be_is_any_object() -> None:
    text = encode_json([{"process": 0, "new in a later version": [1.5, None]}])
    assert decode_observations(text) == json.loads(text)


def test_the_judge_and_the_file_have_the_same_findings() -> None:
    judged = [one.name for one in dataclasses.fields(Finding)]
    assert judged == [*records.Finding.__struct_fields__]
