"""What the tests of several hosts share: a network, a server that every host can reach, and a site of its own for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.network import Network, NoNetwork, network
from tests.hosts.server import Server, server_at
from tests.hosts.site import Site, site_on


@pytest.fixture(scope="package")
def net() -> Iterator[Network]:
    """Two hosts; where none can be made there is nothing to test, and continuous integration says so in red."""
    try:
        with network(["a", "b"]) as made:
            yield made
    except NoNetwork as why:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no network namespaces here: {why}")


@pytest.fixture(scope="package")
def server(net: Network) -> Iterator[Server]:
    """A Postgres of these hosts."""
    with server_at(net.inside) as started:
        yield started


@pytest.fixture
def site(net: Network, server: Server, tmp_path: Path) -> Iterator[Site]:
    """An empty journal, receivers, and no worker yet."""
    with site_on(net, server, tmp_path) as opened:
        yield opened
