"""The command `pmap-conformance`: one table of commands, and a module of parsers per group."""
