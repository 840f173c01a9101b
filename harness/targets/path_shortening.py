"""Replace this machine's folders in everything that goes into a results file.

Stacks, logs and messages contain paths of this machine; a reader elsewhere needs only the part
below.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from harness.targets.target import Target


class PathShortener:
    """Replaces the folders of one target and of this user by short names, in any JSON value."""

    def __init__(self, target: Target, home: Path | None = None) -> None:
        folders = {
            str(target.environment or target.python.parent.parent): "<target>",
            tempfile.gettempdir(): "<tmp>",
            str(home or Path.home()): "~",
        }
        # The longest first, because one may lie inside another.
        self._names = dict(sorted(folders.items(), key=lambda pair: -len(pair[0])))
        self._pattern = re.compile("|".join(map(re.escape, self._names)))

    def __call__(self, value: Any) -> Any:
        if type(value) is str:
            return self._pattern.sub(lambda match: self._names[match[0]], value)
        if isinstance(value, dict):
            return {key: self(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self(one) for one in value)
        if isinstance(value, Struct):
            names = value.__struct_fields__
            return structs.replace(value, **{one: self(getattr(value, one)) for one in names})
        return value
