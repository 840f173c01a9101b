"""pmap rewritten as jit(shard_map): the recipes, their collectives and their gradients."""

from __future__ import annotations

from harness.suite.test_sections import test_rewriting as test_rewriting
