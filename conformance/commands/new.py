"""`new ID --claim SLUG`: write a clause's skeleton at the end of the module where it belongs."""

from __future__ import annotations

import ast
import keyword
import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import conformance.sections
from conformance.catalogue.claims import Claims
from conformance.catalogue.loading import Catalogue
from conformance.catalogue.spelling import did_you_mean
from conformance.commands.importing import importing
from conformance.spec.clause import ID
from conformance.store.outputs import write_text

HEAD = '''"""{title}"""

from __future__ import annotations
'''

# Red until it is written: what a map returns is never None.
SKELETON = '''

@clause(
    "{id}",
    claim="{claim}",
    expect=everywhere(returns(lambda place: None, text="TO BE WRITTEN: what must be returned")),
)
def {name}(impl: Implementation, cluster: Cluster) -> None:
    """TO BE WRITTEN: what this program shows, in a sentence, which becomes its title."""
    cluster.twice(impl.map(double()), impl.given(cluster.rows(2)))
'''

NEEDED = {
    "clause": "conformance.spec.clause",
    "everywhere": "conformance.spec.columns",
    "returns": "conformance.spec.expectation",
    "double": "conformance.worker.bodies",
    "Cluster": "conformance.worker.protocols",
    "Implementation": "conformance.worker.protocols",
}


def new(catalogue: Catalogue, claims: Claims, id: str, claim: str, module: str | None) -> Path:
    """Write the skeleton; return the file that holds it.

    It goes into `module` of its section or, by default, into that of the clause most like it.
    ValueError if the id exists, or the section, claim or module does not.
    """
    if id in catalogue.clauses:
        where = ":".join(map(str, catalogue.clauses[id].where))
        raise ValueError(f"there is a clause {id} already: {where}")
    if claim not in claims.claims:
        raise ValueError(
            f"no claim is called {claim}{did_you_mean(claim, claims.claims)}: "
            "`pmap-conformance list claims` lists them"
        )
    if not ID.fullmatch(id):
        raise ValueError(f"{id}: an id is dotted lower-case words, as in errors.other-device")
    section, _, rest = id.partition(".")
    folder = Path(conformance.sections.__path__[0], section)
    if not rest or not folder.is_dir():
        known = ", ".join(catalogue.sections())
        raise ValueError(f"{id}: its first word must be a section, one of {known}")
    file = folder / f"{module or _home(catalogue, id, claim)}.py"
    words = rest.replace(".", " ").replace("-", " ").capitalize()
    text = file.read_text(encoding="utf-8") if file.is_file() else HEAD.format(title=f"{words}.")
    if not file.is_file() and module is None:
        raise ValueError(f"{section} has no clauses yet: name a module with --module")
    name = rest.replace(".", "_").replace("-", "_")
    taken = _bound(ast.parse(text))
    while keyword.iskeyword(name) or not name.isidentifier() or name in taken:
        name = f"{name}_" if name.isidentifier() else f"_{name}"
    added = SKELETON.format(id=id, claim=claim, name=name)
    for needed in NEEDED.keys() - _bound(ast.parse(text)):
        text = importing(text, NEEDED[needed], needed)
    write_text(file, text.rstrip("\n") + "\n" + added)
    return file


def subject(file: Path) -> str:
    """Return the subject of a module: the first paragraph of its docstring, in a line."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _home(catalogue: Catalogue, id: str, claim: str) -> str:
    """Return the module of the clauses most like it: by the id's first words, then by the claim.

    Of several modules that have such clauses it is the one with the most.
    """
    words = _words(id)
    found: dict[tuple[int, bool, int], Counter[str]] = {}
    for one in catalogue.clauses.values():
        if one.section == words[0]:
            like = _in_common(words, _words(one.id)), one.claim == claim, _in_common(id, one.id)
            found.setdefault(like, Counter())[Path(one.where[0]).stem] += 1
    return found[max(found)].most_common(1)[0][0] if found else ""


def _words(id: str) -> list[str]:
    return re.split(r"[.-]", id)


def _in_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the common beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _bound(tree: ast.Module) -> set[str]:
    """Return the names bound at a module's top level."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            names |= {
                one.id
                for one in ast.walk(node)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            }
    return names
