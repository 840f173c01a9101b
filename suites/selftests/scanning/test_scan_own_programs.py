"""The rules of a known issue find the program that shows it, which was not written for them."""

from __future__ import annotations

import pytest
from scanned_programs import found_in

from conformance.catalogue.causes import FOLDER, load_causes
from conformance.scanning.files import listed
from conformance.scanning.findings import Change
from conformance.scanning.rules import Side, rules
from conformance.scanning.scan import scan

pytestmark = pytest.mark.long

LEAST = 0.75  # the others take options from loops and command lines, or look at what is compiled
UPGRADES = (
    ("legacy_pmap", "new_pmap"),
    ("shard_map", "shard_map"),
    ("new_pmap", "shard_map"),
)


def test_most_issues_are_found_in_the_programs_that_show_them() -> None:
    causes = [one for one in load_causes().values() if one.finds]
    found: set[str] = set()
    for old, new in UPGRADES:
        sides = Side(old, "0.9.0"), Side(new, "0.12.0.1")
        for one in causes:
            some = rules([(one, Change("error"))], *sides)
            files, _ = listed([FOLDER / one.section / "causes" / f"{one.slug}.py"])
            if one.slug not in found and found_in(scan(files, some, old=old, new=new)):
                found.add(one.slug)
    missed = sorted({one.slug for one in causes} - found)
    assert len(found) >= LEAST * len(causes), missed
