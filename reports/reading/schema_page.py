"""The page of the results format, in Markdown, made of the JSON Schema of its lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

SCHEMA = "schema.json"
_REFERENCE = "#/$defs/"

_HEAD = """# Results format

What a line of a results file is: every record and field.

This page is generated from `reports/reading/schema.json` by `pmap-conformance dev docs`: do not
edit it.

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
    text = resources.files("reports.reading").joinpath(SCHEMA).read_text(encoding="utf-8")
    return "\n".join(_lines(json.loads(text))) + "\n"


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
        yield "| field | type | meaning |"
        yield "|---|---|---|"
        yield from _rows("", definition)


def _rows(prefix: str, schema: Schema) -> Iterator[str]:
    """A row for each field of an object, and for those of objects within it."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        said = [_cell(field.get("description", ""))]
        said += ["*required*"] if name in required else []
        yield f"| `{path}` | {_type(field)} | {' '.join(filter(None, said))} |"
        yield from _rows(f"{path}.", field)
        yield from _rows(f"{path}[].", field.get("items", {}))


def _type(schema: Schema) -> str:
    """The type of a field in words; other definitions as links."""
    if "$ref" in schema:
        return f"[{_name(schema)}](#{_name(schema)})"
    if "oneOf" in schema:
        return " or ".join(map(_type, schema["oneOf"]))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
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
    return name.removeprefix(_REFERENCE)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")
