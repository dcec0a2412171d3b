"""
What survives a crash: the store, runs and leases, the effect ledger, approvals, audit and artefacts, and LangGraph's savers.

`open_journal(url)` gives all of it.
"""

from checkpointing.admissions import Run
from checkpointing.audit import Entry
from checkpointing.effects import EffectRecord
from checkpointing.journal import Journal, open_journal
from checkpointing.leases import Lease
from checkpointing.questions import Approval

__all__ = ["Approval", "EffectRecord", "Entry", "Journal", "Lease", "Run", "open_journal"]
