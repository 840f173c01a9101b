"""Prints devices, ids and memory; no map."""
import argparse
import json

import jax


def describe(device):
    return {
        "id": device.id,
        "kind": device.device_kind,
        "process": device.process_index,
        "platform": device.platform,
    }


def main():
    parser = argparse.ArgumentParser(description="what jax sees here")
    parser.add_argument("--backend", default=None)
    parser.add_argument("--local", action="store_true")
    args = parser.parse_args()
    devices = jax.local_devices() if args.local else jax.devices(args.backend)
    for device in devices:
        print(json.dumps(describe(device)))
    print("first", devices[0], "rest", devices[1:])
    print(jax.config.jax_enable_x64, jax.config.read("jax_platforms"))
    stats = devices[0].memory_stats()
    if stats:
        print(stats["bytes_in_use"])
    mesh = jax.sharding.Mesh(devices, ("x",))
    for name, size in mesh.shape.items():
        print(name, size)


if __name__ == "__main__":
    main()
