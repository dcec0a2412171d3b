"""Who is acting, from wherever a config may say so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langgraph_sdk import Auth

from checkpointing.errors import NotAllowed
from checkpointing.principals import Person
from graph import thread
from nodes.principal import principal_of


def config(**configurable: Any) -> Any:
    return {"configurable": configurable}


def test_python_names_the_principal() -> None:
    assert principal_of(thread("claim-0042", principal="ada")) == Person("ada")
    assert principal_of(thread("claim-0042")) is None


@pytest.mark.parametrize("name", ["mallory", {"name": "mallory"}, ["mallory"], True])
def test_a_name_that_json_can_make_is_refused(name: Any) -> None:
    with pytest.raises(NotAllowed, match="comes from authentication"):
        principal_of(config(__counterfoil_principal=name, langgraph_auth_user={"identity": "ada"}))


@pytest.mark.parametrize(
    ("user", "principal"),
    [
        (SimpleNamespace(identity="ada"), "ada"),
        ({"identity": "ada"}, "ada"),
        (None, None),
        (SimpleNamespace(identity=""), None),
        (Auth.types.StudioUser("langgraph-studio-user"), None),
        (SimpleNamespace(identity="langgraph-studio-user", kind="StudioUser"), None),
        ({"identity": "langgraph-studio-user", "kind": "StudioUser"}, None),
        ("ada", None),
    ],
)
def test_a_servers_user_is_the_principal_unless_it_is_nobody(user: Any, principal: str | None) -> None:
    assert principal_of(config(langgraph_auth_user=user)) == (principal and Person(principal))
