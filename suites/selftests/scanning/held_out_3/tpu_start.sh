#!/bin/sh
# Starts training on every worker of a pod slice.
set -eu
ZONE=us-central2-b
NAME=pod
export JAX_PLATFORMS=tpu
gcloud compute tpus tpu-vm ssh "$NAME" --zone "$ZONE" --worker=all --command "
  cd project && git pull
  # finds-next: merge-variable-ignored
  JAX_PMAP_SHMAP_MERGE=0 python3 train.py --config configs/pod.py
"
echo "started $NAME; pmap over all workers"
