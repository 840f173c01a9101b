"""Formats what train returns; it knows nothing of jax."""


def table(history):
    header = history[0]
    rows = history[1:]
    lines = [" ".join(header)]
    for row in rows:
        lines.append(" ".join(f"{v:.3f}" for v in row))
    return "\n".join(lines)


def first(values):
    return values[0]
