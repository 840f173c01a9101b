"""The tutorial on sharded computation: jit, constraints and shard_map side by side."""

from __future__ import annotations

from harness.suite.test_sections import test_sharded_computation as test_sharded_computation
