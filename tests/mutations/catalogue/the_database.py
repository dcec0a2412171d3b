"""A database in other people's hands: who may make tables, whose tables they are, and what stands between."""

from __future__ import annotations

from tests.mutations.catalogue.places import (
    CONNECTED,
    CONNECTING,
    GRANTING,
    IN_SCHEMAS,
    MIGRATE,
    POSTGRES,
    STANDING,
    THROUGH_PROXY,
    WITHOUT_DDL,
)
from tests.mutations.workshop import Mutation

THE_DATABASE = (
    Mutation(
        "a journal that is up to date is only read",
        MIGRATE,
        "if store.dialect.dispatches and before.reaches(aim):",
        "if before is None:",
        (WITHOUT_DDL + "test_a_journal_that_is_up_to_date_is_opened_by_reading",),
        "An application whose role may not create tables cannot start.",
    ),
    Mutation(
        "the migration lock is a transaction's",
        MIGRATE,
        "pg_try_advisory_xact_lock",
        "pg_try_advisory_lock",
        (THROUGH_PROXY + "test_no_lock_outlives_the_migration",),
        "Behind a proxy the lock stays with a connection that is lent to others, and nobody migrates any more.",
    ),
    Mutation(
        "another's Procrastinate is left alone",
        STANDING,
        "    if there.foreign:",
        "    if there is None:",
        (WITHOUT_DDL + "test_tables_of_another_procrastinate_are_left_alone",),
        "Half of a journal is made beside tables that are somebody else's.",
    ),
    Mutation(
        "tables are looked for in the journal's own schema",
        STANDING,
        "where relnamespace = to_regnamespace(quote_ident(current_schema())) and",
        "where pg_table_is_visible(oid) and",
        (IN_SCHEMAS + "test_tables_in_another_schema_of_the_path_are_not_taken_for_the_journals",),
        "Two journals of one database become one.",
    ),
    Mutation(
        "the schema is the one that was asked for",
        CONNECTING,
        'if schema not in (found["schema"], first):',
        "if first is None:",
        (THROUGH_PROXY + "test_a_schema_that_a_proxy_keeps_from_a_session_is_the_roles",),
        "A proxy that drops the schema puts the journal into another one.",
    ),
    Mutation(
        "no statement is prepared",
        CONNECTING,
        '{"prepare_threshold": None, ',
        '{"prepare_threshold": 5, ',
        (CONNECTED + "test_no_statement_is_prepared",),
        "Behind a proxy the next statement goes to a session that has not prepared it.",
    ),
    Mutation(
        "a session that stands still in a transaction is ended",
        CONNECTING,
        '        "idle_in_transaction_session_timeout": longest_pause_ms(lease),\n',
        "",
        (CONNECTED + "test_a_process_that_stands_still_in_a_transaction_loses_its_locks",),
        "A host that is cut off keeps its row locks for hours, and nobody takes its runs over.",
    ),
    Mutation(
        "behind a proxy each transaction says what a session cannot keep",
        POSTGRES,
        "for statement in self._in_each:",
        "for statement in ():",
        (THROUGH_PROXY + "test_nothing_is_left_in_a_session_of_the_server",),
        "A claim is not flushed, and a process that stands still keeps its locks.",
    ),
    Mutation(
        "transactions are read committed",
        POSTGRES,
        "    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED\n",
        "",
        (WITHOUT_DDL + "test_tables_are_made_where_the_database_reads_repeatably",),
        "The migration waits for its own lock's snapshot, for ever.",
    ),
    Mutation(
        "a role is let in to the journal's tables only",
        GRANTING,
        '            if _is_ours(thing["name"]):\n',
        "            if thing:\n",
        (WITHOUT_DDL + "test_a_table_of_somebody_elses_is_not_given_away",),
        "An application may read what was never meant for it.",
    ),
)
