"""The page of the results format, in Markdown, made of the JSON Schema of its lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.model.schema import REFERENCE, schema

_HEAD = """# Results format

What a line of a results file is: every record and field.

This page and the [JSON Schema](results-format.schema.json) are generated from
`conformance/model/records.py` by `pmap-conformance dev docs`: do not edit them.

{description}

A file's name ends in `.jsonl`, or in `.jsonl.xz` where it is compressed. Of several records of one
cell the newest counts. A reader refuses a file of a newer schema. To read the published file:

```python
import json
import lzma
from collections import Counter

with lzma.open("reports/published/matrix.jsonl.xz", "rt", encoding="utf-8") as lines:
    records = (json.loads(line) for line in lines)
    print(Counter(one["verdict"] for one in records if one["kind"] == "cell"))
```

Each line is one of {records}. Its `kind` says which one. The other definitions on this page are
parts of these. A field that is not marked *required* may be missing."""

Schema = Mapping[str, Any]


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines(schema())) + "\n"


def as_json() -> str:
    """Return the schema as text."""
    return json.dumps(schema(), indent=2) + "\n"


def _lines(schema: Schema) -> Iterator[str]:
    records = [_name(one) for one in schema["oneOf"]]
    yield _HEAD.format(
        description=schema["description"],
        records=", ".join(f"[{name}](#{name})" for name in records),
    )
    for name, definition in schema["$defs"].items():
        yield ""
        yield f"## {name}"
        yield ""
        yield _cell(definition.get("description", ""))
        yield ""
        if "properties" not in definition:
            yield f"One of {_type(definition)}."
            continue
        yield "| field | type | meaning |"
        yield "|---|---|---|"
        yield from _rows(definition)


def _rows(schema: Schema) -> Iterator[str]:
    """A row for each field of an object."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        parts = [_cell(field.get("description", ""))]
        parts += ["*required*"] if name in required else []
        yield f"| `{name}` | {_type(field)} | {' '.join(filter(None, parts))} |"


def _type(schema: Schema) -> str:
    """The type of a field in words; other definitions as links."""
    if "$ref" in schema:
        return f"[{_name(schema)}](#{_name(schema)})"
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    named = schema.get("type", "any")
    kinds = [named] if isinstance(named, str) else named
    return " or ".join(_of_kind(kind, schema) for kind in kinds)


def _of_kind(kind: str, schema: Schema) -> str:
    if kind == "array" and "items" in schema:
        return f"array of {_type(schema['items'])}"
    values = schema.get("additionalProperties")
    if kind == "object" and isinstance(values, Mapping):
        return f"object of {_type(values)}"
    return kind


def _name(reference: Schema) -> str:
    name: str = reference["$ref"]
    return name.removeprefix(REFERENCE)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")
