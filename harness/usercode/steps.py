"""The names of the steps in which a user's function is called, and its result is used."""

from __future__ import annotations

CLAUSE = "user_code.calls"
PREPARE = "import and inputs"
CALLS = ("first call", "second call", "third call")
TIMED = "timed calls"
PLUS_ONE, FIRST_ROW, FETCH = "result + 1", "result[0]", "np.asarray(result)"
NEGATIVE = "negative axis"  # of a map that a function makes
LATER = (PLUS_ONE, FIRST_ROW, FETCH)
