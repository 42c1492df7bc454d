"""A small table for the explorer, and what a page of it holds."""

from __future__ import annotations

import json
import re
import shutil
from itertools import product
from pathlib import Path
from typing import Any

from paramsearch.filling.folder import Folder
from paramsearch.filling.grid import Grid
from paramsearch.tables.lookup import Table, shipped_folder

EPS, DELTA, TOPS, FRACTIONS = (0.5, 1.0, 2.0), (1e-8, 1e-6), (1, 2, 3), (0.9, 0.5)
MISSING = ["2-1-1e-06-0.9", "3-2-1e-08-0.5", "3-0.5-1e-08-0.9", "3-0.5-1e-08-0.5", "1-1-1e-06-0.5"]


def make(path: Path) -> Table:
    """Some files of the package's own table, with holes."""
    (path / "files").mkdir(parents=True)
    for parts in product(TOPS, EPS, DELTA, FRACTIONS):
        name = "-".join([str(parts[0]), *(repr(x).removesuffix(".0") for x in parts[1:])])
        if name not in MISSING:
            shutil.copy(shipped_folder() / "files" / f"{name}.json", path / "files")
    folder = Folder(path, Grid(eps=EPS, delta=DELTA, max_value=TOPS, central_fraction=FRACTIONS))
    folder.write_index()
    folder.close()
    return Table.open(path)


def embedded(html: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">([^<]*)</script>', html)
    assert found is not None
    return json.loads(found[1])
