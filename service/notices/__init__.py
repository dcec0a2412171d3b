"""
Notices: people and other systems are told what happens to approvals, each message as an effect of a run of its own.
"""
