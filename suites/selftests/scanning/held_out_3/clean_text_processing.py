"""Builds a vocabulary; lists, slices and maps of Python."""
import collections
import itertools
import re


def words(text):
    return re.findall(r"\w+", text.lower())


def vocabulary(texts, size):
    counts = collections.Counter(itertools.chain.from_iterable(map(words, texts)))
    return [w for w, _ in counts.most_common(size)]


def lower(texts):
    return [t.lower() for t in texts]


def encode(texts, vocab):
    index = {w: i for i, w in enumerate(vocab)}
    return [[index.get(w, 0) for w in words(t)] for t in texts]


def main(path):
    with open(path) as f:
        texts = f.readlines()
    vocab = vocabulary(texts, 100)
    rows = encode(texts, vocab)
    print(vocab[0], vocab[1:5], rows[0][:3], lower(texts)[-1])
    for row in rows:
        print(len(row))
    return rows[0]
