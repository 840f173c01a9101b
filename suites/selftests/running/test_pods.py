"""Compiling for TPU without one: the slice of a topology, and what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from records import growth

from conformance.catalogue.loading import load as load_clauses
from conformance.model.records import Growth
from conformance.model.schema import schema
from conformance.sections.indexing.pods import FIGURES, SLICES
from conformance.spec.topology import Topology
from conformance.worker.elsewhere import HOSTS, NoChipsError, slice_of
from harness.running.pods import lines
from reports.store.results import load

SCHEMA = schema()

GROWTH = growth(
    "indexing.integer.jit-zero", (8, 3 << 20), (16, 6 << 20), jax="0.12.0.1", row=1 << 20
)


@pytest.mark.parametrize(
    ("topology", "name", "host"),
    [
        ("1x1", "v5e:1x1", (1, 1)),
        ("1x8", "v5e:2x4", (2, 4)),
        ("2x2", "v5e:2x2", (1, 2)),
        ("4x2", "v5e:2x4", (1, 2)),
        ("2x8", "v5e:4x4", (2, 4)),
        ("4x4", "v5e:4x4", (2, 2)),
        ("1x16", "v5e:4x4", (4, 4)),
        ("32x8", "v5e:16x16", (2, 4)),
    ],
)
def test_a_topology_is_the_squarest_slice_of_its_hosts(
    topology: str, name: str, host: tuple[int, int]
) -> None:
    assert slice_of(Topology.parse(topology)) == (name, host)


@pytest.mark.parametrize(
    ("topology", "says"), [("2x3", "1, 2, 4, 8"), ("64x8", "at most 16x16"), ("1x17", "16x16")]
)
def test_what_no_slice_is(topology: str, says: str) -> None:
    with pytest.raises(NoChipsError, match=says):
        slice_of(Topology.parse(topology))


def test_the_chips_of_a_host_are_as_many_as_it_says() -> None:
    assert {count: width * height for count, (width, height) in HOSTS.items()} == {
        count: count for count in HOSTS
    }


def test_pods_double_from_8_to_1024_chips() -> None:
    sizes = []
    for one in SLICES:
        sides = [int(side) for side in one.removeprefix("v5p:").split("x")]
        sizes.append(sides[0] * sides[1] * sides[2])
    assert sizes == [8 << n for n in range(8)]


def test_each_figure_stands_beside_a_clause() -> None:
    assert FIGURES
    assert FIGURES.keys() <= load_clauses().clauses.keys()


def test_a_record_is_one_of_a_results_file() -> None:
    jsonschema.validate(GROWTH, SCHEMA)


@pytest.mark.parametrize("key", ["points", "libtpu", "row"])
def test_a_record_without_it_is_none(key: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({k: v for k, v in GROWTH.items() if k != key}, SCHEMA)


def test_a_line_says_what_moves_by_the_number_of_chips() -> None:
    (line,) = lines([msgspec.convert(GROWTH, Growth)])
    for part in ("jax==0.12.0.1", "TPU v5", "`x[0]` under jit"):
        assert part in line
    assert line.endswith(" 8: 3, 16: 6")


def test_growths_are_read_and_a_later_one_replaces_an_earlier(tmp_path: Path) -> None:
    file = tmp_path / "pods.jsonl"
    later = {**GROWTH, "points": GROWTH["points"][:1]}
    file.write_text("".join(json.dumps(one) + "\n" for one in (GROWTH, later)))
    (one,) = load([file]).growths
    assert (one.clause, [point.chips for point in one.points]) == (GROWTH["clause"], [8])
