"""
The pages together: what `make_app` mounts under `/`.
"""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter

from service.inbox import acting, approval, assets, deciding, login, operation, queue, run
from service.inbox.desk import Desk, environment
from service.inbox.guard import guarded
from service.inbox.trouble import trouble
from service.who.doors import Doors
from service.wiring import App


def router(app: App, doors: Doors) -> APIRouter:
    """Return the pages over an open journal; who comes in is said by the *doors*."""
    files = assets.load()
    desk = Desk(app, doors, environment(), files)
    made = APIRouter(include_in_schema=False, route_class=guarded(partial(trouble, desk)))
    for part in (login, queue, approval, deciding, operation, acting, run):
        part.add_to(made, desk)
    assets.add_to(made, files)
    return made
