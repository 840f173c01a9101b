"""The JSON Schema of a line of a results file, made of the records."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec

from conformance.model.observations import Observation
from conformance.model.records import SCHEMA_VERSION, AnyRecord
from conformance.model.verdicts import RECORDED

REFERENCE = "#/$defs/"

Schema: TypeAlias = dict[str, Any]

# What the types do not say: a target that was there has what its cells are named by.
_AVAILABLE = {
    "if": {"properties": {"unavailable": {"type": "null"}}},
    "then": {
        "properties": {name: {"type": "string", "minLength": 1} for name in ("jax", "platform")}
    },
}


def schema() -> Schema:
    """Return the schema; its definitions are named like the records, in lower case."""
    (lines, _), parts = msgspec.json.schema_components(
        [AnyRecord, Observation], ref_template=f"{REFERENCE}{{name}}"
    )
    definitions: Schema = _named({_name(name): one for name, one in parts.items()})
    definitions["cell"]["properties"]["observations"]["items"] = {"$ref": f"{REFERENCE}observation"}
    definitions["verdict"]["enum"] = [one.value for one in RECORDED]
    definitions["target"] |= _AVAILABLE
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of a pmap-conformance results file, schema version {SCHEMA_VERSION}",
        "description": (
            "A results file is JSON Lines in UTF-8. Target and clause records stand before the "
            "cells that name them. A last line without its newline is torn: its run was "
            "interrupted."
        ),
        "oneOf": _named(lines["anyOf"]),
        "$defs": definitions,
    }


def _named(value: Any) -> Any:
    """Return a schema with lower-case references, and without titles and line ends."""
    if isinstance(value, list):
        return [_named(one) for one in value]
    if not isinstance(value, dict):
        return value
    if isinstance(text := value.get("description"), str):  # a docstring has lines
        value = value | {"description": " ".join(text.split())}
    if isinstance(reference := value.get("$ref"), str):
        value = value | {"$ref": REFERENCE + _name(reference.removeprefix(REFERENCE))}
    own = "properties" in value or "enum" in value  # of a class, not of a field called `title`
    return {key: _named(one) for key, one in value.items() if not (own and key == "title")}


def _name(type_name: str) -> str:
    return re.sub(r"(?<=.)(?=[A-Z])", "-", type_name).lower()
