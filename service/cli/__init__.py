"""
The command line: one module a subject, `service.cli.app` puts them together; nothing is imported here, because pages share its words.
"""
