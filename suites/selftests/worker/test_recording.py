"""Recording of a step, on a real JAX in a new process."""

from __future__ import annotations

from recording_process import run


def test_an_integer_index_of_a_sharded_array_is_seen_to_compile_one_all_reduce() -> None:
    told = run(
        """
        rows = jax.device_put(cluster.rows(3, 4), impl.sharding())
        cluster.compiled("index", lambda x: x[0], rows)
        cluster.compiled("double", lambda x: x * 2, rows)
        told = [step["extra"]["programs"] for step in cluster.steps]
        """
    )
    indexed = [c for program in told[0] for c in program["collectives"]]
    assert [(c["operation"], c["bytes"]) for c in indexed] == [("all-reduce", 3 * 4 * 4)]
    assert told[1], "an eager multiplication compiles a program"
    assert not [c for program in told[1] for c in program["collectives"]]


def test_donation_shows_as_aliased_bytes() -> None:
    told = run(
        """
        rows = jax.device_put(cluster.rows(4), impl.sharding())
        plain = impl.map(lambda x: x + 1)
        giving = impl.map(lambda x: x + 1, donate_argnums=0)
        cluster.compiled("plain", plain, rows)
        cluster.compiled("giving", giving, rows)
        told = [[p["memory"]["alias"] for p in s["extra"]["programs"]] for s in cluster.steps]
        """
    )
    assert max(told[0]) == 0
    assert max(told[1]) == 4 * 4  # of one device's row


def test_a_step_keeps_warnings_with_their_count_and_log_records() -> None:
    told = run(
        """
        def noisy():
            for _ in range(3):
                warnings.warn("careful", UserWarning)
            logging.getLogger("jax._src.anything").warning("said %s", "this")
            return np.float32(1)
        cluster.step("noisy", noisy)
        told = cluster.steps[0]
        """
    )
    assert told["warnings"] == [{"category": "UserWarning", "message": "careful", "count": 3}]
    assert {"logger": "jax._src.anything", "level": "WARNING", "message": "said this"} in told[
        "logs"
    ]


def test_a_step_that_raises_is_recorded_and_the_probe_goes_on() -> None:
    told = run(
        """
        def probe(impl, cluster):
            cluster.step("bad", lambda: 1 / 0)
            cluster.step("good", lambda: np.int32(7))
        told = observe(probe, {}, "new_pmap", Topology(1, 8), 0)["steps"]
        """
    )
    assert [step["outcome"] for step in told] == ["raised", "returned"]
    assert told[0]["exception"]["type"] == "ZeroDivisionError"
    assert told[1]["value"]["leaves"][0]["values"] == [7]


def test_a_deprecated_name_warns_in_each_case_and_once_in_it() -> None:
    """JAX warns of it once in a process, which runs many cases."""
    told = run(
        """
        import sys, types
        from jax._src.deprecations import deprecation_getattr
        old = sys.modules["jax.of_this_test"] = types.ModuleType("jax.of_this_test")
        old.__getattr__ = deprecation_getattr("jax.of_this_test", {"name": ("it is old", 7)})
        def probe(impl, cluster):
            assert old.name == 7
            cluster.step("again", lambda: old.name)
        seen = [observe(probe, {}, "new_pmap", Topology(1, 8), 0) for _ in range(2)]
        told = [[one["between"]["warnings"], one["steps"][0]["warnings"]] for one in seen]
        """
    )
    first = {"category": "DeprecationWarning", "message": "it is old", "count": 1}
    assert told == [[[first], []]] * 2


def test_an_exception_outside_the_steps_is_a_step_of_its_own() -> None:
    told = run(
        """
        def probe(impl, cluster):
            raise RuntimeError("before any step")
        told = observe(probe, {}, "new_pmap", Topology(1, 8), 0)["steps"]
        """
    )
    assert [(step["name"], step["outcome"]) for step in told] == [("outside any step", "raised")]


def test_values_are_described_by_what_they_are() -> None:
    told = run(
        """
        mesh = impl.mesh("i", jax.devices()[::-1])
        reverse = jax.device_put(cluster.rows(2), NamedSharding(mesh, P("i")))
        cluster.step("all", lambda: {
            "reverse": reverse, "key": jax.random.key(0), "scalar": 3, "nan": np.float32("nan"),
            "half": jnp.bfloat16(1.5), "none": np.zeros((0, 3), np.int8),
        })
        told = {leaf["path"]: leaf for leaf in cluster.steps[0]["value"]["leaves"]}
        """
    )
    reverse = told["['reverse']"]
    assert reverse["sharding"]["devices"] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert reverse["sharding"]["spec"][0] == "i"
    assert reverse["values"] == [float(n) for n in range(1, 17)]
    assert told["['key']"]["dtype"].startswith("key<")
    assert told["['nan']"]["values"] == ["nan"]
    assert told["['half']"]["dtype"] == "bfloat16"
    assert told["['none']"]["local_shape"] == [0, 3]
    assert told["['scalar']"]["type"] == "int"


def test_wrappers_are_told_apart_by_what_they_are() -> None:
    told = run(
        """
        from conformance.worker.implementations import wrapper_kind
        shard = jax.shard_map(lambda x: x, mesh=impl.mesh(), in_specs=P("i"), out_specs=P("i"))
        told = {"shard": wrapper_kind(shard), "jit": wrapper_kind(jax.jit(lambda x: x))}
        for name in available()[0]:
            if name != "shard_map":
                one = WitnessedImplementation(name)
                one.select()
                told[name] = wrapper_kind(jax.pmap(lambda x: x))
        """
    )
    assert told.pop("shard") == "shard_map"
    assert told.pop("jit") == "jit"
    assert told == {name: name.replace("_", " ") for name in told}
    assert "new_pmap" in told


def test_a_step_tells_how_many_programs_it_compiled() -> None:
    told = run(
        """
        f = impl.map(lambda x: x * 2)
        rows = cluster.rows(3)
        cluster.twice(f, rows)
        cluster.step("another shape", f, cluster.rows(4))
        told = [step["compiled"] for step in cluster.steps]
        """
    )
    assert told == [1, 0, 1]
