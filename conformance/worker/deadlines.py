"""Every timeout of the harness, in seconds, and the order between them.

Inner waits are shorter than the waits around them: the inner one must give up, and say why, before
the outer one does.
"""

from __future__ import annotations

POLL_S = 0.1  # how often a waiting controller looks at logs and exits
HANDSHAKE_S = 10.0  # authentication of a connection that was opened
SAMPLED_AFTER_S = 0.5  # from a case's start to the first sample of its threads' delays: most ended
CRASH_GRACE_S = 0.5  # for peers of a dead process to report what they saw
DEATH_S = 5.0  # from a closed connection to the exit status: a loaded machine, a core dump
KILL_S = 10.0  # from SIGKILL to the exit status
STACK_S = 1.0  # from the signal to the Python stacks in the file
BARRIER_S = 20.0  # all processes of a case at its start
CASE_S = 60.0  # one case, compile included
STARVED_MOST_S = 30.0  # added to a case's, for the time in which its processes had no core
CLUSTER_START_S = 120.0  # fork, distributed initialisation, devices
ZYGOTE_START_S = 180.0  # a cold interpreter imports jax, on a loaded machine
HOSTS_S = 600.0  # for the agents of all hosts to dial in: a scheduler may let them wait
REPLACED_S = 30.0  # for another agent to take the place of one that was lost
ADMISSION_S = 900.0  # for other clusters on this machine to end
# JAX's own failure detection, which the clauses `multi_controller.leaving.*` judge; a case's
# deadline is ours and comes first.
HEARTBEAT_S = 100
CI_S = 5400.0

ORDER = (POLL_S, CRASH_GRACE_S, STACK_S, DEATH_S, KILL_S, BARRIER_S, CASE_S, CLUSTER_START_S, CI_S)
assert list(ORDER) == sorted(ORDER), "an inner wait must end before the outer one"
assert CASE_S + STARVED_MOST_S < HEARTBEAT_S, (
    "a hang must be ours to report, before JAX aborts the processes"
)
