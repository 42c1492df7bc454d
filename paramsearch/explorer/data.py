"""What the explorer's page knows: the table's rows and files, and what they are compared with."""

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
from paramsearch.explorer.baselines import RESPONSE_USERS, Axes, others
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import from_json
from paramsearch.tables.index import Row, row_of
from paramsearch.tables.lookup import Table, shipped

USERS = (*(k * 10**e for e in range(3, 9) for k in (1, 3)), 10**9)
_USUAL_USERS = 1_000_000
_LEFT_OUT = {"n", "messages_per_user", "bits_per_user", "seconds"}
"""The page finds the first three for any n, as ``Row.for_users`` does."""


def data(table: Table, progress: Progress = silent) -> dict[str, Any]:
    """Numbers are exact; texts of bounds are rounded to their own side."""
    if not table.rows:
        raise InvalidParameter(f"the table {table.path} is empty; `paramsearch table` fills it")
    progress("the files")
    files, users = {}, {}
    for row in table.rows:
        files[row.file], users[row.file] = _packed(table, row)
    axes = Axes(
        n=USERS,
        eps=tuple(sorted({row.eps for row in table.rows})),
        delta=tuple(sorted({row.delta for row in table.rows})),
        max_value=tuple(sorted({row.max_value for row in table.rows})),
        central_fraction=tuple(sorted({row.central_fraction for row in table.rows}, reverse=True)),
    )
    return {
        "table": None if table.path == shipped() else shlex.quote(table.path.resolve().name),
        "axes": {name: [exactly(value) for value in stops] for name, stops in asdict(axes).items()},
        "start": _start(axes, table.rows),
        "rows": [_embedded(row) for row in table.rows],
        "errors": _errors(axes, table.rows),
        "others": others(axes, progress),
        "response_users": RESPONSE_USERS,
        "files": files,
        "users": users,
    }


def _embedded(row: Row) -> dict[str, Any]:
    known = {key: value for key, value in asdict(row).items() if key not in _LEFT_OUT}
    bounds = [at_least(row.delta_lower), at_most(row.delta_upper)]
    return {**known, "delta_bounds": bounds}


def _packed(table: Table, row: Row) -> tuple[str, int]:
    """A file as it is, deflated, in base64, and for how many users it is; it has to be what the
    index says."""
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
    told = row_of(file, name=row.file)
    if told is None or not row.says(told):
        raise InvalidConfiguration(
            f"{path} is not what the index says; run `paramsearch table` again"
        )
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii"), file.problem.n


def _errors(axes: Axes, rows: tuple[Row, ...]) -> list[str]:
    """The largest RMSE allowed at each stop: that of the central fraction, as a text of six digits
    which serves as the option of a command, too; in the order eps, max_value, central_fraction."""
    known: dict[tuple[float, int, float], float] = {}
    for row in rows:
        place = row.eps, row.max_value, row.central_fraction
        known[place] = max(known.get(place, 0.0), row.rmse)
    found = []
    for eps, top, fraction in product(axes.eps, axes.max_value, axes.central_fraction):
        ideal = math.sqrt(discrete_laplace_variance(fraction * eps / top))
        found.append(at_most(max(ideal, known.get((eps, top, fraction), 0.0))))
    return found


def _start(axes: Axes, rows: tuple[Row, ...]) -> dict[str, int]:
    """Where the sliders stand at first: a file near (1, 1e-6) and max_value 5."""

    def strange(row: Row) -> tuple[float, ...]:
        return (
            abs(math.log(row.eps)),
            abs(math.log10(row.delta) + 6),
            abs(math.log(row.max_value / 5)),
            -row.central_fraction,
        )

    row = min(rows, key=strange)
    return {
        "n": axes.n.index(_USUAL_USERS),
        "eps": axes.eps.index(row.eps),
        "delta": axes.delta.index(row.delta),
        "max_value": axes.max_value.index(row.max_value),
        "central_fraction": axes.central_fraction.index(row.central_fraction),
    }
