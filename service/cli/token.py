"""The commands about tokens: add one, see them, take one back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from checkpointing.clock import from_ms
from checkpointing.errors import InputRefused
from checkpointing.tokens import Token
from service.cli import show, words
from service.cli.exits import ending, named, print_json
from service.cli.options import As, AsJson, settings_of
from service.cli.window import duration
from service.who.visitor import ROLES
from service.wiring import opened

TokenId = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `counterfoil token list` shows it.")]


@ending
def add(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Whose token it is: the name that stands beside what they decide.")
    ],
    roles: Annotated[
        list[str] | None,
        typer.Option("--role", metavar="ROLE", help=f"What they may do: {', '.join(ROLES)}. Again for another one."),
    ] = None,
    *,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--group", metavar="GROUP", help="A group they are in, for approvals that ask group:GROUP. Again for more."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="AMOUNT", help="The largest amount they may approve, in minor units; without it, any."),
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How long it is good: days, or as in 12h or 6w; without it, until it is revoked."
        ),
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="What it is for; shown in the list.")] = "",
    principal: As = None,
    as_json: AsJson = False,
) -> None:
    """
    Add a token by which somebody comes in, over HTTP and in the inbox.

    The token is printed once, alone on stdout, and can be told to nobody again: what is kept of it is a digest. It begins with cft_ and is
    sent as `Authorization: Bearer TOKEN`, or typed in at the inbox. Who holds it is NAME: whatever they decide is recorded as NAME's.

    A submitter hands claims in, an approver decides up to their limit, an operator does what the command line does, an auditor looks at
    everything and changes nothing. Nobody approves what they submitted themselves, whatever their roles.

    Example: counterfoil token add ada --role approver --group motor --limit 500000 --expires-in 90 --as root

    Example: counterfoil token add intake --role submitter --as root > intake.token
    """
    who = named(principal, command="token add")
    for_how_long = None if expires_in is None else _lasting(expires_in)
    with opened(settings_of(context)) as journal:
        token, secret = journal.tokens.add(
            principal=name.strip(),
            roles=_known(roles or []),
            groups=groups or [],
            limit=limit,
            expires_in=for_how_long,
            note=note,
            by=who,
        )
    if as_json:
        print_json({**document(token), "secret": secret})
        return
    typer.echo(secret)
    for text in _advice(token):
        typer.echo(text, err=True)


@ending
def list_tokens(context: typer.Context, as_json: AsJson = False) -> None:
    """
    List the tokens: whose they are, what they may do, and until when; those that are over, too.

    The id beginning with tok_ is no secret: it lets nobody in, and `counterfoil token revoke` takes it. Secrets are not in the list, and
    nowhere else either.

    Example: counterfoil token list
    """
    settings = settings_of(context)
    with opened(settings, must_exist=True) as journal:
        found, now = journal.tokens.list(), from_ms(journal.store.now_ms())
    if as_json:
        print_json([document(one) for one in found])
    elif found:
        show.stdout().print(_table(found, now))
    else:
        show.stdout().print(
            f"There is no token in {settings.place}: counterfoil token add NAME --role ROLE --as NAME makes one.",
            markup=False,
            soft_wrap=True,
        )


@ending
def revoke(context: typer.Context, token_id: TokenId, principal: As = None, as_json: AsJson = False) -> None:
    """
    Let nobody in by this token any more; whoever logged in to the inbox with it is out at their next click.

    What was decided with it stays decided. Revoking it again changes nothing: who did it first stays on record, and
    `counterfoil audit show --access` has it.

    Example: counterfoil token revoke tok_7f2c1d0a9b3e4c5d --as root
    """
    who = named(principal, command="token revoke")
    with opened(settings_of(context), must_exist=True) as journal:
        before = journal.tokens.get(token_id).revoked_at
        token = journal.tokens.revoke(token_id, by=who)
    if as_json:
        print_json(document(token))
        return
    changed = "Nothing was changed: " if before else ""
    at = words.instant(token.revoked_at) if token.revoked_at else ""
    said = f"{changed}{token.id} of {token.principal} was revoked by {token.revoked_by} at {at} UTC."
    show.stdout().print(Text(words.line(said)), soft_wrap=True)


def document(token: Token) -> dict[str, Any]:
    """Return a token for a program; nothing of its secret is there."""
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in asdict(token).items()}


def _lasting(text: str) -> timedelta:
    """Return how long; a number alone is days."""
    return duration(f"{text}d" if text.strip().isdecimal() else text, option="--expires-in")


def _known(roles: list[str]) -> list[str]:
    if not roles:
        raise InputRefused(f"token add needs --role: one of {', '.join(ROLES)}, again for another one")
    if unknown := [role for role in roles if role not in ROLES]:
        raise InputRefused(f"there is no role {unknown[0]!r:.80}; roles are {', '.join(ROLES)}")
    return roles


def _advice(token: Token) -> list[str]:
    until = f"until {words.instant(token.expires_at)} UTC" if token.expires_at else "until it is revoked"
    return [
        words.line(f"This is the token of {token.principal} ({_may(token)}), good {until}."),
        "It is shown this once: hand it over where nobody else reads it. It goes into the header Authorization: Bearer TOKEN, or into the inbox.",
        f"To take it back: counterfoil token revoke {token.id} --as NAME",
    ]


def _may(token: Token) -> str:
    parts = [", ".join(token.roles)]
    if token.groups:
        parts.append(f"groups {', '.join(token.groups)}")
    if "approver" in token.roles:
        parts.append("any amount" if token.limit is None else f"up to {token.limit}")
    return "; ".join(parts)


def _table(tokens: Iterable[Token], now: datetime) -> Table:
    table = show.empty_table("token", "principal", "may", "good until (UTC)", "added by", "note")
    table.columns[0].no_wrap = True
    for one in tokens:
        table.add_row(
            one.id,
            *(Text(words.line(text), overflow="fold") for text in (one.principal, _may(one))),
            _until(one, now),
            *(Text(words.line(text), overflow="fold") for text in (one.created_by, one.note)),
        )
    return table


def _until(token: Token, now: datetime) -> Text:
    if token.revoked_at:
        return Text(words.line(f"revoked by {token.revoked_by} {words.instant(token.revoked_at)}"), "yellow")
    if token.expires_at is None:
        return Text("it is revoked")
    over = token.expires_at - now <= timedelta()
    return Text(("expired " if over else "") + words.instant(token.expires_at), "yellow" if over else "")
