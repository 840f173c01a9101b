"""Contenders take turns, meet before each call, and are timed only where all are right."""

from __future__ import annotations

from recording_process import run


def test_contenders_take_turns_and_meet_before_every_round() -> None:
    told = run(
        """
        from conformance.worker.racing import race
        events = []
        meeting = RecordingCluster(Topology(1, 8), 0, meet=lambda: events.append("meet"))
        def calling(name):
            def call():
                events.append(name)
                return np.arange(9)
            return call
        race(meeting, {"a": calling("a"), "b": calling("b")}, 4)
        told = {"events": events, "steps": meeting.steps}
        """
    )
    rounds = told["events"][told["events"].index("meet") :]
    assert rounds == ["meet", "a", "meet", "b", "meet", "b", "meet", "a"] * 2
    assert [step["name"] for step in told["steps"]] == ["a", "b"]
    for step in told["steps"]:
        assert len(step["extra"]["seconds"]) == 4
        assert min(step["extra"]["seconds"]) > 0
        assert step["value"]["leaves"][0]["values"] == [0, 1, 2, 3]  # the start is compared


def test_where_one_raises_none_is_timed() -> None:
    told = run(
        """
        from conformance.worker.racing import race
        def failing():
            raise ValueError("no")
        race(cluster, {"a": lambda: np.arange(3), "b": failing}, 3)
        told = cluster.steps
        """
    )
    assert [step["outcome"] for step in told] == ["returned", "raised"]
    assert all("seconds" not in step["extra"] for step in told)


def test_a_wait_is_in_the_seconds() -> None:
    told = run(
        """
        import time
        from conformance.worker.racing import race
        def slow():
            time.sleep(0.1)
            return np.arange(3)
        race(cluster, {"slow": slow, "fast": lambda: np.arange(3)}, 3)
        told = [min(step["extra"]["seconds"]) for step in cluster.steps]
        """
    )
    assert told[0] >= 0.1
    assert told[0] > told[1]


def test_what_is_shown_of_a_result_may_be_chosen() -> None:
    told = run(
        """
        from conformance.worker.racing import race
        race(cluster, {"a": lambda: np.arange(9)}, 3, lambda result: result[-2:])
        told = cluster.steps
        """
    )
    assert told[0]["value"]["leaves"][0]["values"] == [7, 8]


def test_a_map_is_witnessed_and_raced_as_a_users_is_compiled() -> None:
    """What a first call compiles is kept: without its optimisations the race would time that."""
    told = run(
        """
        from conformance.worker.compiling import SETTING, compile_quickly
        from conformance.worker.racing import race, witnessed
        compile_quickly()
        quick = []
        class Mapped:
            def __call__(self, x):
                quick.append(jax.config.values[SETTING])
                return x
            def function(self, x):
                quick.append(jax.config.values[SETTING])
                return x
        function = witnessed(Mapped(), np.arange(3))
        race(cluster, {"a": lambda: function(np.arange(3))}, 3)
        told = {"quick": quick, "after": jax.config.values[SETTING]}
        """
    )
    assert len(told["quick"]) > 4
    assert set(told["quick"]) == {False}
    assert told["after"]
