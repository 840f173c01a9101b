"""What the modules of the time lane have in common."""

from __future__ import annotations

DEADLINE_S = 60.0
BESIDE_JIT = ("mapped", "plain jit")  # contenders
