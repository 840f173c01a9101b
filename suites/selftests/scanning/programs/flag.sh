python train.py --config small --jax_pmap_shmap_merge=false  # finds: merge-flag-gone
