"""Ways to start agents: the commands that each is, what they must not show, and what they lack."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.worker.agent import new_key
from conformance.worker.channel import KEY_VARIABLE
from harness.clusters.launchers import TargetDown, here, kubernetes, mpi, slurm, ssh, tpu_pod
from harness.clusters.launchers.starting import Command, Plan, Way, WayStarter
from harness.commandline.main import main
from harness.plugin.hosting import hosts_of
from harness.running import listening
from harness.running.fleet import WAYS, Hosts, key_of
from harness.running.listening import reached_by
from harness.targets.platforms import PLATFORMS

PLAN = Plan(2, "c0:7070", "/venv/bin/python", ("a", "b"), variables={"PYTHONPATH": "/my src"})
AGENT = ("/venv/bin/python", "-m", "conformance.worker.agent", "--controller", "c0:7070")


def written(way: Way, plan: Plan = PLAN) -> list[tuple[str, ...]]:
    return [one.words for one in way.commands(plan)]


def test_slurm_is_one_srun() -> None:
    (words,) = written(slurm.WAY)
    assert words[-len(AGENT) :] == AGENT
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--nodelist=a,b"} < set(words)


@pytest.mark.parametrize(
    ("nodes", "has", "lacks"),
    [("n[0-1]", "--overlap", "--exclusive"), ("", "--exclusive", "--overlap")],
    ids=["inside an allocation", "in one of its own"],
)
def test_slurm_shares_no_node_that_it_asks_for(
    monkeypatch: pytest.MonkeyPatch, nodes: str, has: str, lacks: str
) -> None:
    monkeypatch.setenv(slurm.NODES_VARIABLE, nodes)
    (words,) = written(slurm.WAY)
    assert has in words
    assert lacks not in words


def test_the_nodes_of_an_allocation_are_slurms_to_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert slurm.allocated({}) == ()
    monkeypatch.setenv("PATH", str(tmp_path))
    inside = {slurm.NODES_VARIABLE: "n[0-2]"}
    with pytest.raises(ValueError, match=r"\(n\[0-2\]\)"):
        slurm.allocated(inside)
    program = tmp_path / "scontrol"
    program.write_text('#!/bin/sh\ntest "$*" = "show hostnames n[0-2]" && echo "n0\nn1\nn2"\n')
    program.chmod(0o755)
    assert slurm.allocated(inside) == ("n0", "n1", "n2")


def test_open_mpi_is_one_mpirun_that_hands_variables_on_by_name() -> None:
    (words,) = written(mpi.WAY)
    assert words[-len(AGENT) :] == AGENT
    text = " ".join(words)
    assert "-n 2 --map-by node" in text
    assert f"-x {KEY_VARIABLE} -x PYTHONPATH" in text
    assert "/my src" not in text
    assert ("--allow-run-as-root" in words) == (os.geteuid() == 0)


def test_ssh_is_one_client_per_host_whose_shell_reads_the_key() -> None:
    commands = ssh.WAY.commands(PLAN)
    assert [one.words[-2] for one in commands] == ["a", "b"]
    assert all(one.key_on_stdin for one in commands)
    for rank, one in enumerate(commands):
        assert one.words[-1] == (
            f"read -r {KEY_VARIABLE} && export {KEY_VARIABLE} && exec env 'PYTHONPATH=/my src' "
            f"{' '.join(AGENT)} --rank {rank}"
        )


def test_a_slice_is_one_gcloud_for_all_workers() -> None:
    (words,) = written(tpu_pod.WAY, Plan(4, "c0:7070", "python3", ("my-slice",)))
    assert words[:7] == ("gcloud", "compute", "tpus", "tpu-vm", "ssh", "my-slice", "--worker=all")
    assert words[-1].endswith(f"agent --controller c0:7070 --key-file {tpu_pod.KEY_FILE}")


def test_this_machine_is_one_process_per_agent() -> None:
    assert [one[-2:] for one in written(here.WAY)] == [("--rank", "0"), ("--rank", "1")]


@pytest.mark.parametrize("way", WAYS.values(), ids=lambda one: one.key)
def test_another_place_is_announced_where_the_plan_says_so(way: Way) -> None:
    names = ("slice",) if way is tpu_pod.WAY else ("a",)
    plan = Plan(1, "c0:7070", "python3", names, place="agent-of-one-target")
    assert all("--place agent-of-one-target" in " ".join(words) for words in written(way, plan))


@pytest.mark.parametrize(
    ("way", "names", "says"),
    [
        (ssh.WAY, ("a",), r"--launcher ssh: name 2 hosts with --host-list a,b,…; got 1"),
        (tpu_pod.WAY, (), r"--launcher tpu-pod: name the slice with --host-list NAME"),
    ],
    ids=["ssh", "tpu-pod"],
)
def test_hosts_that_are_not_named(
    tmp_path: Path, way: Way, names: tuple[str, ...], says: str
) -> None:
    program = tmp_path / way.program
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    plan = Plan(2, "c0:7070", "python3", names)
    starter = WayStarter(way, plan, {"PATH": str(tmp_path)}, new_key(), tmp_path)
    with pytest.raises(TargetDown, match=says):
        starter.start()


@pytest.mark.parametrize("way", WAYS.values(), ids=lambda one: one.key)
def test_a_program_that_is_missing_is_named_with_its_package(way: Way, tmp_path: Path) -> None:
    starter = WayStarter(way, PLAN, {"PATH": str(tmp_path)}, new_key(), tmp_path)
    with pytest.raises(TargetDown) as caught:
        starter.start()
    said = str(caught.value)
    assert said.startswith(f"--launcher {way.key}: ")
    assert way.program in said
    assert said.endswith(way.package)


def test_the_key_is_in_no_argument_and_reaches_its_reader(tmp_path: Path) -> None:
    key = new_key()
    code = (
        f"import os; print(os.environ['{KEY_VARIABLE}'] == input(), flush=True); "
        "raise SystemExit(3)"
    )

    def commands(plan: Plan) -> list[Command]:
        return [Command((sys.executable, "-c", code), key_on_stdin=True)]

    way = Way("own", "", sys.executable, "", commands)
    starter = WayStarter(way, PLAN, dict(os.environ), key, tmp_path)
    starter.start()
    said = None
    while said is None:
        said = starter.ended()
    starter.close()
    assert said.startswith(f"{sys.executable} ended with status 3")
    assert said.endswith(": True")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (255, "host far could not be reached: sh ended with status 255, and said: no such name"),
        (127, "the agent on host far did not start: sh ended with status 127, and said: no such"),
    ],
)
def test_the_host_that_a_command_was_for_is_named(code: int, says: str, tmp_path: Path) -> None:
    command = Command(("sh", "-c", f"echo no such name; exit {code}"), host="far")
    way = Way("own", "", "sh", "", lambda plan: [command], unreachable=255)
    starter = WayStarter(way, PLAN, dict(os.environ), new_key(), tmp_path)
    starter.start()
    said = None
    while said is None:
        said = starter.ended()
    starter.close()
    assert said.startswith(says)
    assert ("`sh far true` works from here" in said) == (code == 255)


def test_what_does_not_end_by_itself_is_ended(tmp_path: Path, monkeypatch: Any) -> None:
    from harness.clusters.launchers import starting

    monkeypatch.setattr(starting, "ENDS_BY_ITSELF_S", 0.2)
    monkeypatch.setattr(starting, "KILL_S", 0.5)
    stubborn = ("sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    way = Way("own", "", "sh", "", lambda plan: [Command(stubborn)])
    starter = WayStarter(way, PLAN, dict(os.environ), new_key(), tmp_path)
    starter.start()
    ((process, *_),) = starter._running
    starter.close()
    assert process.returncode == -9


# Kubernetes


def test_what_kubernetes_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifest", "--hosts", "4", "--image", "me/it:1", "--tpu", "v5e-16"]) == 0
    printed = json.loads(capsys.readouterr().out)
    service, job, jobset = printed["items"]
    assert [one["kind"] for one in (service, job, jobset)] == ["Service", "Job", "JobSet"]

    (controller,) = job["spec"]["template"]["spec"]["containers"]
    assert service["spec"]["selector"] == job["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["ports"][0]["port"] == kubernetes.PORT
    assert controller["command"][:4] == ["pytest", "suites/", "--hosts", "4"]
    at = controller["command"].index("--platform")
    assert controller["command"][at : at + 4] == ["--platform", "tpu", "--topology", "4x4"]

    (replicated,) = jobset["spec"]["replicatedJobs"]
    spec = replicated["template"]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    pod = spec["template"]["spec"]
    (agent,) = pod["containers"]
    assert agent["image"] == controller["image"] == "me/it:1"
    assert agent["command"][:3] == ["python", "-m", "conformance.worker.agent"]
    assert agent["command"][-1] == f"{service['metadata']['name']}.default:{kubernetes.PORT}"
    assert agent["resources"] == {"limits": {"google.com/tpu": "4"}}
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "4x4"
    secrets = {agent["env"][0]["valueFrom"]["secretKeyRef"]["name"]}
    secrets |= {job["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"]}
    assert secrets == {kubernetes.SECRET}


@pytest.mark.parametrize("words", [["suites/", "--topology", "1x4"], ["--topology=1x4"]])
def test_who_names_a_topology_gets_no_other(words: list[str]) -> None:
    _, job, _ = kubernetes.objects(4, "image", "v5e-16", words)
    (controller,) = job["spec"]["template"]["spec"]["containers"]
    assert "4x4" not in controller["command"]
    assert set(words) <= set(controller["command"])


def test_without_a_slice_pods_run_anywhere() -> None:
    _, job, jobset = kubernetes.objects(2, "image")
    text = json.dumps([job, jobset])
    assert "tpu" not in text
    assert "nodeSelector" not in text


@pytest.mark.parametrize(
    ("asked_for", "hosts", "says"),
    [
        ("v5e-16", 2, r"--tpu v5e-16 has 4 hosts of 4 chips: give --hosts 4"),
        ("v5e-17", 4, r"--tpu v5e-17: write one of v5e-8, v5e-16"),
        ("h100-16", 4, r"--tpu h100-16: write one of"),
        ("v5e", 4, r"--tpu v5e: write one of"),
    ],
)
def test_a_slice_that_is_none(
    capsys: pytest.CaptureFixture[str], asked_for: str, hosts: int, says: str
) -> None:
    words = ["manifest", "--hosts", f"{hosts}", "--image", "i", "--tpu", asked_for]
    assert main(words) == 2
    assert says in capsys.readouterr().err


# What a user may ask


def asked(**given: Any) -> Hosts | None:
    options: dict[str, Any] = {
        "hosts": None,
        "listen": None,
        "key_file": None,
        "launcher": None,
        "host_list": "",
        "hosts_within": 600.0,
        "tx": None,
        "topology": [],
    }
    platform = PLATFORMS[given.pop("platform", "cpu")]
    config: Any = SimpleNamespace(getoption=lambda name, _=None: {**options, **given}[name])
    return hosts_of(config, platform, lambda _: None)


def test_a_run_without_hosts_asks_nothing_of_them() -> None:
    assert asked() is None


def test_a_list_of_hosts_says_how_many() -> None:
    found = asked(launcher="ssh", host_list="a,b,c")
    assert found is not None
    assert (found.count, found.names) == (3, ("a", "b", "c"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"hosts": 2}, r"--hosts without --launcher: .* give --listen HOST:PORT and --key-file"),
        ({"hosts": 2, "listen": "h:7"}, r"--hosts without --launcher"),
        ({"hosts": 2, "launcher": "local", "tx": ["popen"] * 3}, r"-n 2 at the most"),
        ({"hosts": 2, "launcher": "local", "platform": "cuda12"}, r"leave out --hosts"),
        ({"hosts": 2, "launcher": "mpi", "platform": "tpu"}, r"say --topology, such as 2x4"),
        ({"launcher": "mpi"}, r"say how many, --hosts N"),
        ({"launcher": "tpu-pod", "host_list": "slice"}, r"say how many, --hosts N"),
    ],
    ids=[
        *("by-hand", "no-key", "xdist", "its-own-devices", "topology"),
        *("launcher", "slice"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        asked(**given)


def test_a_key_file_is_made_for_its_owner_alone_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "key"
    key = key_of(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key_of(file) == key
    assert key_of(None) != key
    file.chmod(0o644)
    with pytest.raises(ValueError, match=r"`chmod 600"):
        key_of(file)
    file.chmod(0o600)
    file.write_text("short")
    with pytest.raises(ValueError, match=r"^--key-file .*no key"):
        key_of(file)


def test_agents_of_this_machine_dial_the_loopback() -> None:
    assert reached_by("0.0.0.0:0", here.WAY) == "127.0.0.1"
    assert reached_by("10.0.0.1:0", ssh.WAY) == "10.0.0.1"
    assert reached_by("0.0.0.0:0", ssh.WAY) not in ("0.0.0.0", "127.0.0.1")


@pytest.mark.parametrize(
    ("launcher", "names", "reached", "listens"),
    [
        ("local", "", {}, "127.0.0.1:0"),
        ("ssh", "me@a,b", {"a": "10.0.0.1", "b": "10.0.0.1"}, "10.0.0.1:0"),
        ("ssh", "localhost,b", {"localhost": "127.0.0.1", "b": "10.0.0.1"}, "10.0.0.1:0"),
        ("ssh", "localhost", {"localhost": "127.0.0.1"}, "127.0.0.1:0"),
        ("ssh", "a,b", {"a": "10.0.0.1", "b": "172.16.0.1"}, "0.0.0.0:0"),
        ("ssh", "alias", {listening.ELSEWHERE: "10.0.0.7"}, "10.0.0.7:0"),
        ("ssh", "alias", {}, "0.0.0.0:0"),
        ("slurm", "", {listening.ELSEWHERE: "10.0.0.7"}, "10.0.0.7:0"),
    ],
    ids=[
        *("here", "one-network", "this-one-among-them", "this-one", "two-networks"),
        *("unknown-name", "no-network", "no-names"),
    ],
)
def test_agents_dial_in_on_the_interface_that_their_hosts_reach(
    launcher: str,
    names: str,
    reached: Mapping[str, str],
    listens: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening, "towards", reached.get)
    found = asked(launcher=launcher, host_list=names, hosts=names.count(",") + 1)
    assert found is not None
    assert found.listen == listens


def test_where_agents_dial_in_is_the_users_to_say() -> None:
    found = asked(launcher="local", hosts=2, listen="0.0.0.0:7070")
    assert found is not None
    assert found.listen == "0.0.0.0:7070"


def test_the_way_to_a_host_starts_at_an_address_of_this_machine() -> None:
    assert listening.towards("127.0.0.1") == "127.0.0.1"
    assert listening.towards("no such name") is None
