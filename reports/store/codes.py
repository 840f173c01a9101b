"""What a finding is about, each kind as one word."""

from __future__ import annotations

VALUE, SHAPE, DTYPE, WEAK_TYPE = "value", "shape", "dtype", "weak type"
ERROR, PROOF = "error", "proof"
OF_VALUES = (VALUE, SHAPE, DTYPE)  # by which returned values are wrong, the most severe first
COLLECTIVE, MEMORY, DONATION, WARNING = "collective", "memory", "donation", "warning"
NOTE = "note"  # of what a probe noted beside a step
RIGHT, WRONG, UNREAD = "right", "wrong", "unread"  # the values where an error was expected

WITHOUT_THE_FIX = "without the fix"  # the step of a remedy's clause that shows what it remedies
