# GNU make targets of the training image
PYTHON ?= python
STEPS ?= 1000
# finds-next: merge-variable-ignored
export JAX_PMAP_SHMAP_MERGE := 0
export XLA_PYTHON_CLIENT_MEM_FRACTION := 0.9

.PHONY: train eval clean
train:
	$(PYTHON) train.py --steps $(STEPS)

eval:
	$(PYTHON) eval.py --split test

clean:
	rm -rf build/ *.egg-info
