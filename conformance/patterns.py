"""Which clauses of a plain jit do what a clause of a mapped function does."""

from __future__ import annotations

from collections.abc import Mapping

# By subject the patterns: the clause of a mapped function, and that of a plain jit which does the
# same. Several maps may be one plain jit.
PATTERNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Training": (
        ("idioms.training.pmean", "idioms.jit.descent"),
        ("idioms.training.psum-over-count", "idioms.jit.sum-over-count"),
        ("idioms.training.whole-weights", "idioms.jit.whole-weights"),
        ("idioms.training.momentum", "idioms.jit.momentum"),
        ("idioms.training.accumulation", "idioms.jit.accumulation"),
        ("idioms.training.clipping", "idioms.jit.clipping"),
        ("idioms.training.skipping", "idioms.jit.skipping"),
    ),
    "Evaluation": (
        ("idioms.evaluation.whole-weights", "idioms.jit.predictions"),
        ("idioms.evaluation.gathered", "idioms.jit.gathered"),
        ("idioms.evaluation.padded", "idioms.jit.padded"),
        ("idioms.evaluation.host-mean", "idioms.jit.host-mean"),
        ("idioms.evaluation.metric-list", "idioms.jit.metric-list"),
        ("idioms.evaluation.joined", "idioms.jit.joined"),
        ("idioms.evaluation.batch-norm", "idioms.jit.batch-norm"),
        ("idioms.evaluation.reconciled", "idioms.jit.reconciled"),
    ),
    "A replicated state": (
        ("idioms.state.unreplicated", "idioms.jit.fetched"),
        ("idioms.state.off-the-shard", "idioms.jit.off-the-shard"),
        ("idioms.state.logged", "idioms.jit.logged"),
        ("idioms.state.initialised-whole", "idioms.jit.initialised-whole"),
        ("idioms.state.initialised-on-each", "idioms.jit.initialised-on-each"),
        ("idioms.state.saved", "idioms.jit.saved"),
    ),
    "Loops, nests and callbacks": (
        ("idioms.loops.scan", "idioms.jit.scan"),
        ("idioms.loops.fori", "idioms.jit.fori"),
        ("idioms.loops.metric-sums", "idioms.jit.metric-sums"),
        ("idioms.loops.chains", "idioms.jit.chains"),
        ("idioms.loops.inner-vmap", "idioms.jit.inner-vmap"),
        ("idioms.loops.inner-vmap-apart", "idioms.jit.inner-vmap-apart"),
        ("idioms.loops.inner-vmap-unchecked", "idioms.jit.inner-vmap"),
        ("idioms.loops.callback", "idioms.jit.callback"),
    ),
    "A member on each device": (
        ("idioms.ensembles.ensemble", "idioms.jit.ensemble"),
        ("idioms.ensembles.sweep", "idioms.jit.sweep"),
        ("idioms.ensembles.folds", "idioms.jit.folds"),
        ("idioms.ensembles.ring", "idioms.jit.ring"),
        ("idioms.ensembles.averaging-at-times", "idioms.jit.averaging-at-times"),
        ("idioms.ensembles.population", "idioms.jit.population"),
    ),
    "Random numbers": (
        ("idioms.randomness.split", "idioms.jit.split"),
        ("idioms.randomness.fold-in", "idioms.jit.fold-in"),
        ("idioms.randomness.carried", "idioms.jit.carried"),
        ("idioms.randomness.dropout", "idioms.jit.dropout"),
        ("idioms.randomness.of-the-first", "idioms.jit.of-the-first"),
    ),
    "Ways to call a step": (
        ("idioms.calling.static-flag", "idioms.jit.static-flag"),
        ("idioms.calling.static-flag-placed", "idioms.jit.static-flag-placed"),
        ("idioms.calling.static-callable", "idioms.jit.static-callable"),
        ("idioms.calling.many-arguments", "idioms.jit.many-arguments"),
        ("idioms.calling.decorator", "idioms.jit.decorator"),
        ("idioms.calling.method", "idioms.jit.method"),
        ("idioms.calling.static-self", "idioms.jit.static-self"),
    ),
    "Groups and orders of devices": (
        ("idioms.devices.actor-and-learner", "idioms.jit.actor-and-learner"),
        ("idioms.devices.barrier", "idioms.jit.barrier"),
        ("idioms.devices.under-jit", "idioms.jit.under-jit"),
        ("idioms.devices.prefetch", "idioms.jit.prefetch"),
        ("idioms.devices.reversed", "idioms.jit.reversed"),
    ),
    "Helpers of projects": (
        ("idioms.helpers.broadcast-copies", "idioms.jit.broadcast-copies"),
        ("idioms.helpers.broadcast-rows", "idioms.jit.broadcast-rows"),
        ("idioms.helpers.mean-where-mapped", "idioms.jit.mean-where-mapped"),
        ("idioms.helpers.host-mean", "idioms.jit.host-number"),
        ("idioms.helpers.keys-by-process", "idioms.jit.keys-by-process"),
        ("idioms.helpers.first-device-output", "idioms.jit.first-device-output"),
        ("idioms.helpers.sampler", "idioms.jit.sampler"),
        ("idioms.helpers.kernel-chains", "idioms.jit.kernel-chains"),
    ),
    "Libraries": (
        ("idioms.libraries.flax-replicate", "idioms.jit.fetched"),
        ("idioms.libraries.flax-prefetch", "idioms.jit.prefetch"),
        ("idioms.libraries.flax-metrics", "idioms.jit.flax-metrics"),
        ("idioms.libraries.flax-train-state", "idioms.jit.flax-train-state"),
        ("idioms.recipes.flax-replicated-state", "idioms.jit.flax-replicated-state"),
        ("idioms.recipes.flax-pad-shard-unpad", "idioms.jit.flax-pad-shard-unpad"),
        ("idioms.libraries.optax-adam", "idioms.jit.optax-adam"),
        ("idioms.recipes.optax-multi-steps", "idioms.jit.optax-multi-steps"),
        ("idioms.recipes.optax-apply-if-finite", "idioms.jit.optax-apply-if-finite"),
        ("idioms.libraries.equinox-filter-pmap", "idioms.recipes.equinox-filter-shard"),
        ("idioms.recipes.equinox-model-not-mapped", "idioms.recipes.equinox-filter-shard"),
        ("idioms.recipes.equinox-partition", "idioms.jit.equinox-partition"),
        ("idioms.recipes.haiku-averaged-state", "idioms.jit.haiku-state"),
    ),
}
