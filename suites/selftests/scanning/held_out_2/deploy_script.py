"""Writes job files; the strings in them matter, the ones in comments do not."""
import pathlib
import textwrap

JOB = textwrap.dedent(
    """\
    apiVersion: v1
    kind: Pod
    spec:
      containers:
      - name: main
        env:
        - {name: JAX_PLATFORMS, value: tpu}
    """
)


def flags(config):
    out = [f"--workdir={config['workdir']}", "--logtostderr"]
    if config.get("legacy_pmap"):
        out.append("--jax_pmap_shmap_merge=false")  # finds: merge-flag-gone
    return out


def command(config):
    return ["python", "-m", config["module"], *flags(config)]


def write(folder, config):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.yaml").write_text(JOB)
    (folder / "command.txt").write_text(" ".join(command(config)))
    # pmap, device_put_sharded and PmapSharding are mentioned here in a comment only
    return sorted(folder.iterdir())[0]
