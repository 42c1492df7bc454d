"""The explorer's page: HTML, style, script and data in one file.

Its content security policy lets the browser run only this script, by its hash, and load nothing.
The data are JSON without a ``<``, so that nothing in them can end their element.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources

from accounting.base.progress import Progress, silent
from paramsearch.explorer.data import page_data
from paramsearch.tables.lookup import Table


def page(table: Table, progress: Progress = silent) -> str:
    """Build the page of a table, which depends on nothing else."""
    style = _style()
    script = "".join(map(_asset, ("charts.js", "files.js", "explorer.js")))
    known = json.dumps(page_data(table, progress), allow_nan=False, separators=(",", ":"))
    parts = {
        "POLICY": policy(style, script),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": known.replace("<", "\\u003c"),
    }
    before, *rest = _asset("page.html").split("@@")
    text = [before]
    for name, constant in zip(rest[::2], rest[1::2], strict=True):
        text += [parts[name], constant]
    return "".join(text)


def policy(style: str, script: str) -> str:
    """Return the content security policy; it allows the page's empty icon, which stops browsers
    from requesting one."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (resources.files("paramsearch") / "explorer" / name).read_text("utf-8")


def _style() -> str:
    """Return the style of the report, followed by the explorer's."""
    common = (resources.files("paramsearch") / "report" / "report.css").read_text("utf-8")
    return common + _asset("explorer.css")
