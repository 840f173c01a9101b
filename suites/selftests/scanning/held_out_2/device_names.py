"""Parses device names of a log, and formats some."""
import re

import jax

PATTERN = re.compile(r"TFRT_CPU_(\d+)")  # finds: cpu-devices-print-as-cpu
GPU = re.compile(r"cuda:(\d+)")


def ids(text):
    return [int(m[1]) for m in PATTERN.finditer(text)] + [int(m[1]) for m in GPU.finditer(text)]


def here():
    return ids(" ".join(map(str, jax.local_devices())))


def by_attribute():
    return [d.id for d in jax.local_devices()]


def label(device):
    return f"{device.platform}:{device.id}"


def main():
    print(here(), by_attribute(), [label(d) for d in jax.devices()][0])


if __name__ == "__main__":
    main()
