"""
The door of an Agent Server: who comes in, what is let through, and where a decision is taken.

A decision is recorded here, before the server makes a run of the request: first wins, the loser gets the answer 409, and a refused one
never reaches the graph. LangGraph keeps a resume that failed and hands it to the node again under whoever comes next, so a node that
took decisions from it would take one person's word for another's.

    request ── token ── user ── what it asks ── decision: recorded, or 4xx ── the server makes the run ── the node reads the row
                  │                  │                 │
                  401                403, 422          a crash after it: a recorded decision; any further run of the thread reads it

Everything that claims do not need is shut: other assistants, crons, the store, writing into a thread's state by hand.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from langgraph.types import Command
from langgraph_sdk import Auth

from checkpointing import Journal
from checkpointing.digest import sha256
from checkpointing.errors import (
    AlreadyDecided,
    ApprovalExpired,
    ArgumentsNotJson,
    CounterfoilError,
    DecisionInvalid,
    InputChanged,
    InputRefused,
    JournalUnusable,
    NotAllowed,
    PayloadChanged,
    StoreUnreachable,
    UnknownApproval,
)
from checkpointing.notes import note_submission
from checkpointing.waking import submitters
from graph.asks import Ask, Decide, Start, is_plain, read_ask
from nodes.principal import identity_of
from service.agent_server import AgentServer

LOOKING = frozenset({("assistants", "read"), ("assistants", "search"), ("threads", "read"), ("threads", "search")})
"""What anybody whom the server lets in may do, Studio's user too."""
DOING = frozenset({("threads", "create"), ("threads", "create_run"), ("threads", "update")})
"""What a user with a token may do too; everything else is shut."""
OURS = ("__counterfoil", "__pregel")
"""How the keys begin by which a config tells a node who is acting, under which lease, and where in the graph it stands."""
STATUS: dict[type[CounterfoilError], int] = {
    NotAllowed: 403,
    UnknownApproval: 404,
    AlreadyDecided: 409,
    ApprovalExpired: 409,
    InputChanged: 409,
    PayloadChanged: 409,
    DecisionInvalid: 422,
    InputRefused: 422,
    ArgumentsNotJson: 422,
    JournalUnusable: 503,
    StoreUnreachable: 503,
}
"""What the client is told; the error's own words come with it."""


DECISION = (
    'a decision is {"resume": {"approval": ID, "type": "approve" or "reject", "payload_hash": HASH}}, with ID and HASH as the question '
    'shows them; "edit" takes a "payload" too'
)


def make_auth(server: AgentServer) -> Auth:
    """Return the handlers that the server asks, first who somebody is and then about everything they want."""
    auth = Auth()

    @auth.authenticate
    async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
        return {"identity": user_of(server.settings.agent_server_users, authorization)}

    @auth.on
    async def authorise(ctx: Auth.types.AuthContext, value: Any) -> bool:
        try:
            return await let_through(server, ctx, value)
        except tuple(STATUS) as refused:
            status = next(status for kind, status in STATUS.items() if isinstance(refused, kind))
            raise Auth.exceptions.HTTPException(status, str(refused)) from refused

    return auth


def user_of(users: Mapping[str, str], authorization: str | None) -> str:
    """
    Return whose bearer token this is; *users* has the SHA-256 of each user's token by name.

    Raises:
        Auth.exceptions.HTTPException: it is nobody's (401).
    """
    scheme, _, token = (authorization or "").partition(" ")
    digest = hashlib.sha256(token.strip().encode()).hexdigest()
    found = [name for name, known in users.items() if hmac.compare_digest(known, digest)]
    if scheme.lower() != "bearer" or not found:
        raise Auth.exceptions.HTTPException(401, "a bearer token is needed, one of COUNTERFOIL_AGENT_SERVER_TOKENS")
    return found[0]


async def let_through(server: AgentServer, ctx: Auth.types.AuthContext, value: Mapping[str, Any]) -> bool:
    """
    Tell whether the server may do what a request wants; what a run brings is durable by then.

    Raises:
        NotAllowed: it writes a thread's state by hand.
        InputRefused, ...: as `admit_run`.
        JournalUnusable, StoreUnreachable: the journal is away; nothing was changed. Ask again.
    """
    principal, wanted = identity_of(ctx.user), (ctx.resource, ctx.action)
    if wanted in LOOKING:
        return True
    if principal is None or wanted not in DOING:
        return False
    if wanted == ("threads", "update") and not {"action", "metadata"} & value.keys():
        raise NotAllowed("a thread's state is not written by hand: what it says happened must have happened")
    if wanted == ("threads", "create_run"):
        journal = (await server.opened()).journal
        await journal.bridge.run(admit_run, journal, principal, value)
    return True


def admit_run(journal: Journal, principal: str, value: Mapping[str, Any]) -> None:
    """
    Make durable what the run that *principal* wants brings: its decisions, or who submitted its input.

    Raises:
        InputRefused: it has no thread, its config speaks for us, it updates or jumps, or its input writes our channels.
        InputChanged: the thread has its input.
        NotAllowed, DecisionInvalid, ...: its decision is not taken; errors as `Approvals.decide`.
    """
    kwargs = value["kwargs"]
    if value.get("thread_id") is None:
        raise InputRefused("a claim is run on a thread: create one first; nothing could resume a run without one")
    thread_id = str(value["thread_id"])
    for given in (kwargs.get("config", {}).get("configurable"), kwargs.get("context")):
        if own := sorted(key for key in given or {} if key.startswith(OURS)):
            raise InputRefused(f"a client may not set {', '.join(own)}")
    ask = _ask(kwargs)
    if isinstance(ask, Start):
        note_submission(journal.store, thread_id, principal=principal, digest=sha256(ask.input, what="input"))
    elif isinstance(ask, Decide):
        _decide(journal, ask, thread_id, principal)


def _ask(kwargs: Mapping[str, Any]) -> Ask:
    """Return what is asked, refused in words that a client of HTTP can act on."""
    if not kwargs.get("command"):
        return read_ask(kwargs.get("input"))
    command = _command(kwargs["command"])
    if command.update or command.goto:
        raise InputRefused("a run takes no update and no goto: they would change what was recorded")
    try:
        return read_ask(command)
    except DecisionInvalid as refused:
        raise DecisionInvalid(f"the resume names no approval, or is malformed: {DECISION}") from refused


def _command(given: Any) -> Command[Any]:
    try:
        return Command(**given)
    except TypeError as error:
        raise InputRefused(f"a command is a mapping with resume, and nothing else: {error}") from error


def _decide(journal: Journal, ask: Decide, thread_id: str, principal: str) -> None:
    for one in ask.answers:
        if one.approval_id is None:
            raise DecisionInvalid(f"the answer to interrupt {one.interrupt_id!r} names no approval; {DECISION}")
        if not is_plain(one.approval_id):  # a question that Postgres does not take
            raise DecisionInvalid(f"{one.approval_id!r:.80} is no approval's id; {DECISION}")
        if journal.approvals.get(one.approval_id).thread_id != thread_id:
            raise UnknownApproval(f"thread {thread_id!r} has no approval {one.approval_id!r}")
    with journal.store.reading() as tx:
        submitted_by = submitters(tx, thread_id)
    if not submitted_by:  # a copy of a thread, say: whoever made it may be the one who submitted
        raise NotAllowed(
            f"nobody is on record as who submitted thread {thread_id!r}, so nobody may decide its approvals"
        )
    decisions = [(str(one.approval_id), one.value) for one in ask.answers]
    journal.approvals.decide_all(decisions, principal=principal)
