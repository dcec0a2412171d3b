"""
Every safeguard that has been taken away to see the suite go red, by what it keeps.

`old` is as short as it can be and still stand once in its file, so that an edit nearby leaves it alone. A safeguard that is added gets its
entry; an entry whose mutant survives is a test that is missing.
"""

from __future__ import annotations

from tests.mutations.catalogue.agents import AGENTS
from tests.mutations.catalogue.formats import FORMATS
from tests.mutations.catalogue.notices import TELLING
from tests.mutations.catalogue.one_budget import ONE_BUDGET
from tests.mutations.catalogue.one_decision import ONE_DECISION
from tests.mutations.catalogue.one_effect import ONE_EFFECT
from tests.mutations.catalogue.one_run import ONE_RUN
from tests.mutations.catalogue.one_writer import ONE_WRITER
from tests.mutations.catalogue.over_http import OVER_HTTP
from tests.mutations.catalogue.pages import PAGES
from tests.mutations.catalogue.restored_journals import RESTORED_JOURNALS
from tests.mutations.catalogue.several_people import SEVERAL_PEOPLE
from tests.mutations.catalogue.the_database import THE_DATABASE
from tests.mutations.catalogue.the_record import THE_RECORD
from tests.mutations.catalogue.the_world_outside import THE_WORLD_OUTSIDE
from tests.mutations.catalogue.who_comes_in import WHO_COMES_IN
from tests.mutations.catalogue.workers import WORKERS

MUTATIONS = (
    *ONE_WRITER,
    *ONE_EFFECT,
    *ONE_DECISION,
    *ONE_RUN,
    *ONE_BUDGET,
    *THE_RECORD,
    *AGENTS,
    *FORMATS,
    *THE_WORLD_OUTSIDE,
    *WORKERS,
    *THE_DATABASE,
    *RESTORED_JOURNALS,
    *SEVERAL_PEOPLE,
    *WHO_COMES_IN,
    *PAGES,
    *TELLING,
    *OVER_HTTP,
)
