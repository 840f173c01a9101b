"""Starts one process per host with its environment."""
import os
import shlex
import subprocess
import sys


def environment(rank, size, coordinator, legacy=True):
    env = {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "COORDINATOR": coordinator,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    if legacy:
        env["JAX_PMAP_SHMAP_MERGE"] = "false"  # finds: merge-variable-ignored
    return env


def start(script, size, *args):
    processes = []
    for rank in range(size):
        command = [sys.executable, script, *args]
        print(shlex.join(command))
        processes.append(subprocess.Popen(command, env=environment(rank, size, "localhost:1234")))
    return processes


def wait(processes):
    codes = [p.wait() for p in processes]
    first = codes[0]
    for code in codes[1:]:
        first = first or code
    return first


if __name__ == "__main__":
    sys.exit(wait(start(sys.argv[1], 2, *sys.argv[2:])))
