"""
Separate hosts on one machine: network namespaces on two bridges, and each host can be cut off from one of the bridges.

                 ┌── inside: the database listens here ──┬────────────┬──── …
    this process ┤                                     host a       host b
                 └── outside: the receivers listen here ─┴────────────┴──── …

A host that is cut off from *inside* still reaches *outside*, which is the hard case: it can act, and cannot write down that it did.

    silent     its cable is out of the bridge: what either side sends is lost, and nobody is told
    refused    the address answers, but nothing listens there: whatever the host sends is answered by a reset

Everything is named after a number that the kernel gave to this network alone, so networks side by side do not meet. What a process left behind that was
killed is cleared by the next one that makes a network.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

Cut = Literal["silent", "refused"]

MARK = "counterfoil-hosts"
"""Begins the alias of every link that is made here; the process that made it follows."""
NUMBERS = range(1, 255)
NETS = {"i": "198.18", "o": "198.19"}
"""The bridges, inside and outside: of 198.18.0.0/15, which RFC 2544 keeps for measuring devices and nobody routes."""


class NoNetwork(Exception):
    """This machine does not let us make namespaces, bridges and links; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Host:
    """
    A host: a network namespace with a cable to each bridge.

    Attributes:
        name: What it is called, also by itself (`hostname`).
        address: Its address inside, as the database sees it.
    """

    name: str
    number: int
    place: int

    @property
    def namespace(self) -> str:
        """Its name for `ip netns`."""
        return f"cf{self.number}-{self.name}"

    @property
    def address(self) -> str:
        return self.at("i")

    def at(self, net: str) -> str:
        """Return its address on a bridge."""
        return f"{NETS[net]}.{self.number}.{self.place + 10}"

    def cable(self, net: str) -> str:
        """Return the name of the end of its cable that is in the bridge."""
        return f"cf{self.number}{net}-{self.name}"

    def command(self, *command: str) -> list[str]:
        """Return what runs *command* on this host, under its name, as the very process that is started, and ends it with its starter."""
        named = f'hostname {self.name} && exec "$@"'
        return ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "setpriv", "--pdeathsig", "KILL",
                "sh", "-c", named, "sh", *command]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Network:
    """
    Two bridges and the hosts on them.

    Attributes:
        inside: Where the database is to listen.
        outside: Where the receivers are to listen.
    """

    number: int
    hosts: tuple[Host, ...]

    @property
    def inside(self) -> str:
        return _address(self.number, "i")

    @property
    def outside(self) -> str:
        return _address(self.number, "o")

    def cut(self, host: Host, how: Cut) -> None:
        """Let nothing pass between the host and *inside* any more."""
        if how == "silent":
            _ip("link", "set", host.cable("i"), "nomaster")
        else:
            _ip("-n", host.namespace, "address", "add", f"{self.inside}/32", "dev", "lo")

    def heal(self, host: Host) -> None:
        """Undo every cut of the host."""
        _ip("link", "set", host.cable("i"), "master", _bridge(self.number, "i"))
        _ip("-n", host.namespace, "address", "del", f"{self.inside}/32", "dev", "lo", check=False)


@contextmanager
def network(names: Sequence[str]) -> Iterator[Network]:
    """
    Make a network of hosts of these names, and leave nothing of it.

    Raises:
        NoNetwork: that is not possible here.
    """
    if os.geteuid() != 0:
        raise NoNetwork("network namespaces take root")
    _clear_what_the_dead_left()
    number = _claim_number()
    hosts = tuple(Host(name, number, place) for place, name in enumerate(names))
    try:
        for net in NETS:
            _lay(number, net, hosts)
        yield Network(number, hosts)
    finally:
        _clear(number)


def _claim_number() -> int:
    """Take a number that nobody has: the kernel lets one process only make the link of a name."""
    said = ""
    for number in random.sample(NUMBERS, len(NUMBERS)):
        made = _ip("link", "add", _bridge(number, "i"), "type", "bridge", check=False)
        if made.returncode == 0:
            _ip("link", "set", _bridge(number, "i"), "alias", f"{MARK} {os.getpid()}")
            return number
        said = made.stderr.strip()
        if "File exists" not in said:
            break
    raise NoNetwork(said)


def _lay(number: int, net: str, hosts: Sequence[Host]) -> None:
    """Set up one bridge and a cable to each host; every neighbour is known for ever, so that a cut is not told by ARP either."""
    bridge = _bridge(number, net)
    if net != "i":
        _ip("link", "add", bridge, "type", "bridge")
    _ip("link", "set", bridge, "address", _hardware(number, net, 1), "up")
    _ip("address", "add", f"{_address(number, net)}/24", "dev", bridge)
    for host in hosts:
        if net == "i":
            _ip("netns", "add", host.namespace)
            _ip("-n", host.namespace, "link", "set", "lo", "up")
        end, own = host.cable(net), _hardware(number, net, host.place + 10)
        _ip("link", "add", end, "type", "veth", "peer", "name", net, "address", own, "netns", host.namespace)
        _ip("link", "set", end, "master", bridge, "up")
        _ip("-n", host.namespace, "link", "set", net, "up")
        _ip("-n", host.namespace, "address", "add", f"{host.at(net)}/24", "dev", net)
        _ip("neighbour", "replace", host.at(net), "lladdr", own, "dev", bridge, "nud", "permanent")
        _ip("-n", host.namespace, "neighbour", "replace", _address(number, net),
            "lladdr", _hardware(number, net, 1), "dev", net, "nud", "permanent")  # fmt: skip


def _clear(number: int) -> None:
    """Take away all that has this number. A namespace lives on while a process is in it, but has no cable and no name."""
    for net in NETS:
        for link in _links():
            if link["ifname"].startswith(f"cf{number}{net}-"):
                _ip("link", "del", link["ifname"], check=False)
    for line in _ip("netns", "list", check=False).stdout.splitlines():
        if line.startswith(f"cf{number}-"):
            _ip("netns", "del", line.split()[0], check=False)
    for net in reversed(NETS):  # the one that holds the number last
        _ip("link", "del", _bridge(number, net), check=False)


def _clear_what_the_dead_left() -> None:
    for link in _links():
        mark, _, pid = str(link.get("ifalias", "")).partition(" ")
        if mark == MARK and not os.path.exists(f"/proc/{pid}"):  # noqa: PTH110  # no path of ours
            _clear(int(link["ifname"].removeprefix("cf").removesuffix("i")))


def _links() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_ip("-json", "link", "show").stdout)
    return found


def _bridge(number: int, net: str) -> str:
    return f"cf{number}{net}"


def _address(number: int, net: str) -> str:
    return f"{NETS[net]}.{number}.1"


def _hardware(number: int, net: str, last: int) -> str:
    return f"02:cf:{ord(net):02x}:00:{number:02x}:{last:02x}"


def _ip(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NoNetwork("there is no command ip (iproute2)") from error
    if check and done.returncode != 0:
        raise NoNetwork(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done
