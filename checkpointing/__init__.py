"""
What survives a crash: the store, runs and leases, the effect ledger, approvals, audit and artefacts, and LangGraph's savers.

`open_journal(url)` gives all of it.
"""

from checkpointing.approvals import Approval
from checkpointing.audit import Entry
from checkpointing.journal import Journal, open_journal
from checkpointing.leases import Lease
from checkpointing.ledger import EffectRecord
from checkpointing.runs import Run

__all__ = ["Approval", "EffectRecord", "Entry", "Journal", "Lease", "Run", "open_journal"]
