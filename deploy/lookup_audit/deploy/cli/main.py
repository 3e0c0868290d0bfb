"""Finds the verb, and turns what goes wrong into one sentence and an exit code.

Exit codes: 0 done, 1 something was found (rejected events, failed checks, holes), 2 wrong usage or
configuration, or a dependency that does not answer. A verb's module is imported only when asked
for, so that ``--help`` needs none of the heavy packages.
"""

import decimal
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from lookup_audit.schemas.errors import LookupAuditError

VERBS = {
    "up": "run the whole stack in one process, on an embedded broker and engine",
    "demo": "run a real retrieval service through the stack and print the tables",
    "collect": "receive events over HTTP and publish them to Kafka",
    "process": "audit events from Kafka and store them in ClickHouse",
    "watch": "watch every stratum's rates and raise drift alarms",
    "ingest": "send events from files or standard input",
    "lookup": "show everything about one lookup",
    "ratio": "high-score errors against low-score refusals, with intervals",
    "sample": "draw a day's sample and write the sheet for its reviewers",
    "judge": "record verdicts from a sheet, a person or a model; agreement of judges",
    "conduct": "how agents used the levels they were given",
    "triage": "the likely causes of a rise of high-score errors or refusals",
    "query": "run read-only SQL over the audit database",
    "calibrate": "hold thresholds against a gold set, or tell how fragile they are",
    "compare": "set two strategies side by side over a gold set",
    "dashboards": "boards and alert rules for Grafana: render, check, publish",
    "ruleset": "put rulesets in force, list and show them",
    "replay": "what stored history would have been under another ruleset",
    "drift": "show what is watched and what has moved, explain it, and accept a change",
    "dlq": "list, show and replay dead letters",
    "migrate": "create or update the tables and topics",
    "doctor": "check every dependency and name the fix",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0 if arguments else 2
    if arguments[0] == "--version":
        from importlib.metadata import version

        print(version("lookup-audit"))
        return 0
    verb = arguments[0]
    if verb not in VERBS:
        print(f"lookup-audit: there is no verb {verb!r}; see lookup-audit --help", file=sys.stderr)
        return 2
    logging.basicConfig(
        level=os.environ.get("LOOKUP_AUDIT_LOG_LEVEL", "WARNING").upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    for chatty in ("kafka", "bm25s"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
    try:
        module = importlib.import_module(f"lookup_audit.deploy.cli.{verb}")
        code: int = module.run(module.parser().parse_args(arguments[1:]))
        return code
    except LookupAuditError as error:
        print(f"lookup-audit {verb}: {error}", file=sys.stderr)
        return 2
    except (OverflowError, decimal.InvalidOperation) as error:
        print(
            f"lookup-audit {verb}: a number or time given is out of range ({error})",
            file=sys.stderr,
        )
        return 2
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("lookup_audit"):
            raise
        print(
            f"lookup-audit {verb}: the package {error.name} is not installed; "
            'run: pip install "lookup-audit[embedded]"',
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _usage() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:{width}}  {text}" for name, text in VERBS.items())
    return (
        "usage: lookup-audit VERB [options]\n\n"
        "Recompute, compare and prove every retrieval decision of a RAG service.\n\n"
        f"verbs:\n{verbs}\n\n"
        "'lookup-audit VERB --help' has an example of each. First use: lookup-audit demo"
    )
