"""
The pages' own files: one style sheet, one small script, and htmx as its package brings it. They have no secrets and are kept by browsers, each
version under its own address.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.inbox.guard import secure

FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """
    A file as it is served.

    Attributes:
        version: Of its content; a part of its address.
    """

    content: bytes
    media_type: str
    version: str


def _asset(content: bytes, media_type: str) -> Asset:
    return Asset(content, media_type, hashlib.sha256(content).hexdigest()[:12])


def load() -> dict[str, Asset]:
    """Read the files, by name."""
    own = files("service.inbox") / "static"
    htmx = files("js_lib_htmx") / "static" / "htmx" / "htmx.min.js"
    return {
        "inbox.css": _asset((own / "inbox.css").read_bytes(), "text/css; charset=utf-8"),
        "inbox.js": _asset((own / "inbox.js").read_bytes(), "text/javascript; charset=utf-8"),
        "icon.svg": _asset((own / "icon.svg").read_bytes(), "image/svg+xml"),
        "htmx.min.js": _asset(htmx.read_bytes(), "text/javascript; charset=utf-8"),
    }


def add_to(router: APIRouter, assets: dict[str, Asset]) -> None:
    """Serve them under `/static`."""

    @router.get("/static/{name}", include_in_schema=False)
    def static(request: Request, name: str) -> Response:
        asset = assets.get(name)
        if asset is None:
            raise HTTPException(404)
        same = request.query_params.get("v") == asset.version
        headers = {"Cache-Control": FOR_EVER if same else "no-cache", "ETag": f'"{asset.version}"'}
        response = Response(asset.content, media_type=asset.media_type, headers=headers)
        secure(response.headers)
        return response
