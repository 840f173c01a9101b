"""`new ID --claim SLUG`: write a clause's skeleton at the end of the module where it belongs."""

from __future__ import annotations

import ast
import keyword
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

    It goes into `module` of its section or, by default, to the section's clauses whose ids have the
    most words in common. ValueError if the id exists, or the section, claim or module does not.
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
    file = folder / f"{module or _home(catalogue, id)}.py"
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


def _home(catalogue: Catalogue, id: str) -> str:
    """Return the module of the clause whose id has the longest common beginning."""

    def common(other: str) -> int:
        return next((at for at, (a, b) in enumerate(zip(id, other, strict=False)) if a != b), 0)

    section = id.partition(".")[0]
    inside = [one for one in catalogue.clauses.values() if one.section == section]
    if not inside:
        return ""
    nearest = max(inside, key=lambda one: common(one.id))
    return Path(nearest.where[0]).stem


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
