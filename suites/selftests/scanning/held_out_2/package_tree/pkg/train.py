"""Uses maps of other modules under several names."""
import numpy as np

import pkg
from . import core
from .core import maps as m
from .core.maps import single_step, train_step as ts


def main(loader, n):
    w = np.zeros(n, np.float32)
    for x in loader:
        w, metrics = ts(w, x)  # finds: own-output-traced-again
    print(metrics["mean"][0])  # finds: index-replicates-the-row
    u, other = single_step(np.zeros(4), np.ones(4))
    print(other["mean"][None][0], u[0])
    v, _ = pkg.train_step(w, x)
    print(v[1])  # finds: index-replicates-the-row
    e = m.make_eval(np.square)(w)
    print(e[:2])  # finds: several-rows-gather-the-whole-array
    k = core.maps.train_step(w, x)[0]
    return k[0]  # finds: index-replicates-the-row
