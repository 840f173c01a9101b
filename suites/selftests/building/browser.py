"""A headless Chromium over its debugging pipe: as much of a client as the site's tests need.

The pipe needs no port, no websocket and no package. Every wait has a deadline, and the browser is
killed with its whole process group, whatever happened.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ANSWER_S = 30.0
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_CHUNK_BYTES = 1 << 16
_ITS_INPUT, _ITS_OUTPUT = 3, 4  # descriptors by which it is spoken to
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}


class BrowserError(Exception):
    """The browser did not do what it was asked; the message says what it was."""


class Browser:
    """One browser; messages are JSON objects with a zero byte after each."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes
        self._buffer = b""
        self._number = 0
        self.events: deque[dict[str, Any]] = deque()

    def send(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_S
        while True:
            answer = self._read(deadline, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self.events.append(answer)

    def wait(self, event: str, session: str) -> None:
        """Until an event of a session has come; those before it stay in `events`."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            one = self._read(deadline, event)
            self.events.append(one)
            if one.get("method") == event and one.get("sessionId") == session:
                return

    def _read(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select(
                [self._reads], [], [], max(0.0, deadline - time.monotonic())
            )
            chunk = os.read(self._reads, _CHUNK_BYTES) if ready else b""
            if not chunk:
                why = "it ended" if ready else f"no answer within {ANSWER_S:.0f} s"
                raise BrowserError(f"waiting for {what}: {why}")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


class Tab:
    """One tab; what went wrong in it since the last look is in `troubles()`."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = str(attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **params)

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file, and wait until all that it asks for is there."""
        self.visit(path.as_uri() + (f"#{fragment}" if fragment else ""))

    def visit(self, address: str) -> None:
        """Load what is at an address, as `open` does a file."""
        self.send("Page.navigate", url="about:blank")
        self._browser.wait("Page.loadEventFired", self._session)
        self.send("Page.navigate", url=address)
        self._browser.wait("Page.loadEventFired", self._session)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, awaited where it is a promise."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            told = answer["exceptionDetails"]
            raise BrowserError(told.get("exception", {}).get("description", told["text"]))
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """The value of an expression as soon as it is true."""
        deadline = time.monotonic() + ANSWER_S
        while not (value := self.evaluate(expression)):
            if time.monotonic() > deadline:
                raise BrowserError(f"not within {ANSWER_S:.0f} s: {expression}")
            time.sleep(0.02)
        return value

    def press(self, key: str) -> None:
        """Press and release a key, as a person would."""
        code = _KEYS[key]
        text = {"text": "\r"} if key == "Enter" else {}
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **named, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def resize(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def scheme(self, name: str) -> None:
        """Prefer `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def scripts(self, *, on: bool) -> None:
        self.send("Emulation.setScriptExecutionDisabled", value=not on)

    def troubles(self) -> list[str]:
        """Return errors since the last call: failed scripts, requests to other hosts, and console
        messages.
        """
        found = []
        for event in self._browser.events:
            if event.get("sessionId") == self._session:
                found += _trouble(event["method"], event["params"])
        self._browser.events.clear()
        return found


def _trouble(method: str, params: dict[str, Any]) -> list[str]:
    match method:
        case "Network.loadingFailed":
            return [f"a request failed: {params['errorText']}"]
        case "Network.requestWillBeSent":
            url = str(params["request"]["url"])
            return [] if url.startswith(("file:", "about:", "data:")) else [f"asked for {url}"]
        case "Runtime.exceptionThrown":
            return [str(params["exceptionDetails"])]
        case "Runtime.consoleAPICalled":
            return [f"console: {params['args']}"] if params["type"] in ("error", "warning") else []
        case "Log.entryAdded":
            entry = params["entry"]
            return [str(entry["text"])] if entry["level"] in ("error", "warning") else []
    return []


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser of its own, with nothing kept from another and nothing sent home."""
    assert CHROMIUM is not None, "ask whether there is a browser before starting it"
    to_it, ours = _pipe()
    theirs, from_it = _pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    actions = [
        *((os.POSIX_SPAWN_DUP2, nothing, standard) for standard in range(3)),
        (os.POSIX_SPAWN_DUP2, to_it, _ITS_INPUT),
        (os.POSIX_SPAWN_DUP2, from_it, _ITS_OUTPUT),
    ]
    command = [CHROMIUM, *_flags(profile)]
    process = os.posix_spawn(CHROMIUM, command, dict(os.environ), file_actions=actions, setsid=True)
    for end in (to_it, from_it, nothing):
        os.close(end)
    try:
        yield Browser(theirs, ours)
    finally:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(theirs)
        os.close(ours)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are none of the numbers that the browser has its own at."""
    read, write = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ITS_OUTPUT + 1) for end in (read, write))
    os.close(read)
    os.close(write)
    return high[0], high[1]


def _flags(profile: Path) -> list[str]:
    return [
        "--headless=new",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--hide-scrollbars",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),  # it refuses to run as root with one
        "about:blank",
    ]
