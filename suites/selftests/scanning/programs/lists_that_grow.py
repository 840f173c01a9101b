import collections

import jax

step = jax.pmap(lambda x: {"loss": x.sum(), "norm": abs(x).max()})


class Log:
    def __init__(self):
        self.kept = []

    def add(self, metrics):
        self.kept.append(metrics)

    def first(self):
        return [one["loss"][0] for one in self.kept]  # finds: index-replicates-the-row


def main(batches):
    log, rows = Log(), collections.defaultdict(list)
    both = []
    for x in batches:
        metrics = step(x)  # finds: calls-run-python
        log.add(metrics)
        rows["loss"].append(metrics["loss"])
        both += [metrics["norm"]]
    print(rows["loss"][-1][0])  # finds: index-replicates-the-row
    print(both[0][0])  # finds: index-replicates-the-row
    return log.first()
