#!/bin/bash
# JAX_PMAP_SHMAP_MERGE is what we used before
export XLA_FLAGS=--xla_force_host_platform_device_count=8
export JAX_PMAP_SHMAP_MERGE=0  # finds: merge-variable-ignored
python train.py
