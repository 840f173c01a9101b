"""How a command ends: an exit status, and one line in place of a traceback."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

PROGRAM = "pmap-conformance"  # before what it prints on standard error

EXIT_FAILED = 2  # it could not be done, or not be written
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_NOT_READ = 141  # and SIGPIPE: nobody reads the output to its end
EXIT_TERMINATED = 143  # and SIGTERM

AGAIN_S = 20.0  # a command that was terminated has ended by then, or did not notice
_ENDING = (signal.SIGTERM, signal.SIGALRM)

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def without_traceback(command: Callable[[], int]) -> int:
    """Run a command to its last output, and return its exit status.
    An OSError that the command did not report, an interrupt, SIGTERM and output that nobody reads
    or that cannot be written end it with a status of their own. On SIGTERM what is unfinished is
    removed, as on an interrupt.
    """
    decided = signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL  # by somebody else
    ends = [one for one in _ENDING if not decided and signal.getsignal(one) is signal.SIG_DFL]
    for one in ends:
        signal.signal(one, _terminated)
    try:
        status = command()
        sys.stdout.flush()
    except BrokenPipeError:
        _write_no_more()
        return EXIT_NOT_READ
    except OSError as error:
        where = "standard output: " if of_output(error) else ""
        _write_no_more()
        print(f"{PROGRAM}: {where}{reason(error)}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted: unfinished output is not written", file=sys.stderr)
        return EXIT_INTERRUPTED
    except _Terminated:
        print(f"{PROGRAM}: terminated: unfinished output is not written", file=sys.stderr)
        return EXIT_TERMINATED
    finally:
        if signal.SIGALRM in ends:  # else the timer is somebody else's
            signal.setitimer(signal.ITIMER_REAL, 0)
        for one in ends:
            signal.signal(one, signal.SIG_DFL)
    return status


def of_output(error: BaseException) -> bool:
    """Return whether an error concerns standard output, as opposed to a named file."""
    return isinstance(error, OSError) and error.errno is not None and error.filename is None


def reason(error: BaseException) -> str:
    """Return an error's message in one line that a terminal can show.

    For errors of the operating system: the file and the reason, without the number.
    """
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        names = [os.fsdecode(one) for one in (error.filename, error.filename2) if one is not None]
        text = ": ".join([*names, error.strerror])
    return one_line(text)


def one_line(text: str) -> str:
    """Return a text in one line, with control characters and lone surrogates spelled out."""
    return _UNPRINTABLE.sub(lambda m: ascii(m[0])[1:-1], " ".join(text.split()))


class _Terminated(BaseException):
    """SIGTERM arrived."""


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    # Some callbacks, such as those of weak references, cannot raise: then it is raised once more.
    if signal.getsignal(signal.SIGALRM) is _terminated:
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    raise _Terminated


def _write_no_more() -> None:
    """Discard what standard output still buffers: Python flushes once more as it ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, sys.stdout.fileno())
    except (OSError, ValueError):  # it is no file, as under a test
        return
    finally:
        os.close(nothing)
