"""
The HTTP API: claims come in, runs are seen, approvals are decided, and operators do what the command line does.
"""
