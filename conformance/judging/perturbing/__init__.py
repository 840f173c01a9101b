"""Perturbations of recorded cells, one pure function each, by subject."""

from __future__ import annotations

from conformance.judging.perturbing import endings, faults, figures, proofs, results
from conformance.judging.perturbing.case import Case as Case
from conformance.judging.perturbing.case import Perturbation as Perturbation
from conformance.judging.perturbing.case import Seen as Seen

PERTURBATIONS: tuple[Perturbation, ...] = (
    *results.PERTURBATIONS,
    *endings.PERTURBATIONS,
    *figures.PERTURBATIONS,
    *proofs.PERTURBATIONS,
    *faults.PERTURBATIONS,
)
