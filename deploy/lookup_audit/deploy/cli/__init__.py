"""The command line: ``lookup-audit VERB``."""

from lookup_audit.deploy.cli.main import main

__all__ = ["main"]
