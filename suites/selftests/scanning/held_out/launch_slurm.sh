#!/bin/bash
#SBATCH --nodes=4
set -euo pipefail
export XLA_FLAGS="--xla_force_host_platform_device_count=8"
if [[ "${LEGACY:-1}" == 1 ]]; then
  export JAX_PMAP_SHMAP_MERGE=false  # finds: merge-variable-ignored
fi
srun python -m project.main --config=configs/base.py "$@"
