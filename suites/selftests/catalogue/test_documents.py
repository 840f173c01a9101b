"""The text of a document under each heading, read from copies in two formats."""

from __future__ import annotations

import re

import pytest

from conformance.catalogue.documents import (
    MAX_HEADING_CHARACTERS,
    format_of,
    hash_of,
    heading_texts,
    words_of,
)

GUIDE = """\
---
orphan: true
---

# Guide to `maps`

First words.

## `ValueError: no map`

### Example

```python
# not a heading
x = 1
```

### How to fix

Take a map.

## `ValueError: no mesh`

### Example

    ValueError: no mesh

### How to fix

Take   a
mesh.
"""

CAPTION = (
    "A figure whose caption is told from a heading by its length: " + "more words " * 5 + "follow#"
)

PAGE = f"""\
Guide to maps#
First words.
{CAPTION}
# In file example.py...
ValueError: no map#
Example#
ValueError: no map
How to fix#
Take a map.
ValueError: no mesh#
Example#
How to fix#
Take a
mesh.
"""

# Headings and their texts.


def test_markdown_headings() -> None:
    assert heading_texts(GUIDE, "markdown") == {
        "Guide to maps": "First words.",
        "ValueError: no map": "",
        "ValueError: no map > Example": "# not a heading x = 1",
        "ValueError: no map > How to fix": "Take a map.",
        "ValueError: no mesh": "",
        "ValueError: no mesh > Example": "ValueError: no mesh",
        "ValueError: no mesh > How to fix": "Take a mesh.",
    }


def test_text_headings() -> None:
    texts = heading_texts(PAGE, "text")
    assert list(texts) == [
        "Guide to maps",
        "ValueError: no map",
        "ValueError: no map > Example",
        "ValueError: no map > How to fix",
        "ValueError: no mesh",
        "ValueError: no mesh > Example",
        "ValueError: no mesh > How to fix",
    ]
    assert (
        texts["Guide to maps"]
        == f"First words. {CAPTION.removesuffix('#')} # In file example.py..."
    )
    assert texts["ValueError: no mesh > How to fix"] == "Take a mesh."


@pytest.mark.parametrize(("longer", "headings"), [(0, 1), (1, 0)])
def test_a_caption_is_told_by_its_length(longer: int, headings: int) -> None:
    line = "x" * (MAX_HEADING_CHARACTERS - 1 + longer) + "#"
    assert len(heading_texts(line, "text")) == headings


def test_a_known_subheading_keeps_its_key_where_it_stands_once() -> None:
    assert list(heading_texts("# Error\n## How to fix\n", "markdown")) == [
        "Error",
        "Error > How to fix",
    ]


def test_the_same_heading_twice_under_one_parent_loses_no_text() -> None:
    texts = heading_texts("# Error\n## Note\none\n## Note\ntwo\n", "markdown")
    assert texts["Error > Note"] == "one two"


def test_a_comment_of_a_sample_is_no_heading_of_a_text() -> None:
    assert list(heading_texts("Guide#\n# a comment #\n####\n", "text")) == ["Guide"]


def test_a_fence_that_names_a_language_does_not_end_a_fence() -> None:
    assert list(heading_texts("# A\n```\n```python\n# code\n```\n# B\n", "markdown")) == ["A", "B"]


def test_a_fence_ends_only_at_its_own_kind() -> None:
    text = "# A\n````\n```\n# code\n~~~\n````\n# B\n"
    assert list(heading_texts(text, "markdown")) == ["A", "B"]


def test_a_document_without_text_has_no_headings() -> None:
    with pytest.raises(ValueError, match="format 'none'"):
        heading_texts(GUIDE, "none")


@pytest.mark.parametrize(("text", "format"), [(GUIDE, "markdown"), (PAGE, "text")])
def test_a_format_is_told_from_the_first_heading(text: str, format: str) -> None:
    assert format_of(text) == format


def test_a_heading_is_known_by_its_words() -> None:
    assert words_of("What\u2019s `x[0]` *for*?") == words_of("What's x[0] for")
    assert words_of("Error > How to fix") != words_of("Error How to fix")


# One section in two formats.

LONG = "A caption is longer than a heading. " * 3 + "That is it."


@pytest.mark.parametrize(
    ("markdown", "page"),
    [
        pytest.param("Take **a _map_**, and *not\nthis*.", "Take a map, and not this.", id="marks"),
        pytest.param("- **Fix**: `a`\n- two", "Fix: a\ntwo", id="bullets"),
        pytest.param("1. one\n2. two", "one\ntwo", id="numbers"),
        pytest.param("1. one\n2. two", "1. one\n2. two", id="numbers kept"),
        pytest.param(
            "See [A](#appendix-a), [B][b].\n\n[b]: https://b.org", "See A, B.", id="links"
        ),
        pytest.param("`x[0](y)`", "x[0](y)", id="no link in code"),
        pytest.param(
            "{func}`jax.put`s of {class}`jax.Array`", "jax.put()s of jax.Array", id="roles"
        ),
        pytest.param("{doc}`A page <page>`", "A page", id="titled role"),
        pytest.param("```python\nx * y * 2  # z\n```", "x * y * 2 # z", id="code"),
        pytest.param("```{code-cell}\nx = -1\n```", "x = -1", id="cell"),
        pytest.param("```{warning}\nNot *so*.\n```", "Warning\nNot so.", id="box"),
        pytest.param(
            f"```{{figure}} a.png\n:alt: A\n:width: 2\n\n{LONG}\n```", f"A\n{LONG}#", id="figure"
        ),
        pytest.param("> [!NOTE]\n> Take a map.", "[!NOTE] Take a map.", id="quoted"),
        pytest.param("(label)=\n+++\n<!--* seen\n2026 *-->Words", "Words", id="unseen"),
        pytest.param(
            "`P('x')` of a \"map\"", "P(\u2018x\u2019) of a \u201cmap\u201d", id="quotation marks"
        ),
    ],
)
def test_one_text_in_two_formats_has_one_hash(markdown: str, page: str) -> None:
    of_markdown = heading_texts(f"# A\n{markdown}\n", "markdown")["A"]
    of_page = heading_texts(f"A#\n{page}\n", "text")["A"]
    assert hash_of(of_markdown) == hash_of(of_page)


@pytest.mark.parametrize(
    ("markdown", "page"),
    [
        pytest.param("`x * 2`", "x + 2", id="operator"),
        pytest.param("`-1`", "1", id="sign"),
        pytest.param("```\n- x\n```", "x", id="bullet in code"),
        pytest.param("`__init__`", "init", id="underscores of code"),
        pytest.param("a_b_c", "abc", id="underscores of words"),
        pytest.param("x[0]", "x(0)", id="brackets"),
    ],
)
def test_another_text_has_another_hash(markdown: str, page: str) -> None:
    of_markdown = heading_texts(f"# A\n{markdown}\n", "markdown")["A"]
    of_page = heading_texts(f"A#\n{page}\n", "text")["A"]
    assert hash_of(of_markdown) != hash_of(of_page)


def test_hash_is_short_and_depends_on_the_words() -> None:
    assert re.fullmatch("sha256:[0-9a-f]{16}", hash_of("Take a map."))
    assert hash_of("Take a map.") != hash_of("Take a mesh.")


@pytest.mark.parametrize(
    "copy",
    [
        pytest.param("don\u2019t take\na map", id="quotation mark"),
        pytest.param("don\u03b2\u20ac\u2122t  take a map", id="decoded wrongly"),
        pytest.param("don\u2019t take a\u00a0map", id="non-breaking space"),
        pytest.param("don\u2019t takea map", id="words joined"),
    ],
)
def test_copies_that_differ_in_form_only_have_one_hash(copy: str) -> None:
    assert hash_of(copy) == hash_of("dont take a map")
