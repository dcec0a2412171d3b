"""
Places that failed logins are counted by: a client's network address.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address

NETWORK_BITS = 64
"""One household or host has all the addresses of such a network, and could come from another one each time."""


def place_of(address: str | None) -> str:
    """Return what logins from *address* are counted by; a client whose address is not known shares a place with all of those."""
    try:
        found = ip_address((address or "").partition("%")[0])
    except ValueError:
        return "address:unknown"
    if isinstance(found, IPv6Address):
        return f"address:{found.ipv4_mapped or IPv6Network((int(found), NETWORK_BITS), strict=False)}"
    return f"address:{found}"
