"""The pytest plugin: `-p harness.plugin` loads its hooks."""

from __future__ import annotations

pytest_plugins = ["harness.plugin.hooks"]
