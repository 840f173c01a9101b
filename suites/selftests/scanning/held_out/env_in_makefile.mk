.PHONY: train
train:
	JAX_PMAP_SHMAP_MERGE=0 python train.py  # finds: merge-variable-ignored
