"""What a finding is about: its code or, in files from before it had one, what its words begin with.

Only the codes that a report asks for are read from words; all others stay empty there.
"""

from __future__ import annotations

from reports.reading.records import Finding

VALUE, SHAPE, DTYPE, ERROR, PROOF = "value", "shape", "dtype", "error", "proof"
COLLECTIVE, MEMORY, DONATION, WARNING = "collective", "memory", "donation", "warning"
NOTE = "note"  # of what a probe noted beside a step
RIGHT_VALUES = "no error, and the right values"  # of a step that was expected to raise

_PROOF_STEP = "proof"
_WORDS = (
    ("same shape, wrong values", VALUE),
    ("it is ", VALUE),  # a mistake that has a name
    ("shape [", SHAPE),
    ("dtype ", DTYPE),
    ("raised ", ERROR),
    (RIGHT_VALUES, ERROR),
)


def code_of(finding: Finding) -> str:
    """The code of a finding; of one that does not hold it says what is wrong."""
    if finding.code:
        return finding.code
    if finding.step == _PROOF_STEP:
        return PROOF
    said = finding.saw.removeprefix("WRONG: ")
    return next((code for words, code in _WORDS if said.startswith(words)), "")
