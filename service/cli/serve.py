"""The command `serve`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import structlog
import typer

from service.cli.exits import Exit, ending
from service.cli.options import settings_of
from service.cli.worker import leave
from service.http import app as http
from service.http.server import is_loopback, listen, serve, url_of
from service.logs import write_logs
from service.wiring import doors_of, notices_of, wired
from service.worker.draining import Draining
from service.worker.signals import drained_by_signals
from service.worker.work import work

log = structlog.get_logger("counterfoil.http")

EXPOSED = (
    "counterfoil: this is reached from other machines, and it speaks HTTP: tokens and claims cross the network as they are. Put a proxy with TLS in "
    "front of it, on this machine or with --behind-proxy ADDRESS"
)


@ending
def serve_command(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0 takes any that is free.")] = 8080,
    concurrency: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many runs at a time.")] = 4,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Carry no runs on; `counterfoil worker` does, elsewhere.")
    ] = False,
    behind_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; an address or a network, repeatable. Nobody else's are.",
        ),
    ] = None,
    drain_s: Annotated[
        float,
        typer.Option(
            "--drain", metavar="SECONDS", min=0, help="How long a drain may take before the process ends all the same."
        ),
    ] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Log one JSON document a line.")] = False,
) -> None:
    """
    Serve the API and the inbox, and carry runs on: one process is all there is to start.

    It listens on 127.0.0.1 unless --host says otherwise, and speaks HTTP: TLS is a proxy's. Who comes in is said by tokens (`counterfoil token add`), or
    by an identity provider (docs/settings.md). It logs to stderr: no query, header, body or token is in it.

    SIGTERM (or Ctrl-C) drains it: requests are answered, streams end, every run finishes the step it is in; then the process ends, with exit code 0. A
    second one ends it at once, and so does a drain that takes longer than --drain (exit code 75): that is a crash, which loses nothing.

    Example: counterfoil serve --port 8080

    Example: counterfoil serve --host 10.0.0.5 --behind-proxy 10.0.0.1 --no-worker
    """
    write_logs(as_json=as_json)
    settings, draining = settings_of(context), Draining()
    with drained_by_signals(draining, within=timedelta(seconds=drain_s)), wired(settings) as app:
        listening = listen(host, port)
        if not is_loopback(listening) and not behind_proxy:
            typer.echo(EXPOSED, err=True)
            log.warning("without_tls", at=url_of(listening))
        log.info("serve_started", journal=settings.place, worker=not no_worker, concurrency=concurrency)

        def carry_on() -> None:
            work([app.graph], concurrency=concurrency, draining=draining, notices=notices_of(settings, app.journal))

        ended_well = serve(
            http.make_app(app, doors_of(settings, app.journal), draining=draining),
            listening,
            draining,
            proxies=behind_proxy or (),
            beside=None if no_worker else carry_on,
        )
        log.info("serve_ended")
    leave(0 if ended_well else Exit.WRONG)
    if not ended_well:
        raise typer.Exit(Exit.WRONG)
