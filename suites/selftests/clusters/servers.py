"""OpenSSH servers of this machine, as hosts of other names."""

from __future__ import annotations

import subprocess
from pathlib import Path

from processes import until
from proof import WITHIN_S, prefixed

from conformance.worker.ports import ReservedPort, wait_for_listener

SSHD = "/usr/sbin/sshd"


class Servers:
    """OpenSSH servers of this machine on ports and with keys of their own; a client for them."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder = folder
        self._ports = {name: ReservedPort() for name in names}
        self._servers: list[subprocess.Popen[bytes]] = []
        for key in ("host", "user"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(words, check=True)
        config = folder / "config"
        common = (
            f"IdentityFile {folder / 'user'}\nStrictHostKeyChecking no\n"
            f"UserKnownHostsFile {folder / 'known'}\nLogLevel ERROR\n"
        )
        config.write_text(
            "".join(
                f"Host {name}\nHostName 127.0.0.1\nPort {one.port}\n{common}"
                for name, one in self._ports.items()
            )
        )
        self.path = prefixed(folder / "bin", "ssh", ["-F", str(config)])

    def __enter__(self) -> Servers:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it leaves its privileges
        for name, one in self._ports.items():
            options = [
                *("ListenAddress=127.0.0.1", f"Port={one.port}", "StrictModes=no", "UsePAM=no"),
                *(f"HostKey={self._folder / 'host'}", f"PidFile={self._folder / name}.pid"),
                f"AuthorizedKeysFile={self._folder / 'user.pub'}",
                "PermitRootLogin=prohibit-password",
            ]
            words = [word for option in options for word in ("-o", option)]
            one.close()
            self._servers.append(
                subprocess.Popen([SSHD, "-D", "-e", "-f", "/dev/null", *words], stderr=-3)
            )
            assert wait_for_listener(f"127.0.0.1:{one.port}", WITHIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._servers:
            one.terminate()
            one.wait()
        assert until(lambda: all(one.poll() is not None for one in self._servers), WITHIN_S)
