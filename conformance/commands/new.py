"""`new ID --claim SLUG`: writes a clause's skeleton at the end of the module where it belongs."""

from __future__ import annotations

import ast
import keyword
from pathlib import Path

import conformance.sections
from conformance.catalogue.claims import Claims
from conformance.catalogue.clause import ID
from conformance.catalogue.loading import Catalogue

HEAD = '''"""{title}"""

from __future__ import annotations

from typing import Any

from conformance.catalogue.clause import clause
from conformance.judging.columns import everywhere
from conformance.judging.expectation import returns
from conformance.probing.bodies import double, doubled
'''

SKELETON = '''

@clause(
    "{id}",
    claim="{claim}",
    expect=everywhere(returns(doubled(2))),
)
def {name}(impl: Any, cluster: Any) -> None:
    """{statement}"""
    cluster.twice(impl.map(double()), impl.given(cluster.rows(2)))
'''

NEEDED = {
    "clause": "from conformance.catalogue.clause import clause",
    "everywhere": "from conformance.judging.columns import everywhere",
    "returns": "from conformance.judging.expectation import returns",
    "double": "from conformance.probing.bodies import double",
    "doubled": "from conformance.probing.bodies import doubled",
    "Any": "from typing import Any",
}


def new(catalogue: Catalogue, claims: Claims, id: str, claim: str, module: str | None) -> Path:
    """Write the skeleton; the file that holds it now.

    It goes into `module` of its section or, where none is named, to the section's clauses with the
    most words of its id in common. ValueError where the id is taken, or the section, claim or
    module does not exist.
    """
    if id in catalogue.clauses:
        where = ":".join(map(str, catalogue.clauses[id].where))
        raise ValueError(f"there is a clause {id} already: {where}")
    if claim not in claims.claims:
        raise ValueError(f"no claim is called {claim}: `python -m conformance claims` lists them")
    if not ID.fullmatch(id):
        raise ValueError(f"{id}: an id is dotted lower-case words, as in errors.other-device")
    section, _, rest = id.partition(".")
    folder = Path(conformance.sections.__path__[0], section)
    if not rest or not folder.is_dir():
        known = ", ".join(catalogue.sections())
        raise ValueError(f"{id}: its first word must be a section, one of {known}")
    file = folder / f"{module or _home(catalogue, id)}.py"
    text = file.read_text(encoding="utf-8") if file.is_file() else HEAD.format(title="")
    if not file.is_file() and module is None:
        raise ValueError(f"{section} has no clauses yet: name a module with --module")
    statement = claims.claims[claim].statement
    name = rest.replace(".", "_").replace("-", "_")
    taken = _bound(ast.parse(text))
    while keyword.iskeyword(name) or not name.isidentifier() or name in taken:
        name = f"{name}_" if name.isidentifier() else f"_{name}"
    added = SKELETON.format(id=id, claim=claim, name=name, statement=statement)
    text = _importing(text)
    file.write_text(text.rstrip("\n") + "\n" + added, encoding="utf-8")
    return file


def _home(catalogue: Catalogue, id: str) -> str:
    """The module of the clause whose id has most of its beginning in common."""

    def common(other: str) -> int:
        return next((at for at, (a, b) in enumerate(zip(id, other, strict=False)) if a != b), 0)

    section = id.partition(".")[0]
    inside = [one for one in catalogue.clauses.values() if one.section == section]
    if not inside:
        return ""
    nearest = max(inside, key=lambda one: common(one.id))
    return Path(nearest.where[0]).stem


def _importing(text: str) -> str:
    """The module with the imports that the skeleton needs, after its own; ruff sorts them."""
    tree = ast.parse(text)
    known = _bound(tree)
    lines = [line for name, line in NEEDED.items() if name not in known]
    if not lines:
        return text
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    at = max((node.end_lineno or 0 for node in imports), default=len(text.splitlines()))
    said = text.splitlines()
    return "\n".join([*said[:at], *dict.fromkeys(lines), *said[at:]]) + "\n"


def _bound(tree: ast.Module) -> set[str]:
    """The names at a module's top."""
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
