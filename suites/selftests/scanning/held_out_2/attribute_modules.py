"""import jax as j; everything through attributes and reassignments."""
import jax as j
import jax.numpy as np
import numpy as onp

P = j.pmap
T = j.tree_util
lax = j.lax
fast = P(lambda a: lax.psum(a, "q"), "q")


class Ops:
    add = staticmethod(P(lambda a, b: a + b))
    neg = staticmethod(j.jit(lambda a: -a))


def use(a, b):
    s = Ops.add(a, b)
    n = Ops.neg(a)
    q = fast(s)
    head = q[0]  # finds: index-replicates-the-row
    tail = s[1:]  # finds: several-rows-gather-the-whole-array
    return head, tail, n[0], n[1:], a[0]


def tree(a):
    out = {"x": fast(a), "y": (fast(a), onp.zeros(3))}
    xs = T.tree_map(lambda l: l[0], {"x": out["x"]})  # finds: index-replicates-the-row
    return xs, out["y"][1][0], out["y"][0].shape


getattr(j, "pmap")
mapped = getattr(j, "pmap")(np.sin)


def dynamic(a):
    return mapped(a)[0]  # finds: index-replicates-the-row
