from concurrent.futures import ProcessPoolExecutor

def pmap(function, values):
    with ProcessPoolExecutor() as pool:
        return list(pool.map(function, values))

def main(values):
    out = pmap(len, values)
    return out[0], out[1:], [one for one in out]
