"""Perturbations of recorded cells, one pure function each, by subject."""

from __future__ import annotations

from conformance.mutation.perturbing import endings, faults, figures, proofs, results
from conformance.mutation.perturbing.case import Perturbation

PERTURBATIONS: tuple[Perturbation, ...] = (
    *results.PERTURBATIONS,
    *endings.PERTURBATIONS,
    *figures.PERTURBATIONS,
    *proofs.PERTURBATIONS,
    *faults.PERTURBATIONS,
)
