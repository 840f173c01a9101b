"""A results file may be a pipe: what is there is read before its writer ends."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from conformance.store.reading import lines_ahead

SOON_S = 60.0  # on a loaded machine


def test_a_line_of_a_pipe_is_read_while_its_writer_goes_on() -> None:
    reader, writer = os.pipe()
    with ThreadPoolExecutor(1) as pool, os.fdopen(reader, "rb") as stream:
        try:
            os.write(writer, b"one\n")
            found = lines_ahead(stream)
            assert pool.submit(next, found).result(SOON_S) == b"one\n"
            os.write(writer, b"two\nthr")
            assert pool.submit(next, found).result(SOON_S) == b"two\n"
            os.write(writer, b"ee")
        finally:
            os.close(writer)  # ends a read that waits for more
        assert [*found] == [b"three"]
