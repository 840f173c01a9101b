"""pmap is also the name of other things."""
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from pathos.pools import ProcessPool


def pmap(fn, items, workers=4):
    """Map in parallel processes."""
    with multiprocessing.Pool(workers) as pool:
        return pool.map(fn, items)


def square(x):
    return x * x


class Mapper:
    def __init__(self, n):
        self.pool = ProcessPool(n)

    def pmap(self, fn, items):
        return list(self.pool.map(fn, items))

    def lower(self, text):
        return text.lower()


def main():
    squares = pmap(square, range(10))
    print(squares[0], squares[1:3])
    for one in squares:
        print(one)
    mapper = Mapper(2)
    values = mapper.pmap(square, [1, 2, 3])
    print(values[0], mapper.lower("ABC"))
    with ProcessPoolExecutor() as executor:
        first, *rest = executor.map(square, range(4))
    device_put_sharded = np.stack
    return device_put_sharded(squares), first, rest


if __name__ == "__main__":
    main()
