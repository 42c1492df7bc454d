"""The data of the explorer's page: the rows and files of a table, and the baselines."""

from __future__ import annotations

import base64
import math
import shlex
import zlib
from dataclasses import asdict
from itertools import product
from typing import Any

from accounting.base import strict_json
from accounting.base.enclosure import at_least, at_most, exactly
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.progress import Progress, silent
from accounting.model.costs import discrete_laplace_variance
from paramsearch.explorer.baselines import RESPONSE_USERS, Axes, baselines
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile, from_json
from paramsearch.tables.index import Row
from paramsearch.tables.lookup import Table, shipped_folder

USERS = (*(k * 10**e for e in range(3, 9) for k in (1, 3)), 10**9)
"""Stops of the slider for the number of users."""
_FIRST_USERS = 1_000_000
"""Number of users that the page shows first."""
_LEFT_OUT = {
    "n",
    "messages_per_user",
    "bits_per_user",
    "seconds",
    "objective",
    "adjacency",
    "version",
}
"""Columns that the page does not need; it computes the first three for any n, as
``Row.for_users`` does."""


def page_data(table: Table, progress: Progress = silent) -> dict[str, Any]:
    """Collect all data of the page; numbers are exact, and texts of bounds are rounded outward."""
    if not table.rows:
        raise InvalidParameter(f"the table {table.path} is empty; `paramsearch table` fills it")
    adjacencies = sorted({row.adjacency for row in table.rows})
    if len(adjacencies) > 1:
        raise InvalidParameter(
            f"the table {table.path} has files for {' and for '.join(adjacencies)}; a page shows "
            "one adjacency: make a table for each"
        )
    progress("the files")
    files, users = {}, {}
    for row in table.rows:
        content, file = _read(table, row)
        files[row.file] = base64.b64encode(zlib.compress(content, 9)).decode("ascii")
        users[row.file] = file.problem.n
    axes = Axes(
        n=USERS,
        eps=tuple(sorted({row.eps for row in table.rows})),
        delta=tuple(sorted({row.delta for row in table.rows})),
        max_value=tuple(sorted({row.max_value for row in table.rows})),
        central_fraction=tuple(sorted({row.central_fraction for row in table.rows}, reverse=True)),
        adjacency=adjacencies[0],
    )
    return {
        "table": None if table.path == shipped_folder() else shlex.quote(table.path.resolve().name),
        "adjacency": axes.adjacency,
        "axes": {
            name: [exactly(value) for value in stops]
            for name, stops in asdict(axes).items()
            if name != "adjacency"
        },
        "start": _start(axes, table.rows),
        "rows": [_embedded(row) for row in table.rows],
        "errors": _errors(axes, table.rows),
        "others": baselines(axes, progress),
        "response_users": RESPONSE_USERS,
        "files": files,
        "users": users,
    }


def _embedded(row: Row) -> dict[str, Any]:
    known = {key: value for key, value in asdict(row).items() if key not in _LEFT_OUT}
    bounds = [at_least(row.delta_lower), at_most(row.delta_upper)]
    return {**known, "delta_bounds": bounds}


def _read(table: Table, row: Row) -> tuple[bytes, ParameterFile]:
    """Read the bytes and the content of a file, which has to be what the index says."""
    path = table.path / row.file
    try:
        content = strict_json.read_bytes(path)
        text = content.decode("utf-8")
    except (InvalidConfiguration, UnicodeDecodeError) as error:
        raise InvalidConfiguration(
            f"{path} cannot be read: {error}; run `paramsearch table` again"
        ) from None
    file = from_json(strict_json.parse(text, source=str(path)), source=str(path))
    consistent(file)
    row.check(file, path)
    return content, file


def _errors(axes: Axes, rows: tuple[Row, ...]) -> list[str]:
    """Return the largest allowed RMSE at each stop, in the order eps, max_value, central_fraction.

    It is that of the central fraction, as a text of six digits that is also an option of commands.
    """
    largest: dict[tuple[float, int, float], float] = {}
    for row in rows:
        stop = row.eps, row.max_value, row.central_fraction
        largest[stop] = max(largest.get(stop, 0.0), row.rmse)
    found = []
    for eps, top, fraction in product(axes.eps, axes.max_value, axes.central_fraction):
        ideal = math.sqrt(discrete_laplace_variance(fraction * eps / top))
        found.append(at_most(max(ideal, largest.get((eps, top, fraction), 0.0))))
    return found


def _start(axes: Axes, rows: tuple[Row, ...]) -> dict[str, int]:
    """Return the first stops of the sliders: a file near eps 1, delta 1e-6 and max_value 5."""

    def distance(row: Row) -> tuple[float, ...]:
        return (
            abs(math.log(row.eps)),
            abs(math.log10(row.delta) + 6),
            abs(math.log(row.max_value / 5)),
            -row.central_fraction,
        )

    row = min(rows, key=distance)
    return {
        "n": axes.n.index(_FIRST_USERS),
        "eps": axes.eps.index(row.eps),
        "delta": axes.delta.index(row.delta),
        "max_value": axes.max_value.index(row.max_value),
        "central_fraction": axes.central_fraction.index(row.central_fraction),
    }
