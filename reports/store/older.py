"""Records of earlier versions of the format, completed: what had only words then gets its fields.

This is the one place that reads a text which the judge has written.
"""

from __future__ import annotations

from msgspec.structs import replace

from conformance.model.records import Clause, Finding
from reports.store.codes import DTYPE, ERROR, PROOF, RIGHT, SHAPE, UNREAD, VALUE, WRONG

_PROOF_STEP = "proof"
# How the texts of older findings begin; those of newer ones have fields where they begin so.
_RIGHT_VALUES, _WRONG_VALUES = "no error, and the right values", "WRONG: "
_NO_VALUES, _RAISES, _MISTAKE = "no local values", "raises", "it is "
_SINCE = "; since then: "  # in an expectation that differs by release
_WORDS = (
    ("same shape, wrong values", VALUE),
    (_MISTAKE, VALUE),
    ("shape [", SHAPE),
    ("dtype ", DTYPE),
    ("raised ", ERROR),
    (_RIGHT_VALUES, ERROR),
)


def code_of(finding: Finding) -> str:
    """Return the code of a finding; of one that does not hold it says what is wrong."""
    if finding.code:
        return finding.code
    if finding.step == _PROOF_STEP:
        return PROOF
    rest = finding.saw.removeprefix(_WRONG_VALUES)
    return next((code for words, code in _WORDS if rest.startswith(words)), "")


def completed(finding: Finding) -> Finding:
    """Return a finding that does not hold with all its fields, also where it has a text alone.

    That the values are wrong is a field: its text no longer begins with it.
    """
    saw = finding.saw
    bare = saw.removeprefix(_WRONG_VALUES)
    if finding.mistake or finding.values or finding.error_expected:
        return finding if bare is saw else replace(finding, saw=bare)
    values, mistake = "", ""
    if saw.startswith(_RIGHT_VALUES):
        values = RIGHT
    elif saw.startswith(_WRONG_VALUES):
        values = UNREAD if saw.startswith(_WRONG_VALUES + _NO_VALUES) else WRONG
    elif saw.startswith(_MISTAKE):
        mistake = saw.removeprefix(_MISTAKE).split(":")[0]
    return replace(
        finding,
        saw=bare,
        code=code_of(finding),
        mistake=mistake,
        values=values,
        error_expected=finding.expected.startswith(_RAISES),
    )


def with_releases(clause: Clause) -> Clause:
    """Return a clause's record with the implementations of which the expectation changes."""
    if clause.by_release:
        return clause
    changing = tuple(name for name, text in clause.expected.items() if _SINCE in text)
    return replace(clause, by_release=changing) if changing else clause
