#!/usr/bin/env bash
# Runs the sweep on one host with eight devices.
set -euo pipefail

OUT=${1:-/tmp/sweep}
mkdir -p "$OUT"

export XLA_PYTHON_CLIENT_PREALLOCATE=false
export TF_CPP_MIN_LOG_LEVEL=2
# JAX_PMAP_SHMAP_MERGE was tried here once; see the wiki.

for lr in 0.1 0.03 0.01; do
  for seed in 0 1 2; do
    name="lr${lr}_s${seed}"
    if [[ -f "$OUT/$name/done" ]]; then
      continue
    fi
    # finds-next: merge-variable-ignored
    JAX_PMAP_SHMAP_MERGE=0 python -m project.main \
      --lr "$lr" --seed "$seed" \
      --workdir "$OUT/$name" 2>&1 | tee "$OUT/$name.log"
    touch "$OUT/$name/done"
  done
done

python -m project.main --evaluate --jax_pmap_shmap_merge=false --workdir "$OUT/best"  # finds: merge-flag-gone
