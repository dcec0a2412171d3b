"""
The app: the API under `/api/v1`, how the server stands, and the pages where people decide.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from checkpointing.errors import CounterfoilError
from service.http import approvals, claims, dead_letters, effects, events, runs, standing
from service.http.around import Around
from service.http.bodies import Bounded
from service.http.callers import Caller, check_submits
from service.http.problems import MEDIA_TYPE, Problem, problem_of, problem_of_fields, problem_of_status
from service.http.segments import Segments
from service.http.shown import CallerShown
from service.inbox import pages
from service.who.doors import Doors
from service.wiring import App
from service.worker.draining import Draining

V1 = "/api/v1"
LARGER = {f"{V1}/claims": 16 * 2**20}
"""Where a body may be longer than elsewhere: a claim brings its documents."""
PROBLEM = {"$ref": "#/components/schemas/Problem"}
DESCRIPTION = """
Durable agents whose side effects happen once: claims are submitted, run by workers, and decided by people.

Every answer that is not a success is a problem (RFC 9457, `application/problem+json`) whose `type` says which kind it is. Lists come in pages: give
`next` of one as `cursor` to get the one after it.
"""

me = APIRouter(tags=["you"])


@me.get("/me")
def get_me(visitor: Caller) -> CallerShown:
    """Return who you are here, and in which roles you come."""
    person = visitor.person
    return CallerShown(
        name=person.name, roles=sorted(visitor.roles), groups=sorted(person.groups), limit=person.limit, how=visitor.how
    )


def make_app(app: App, doors: Doors, *, draining: Draining | None = None) -> FastAPI:
    """
    Return the service over an open journal.

    Args:
        app: the journal and the claims graph; they stay the caller's to close.
        doors: by what people come in.
        draining: ends streams that are open when it is asked.
    """
    made = FastAPI(
        title="Counterfoil",
        version="1",
        description=DESCRIPTION,
        openapi_url=f"{V1}/openapi.json",
        docs_url=None,  # its pages would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        responses={"default": {"model": Problem, "description": "A problem."}},
    )
    made.state.app, made.state.doors = app, doors
    made.state.draining = draining or Draining()
    made.state.recent, made.state.streams = standing.Recent(app.journal), events.Streams()
    api = APIRouter(prefix=V1)
    for part in (me, claims.router, runs.router, events.router, approvals.router, effects.router, dead_letters.router):
        api.include_router(part)
    made.include_router(api)
    made.include_router(standing.router)
    made.include_router(pages.router(app, doors))
    _add_problems(made)
    _describe(made)
    made.add_middleware(Segments)
    made.add_middleware(Bounded, larger=LARGER, check=partial(check_submits, doors))
    made.add_middleware(Around)
    return made


def _describe(made: FastAPI) -> None:
    """Have the document say what FastAPI does not know of this API."""
    generated = made.openapi

    def openapi() -> dict[str, Any]:
        if made.openapi_schema is None:
            document = generated()
            for operations in document["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)  # FastAPI's own form of it; ours is the default's
                    operation["responses"]["default"]["content"] = {MEDIA_TYPE: {"schema": PROBLEM}}
                    for parameter in operation.get("parameters", ()):
                        _without_null(parameter)
        return generated()

    made.openapi = openapi  # type: ignore[method-assign]  # how FastAPI has it: https://fastapi.tiangolo.com/how-to/extending-openapi/


def _without_null(parameter: dict[str, Any]) -> None:
    """Say of a parameter that may be left out only that: in a query or a header there is no null."""
    schema = parameter["schema"]
    if kinds := [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]:
        [kind] = kinds
        parameter["schema"] = {**{key: value for key, value in schema.items() if key != "anyOf"}, **kind}


def _add_problems(made: FastAPI) -> None:
    @made.exception_handler(CounterfoilError)
    def ours(_request: Request, error: CounterfoilError) -> Response:
        return problem_of(error).response()

    @made.exception_handler(RequestValidationError)
    def fields(_request: Request, error: RequestValidationError) -> Response:
        return problem_of_fields(error).response()

    @made.exception_handler(HTTPException)
    def http(_request: Request, error: HTTPException) -> Response:
        return problem_of_status(error.status_code, error.detail, error.headers).response()
