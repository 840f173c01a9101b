"""Looks like parallel code, but is NumPy and the standard library."""
import collections
import dataclasses
import pathlib

import numpy as np


@dataclasses.dataclass
class Shard:
    data: np.ndarray
    index: int


def replicate(x, n):
    return np.stack([x] * n)


def unreplicate(tree):
    return {name: value[0] for name, value in tree.items()}


def shard(x, n):
    return [Shard(part, i) for i, part in enumerate(np.split(x, n))]


def pmean(values):
    return sum(values) / len(values)


def load(folder):
    out = collections.defaultdict(list)
    for path in sorted(pathlib.Path(folder).glob("*.npz")):
        with np.load(path) as archive:
            for name in archive.files:
                out[name].append(archive[name])
    return {name: np.stack(parts) for name, parts in out.items()}


def main(folder):
    tree = load(folder)
    first = unreplicate(tree)
    for name, value in tree.items():
        parts = shard(value, 2)
        print(name, parts[0].data[0], parts[1:], first[name])
        for part in parts:
            print(part.index, pmean(part.data))
    return replicate(first["w"], 4)[1:3]
