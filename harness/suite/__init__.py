"""What pytest collects: a test per section of the catalogue, with a file each in `suites/`.

An installed wheel has no `suites/`: `pmap-conformance run` collects this package.
"""

from __future__ import annotations

SECTIONS = (
    "donation",
    "drop_in",
    "errors",
    "idioms",
    "indexing",
    "inputs",
    "multi_controller",
    "outputs",
    "rank",
    "rewriting",
    "sharded_computation",
    "silences",
    "switches",
    "timing",
)
