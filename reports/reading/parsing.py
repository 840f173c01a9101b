"""One JSON value, fast where it can be."""

from __future__ import annotations

import json
from typing import Any

import orjson


def parsed(text: bytes) -> Any:
    """The value of a JSON text; ValueError where it is none, or is nested too deeply.

    Messages hold what a program printed, half of a character as well, which only json reads.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        try:
            return json.loads(text.decode("utf-8"))
        except RecursionError:
            raise ValueError("nested too deeply") from None
