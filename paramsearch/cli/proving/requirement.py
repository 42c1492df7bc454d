"""The file of ``audit --require``: the problem that a parameter file has to be for.

It is TOML, or JSON if its name ends in .json:

    n = 100_000
    max_value = 5
    eps = 1
    delta = 1e-6

Also known, with these values where they are left out: ``dimension`` = 1, ``adjacency`` =
"substitution", ``releases`` = 1, ``changes`` = "any" (or "same": several releases are covered only
where a user makes the same change in each), ``honest`` = 1, and for real values ``low`` and
``high``, the ends of their range.  So it always says the whole problem, and every field has to be
equal.  A file with a smaller eps or a larger max_value would be private enough, but it is another
file than the one that was agreed on, with another cost and another error.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from accounting.base import strict_json
from accounting.base.errors import InvalidConfiguration
from accounting.model.change import LARGEST_DIMENSION, SUBSTITUTION, Adjacency
from paramsearch.certification.stated_problem import Changes, StatedProblem
from paramsearch.refusals import refused_in_words


class _Requirement(BaseModel):
    """The fields of a requirement; the docstring of this module describes its file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    n: Annotated[int, Field(ge=1, lt=1 << 53)]
    max_value: Annotated[int, Field(ge=1, le=1 << 20)]
    dimension: Annotated[int, Field(ge=1, le=LARGEST_DIMENSION)] = 1
    eps: Annotated[float, Field(ge=0, le=1000)]
    delta: Annotated[float, Field(gt=0, lt=1)]
    adjacency: Adjacency = SUBSTITUTION
    releases: Annotated[int, Field(ge=1, lt=1 << 31)] = 1
    changes: Changes = "any"
    honest: Annotated[float, Field(gt=0, le=1)] = 1.0
    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _fields_that_belong_together(self) -> _Requirement:
        if self.changes == "same" and self.releases == 1:
            raise ValueError('changes = "same" is about several releases: give releases as well')
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high are the ends of one range: give both or neither")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"low = {self.low!r} is not below high = {self.high!r}")
        return self


def read_requirement(path: Path) -> StatedProblem:
    """Read the problem that a file has to be for.

    Args:
        path: TOML, or JSON if the name ends in .json.

    Returns:
        The problem, with the usual values for what is left out.

    Raises:
        InvalidConfiguration: If it cannot be read, a field is missing, unknown or outside its
            domain, or fields contradict each other.
    """
    text = strict_json.read_text(path)
    if path.suffix.lower() == ".json":
        data = strict_json.parse(text, source=str(path))
    else:
        data = _toml(text, path)
    hint = f"a requirement has {', '.join(_Requirement.model_fields)}"
    try:
        content = json.dumps(data, default=str)
    except ValueError:
        raise _too_long(path) from None
    except RecursionError:
        raise InvalidConfiguration(f"{path} is nested too deeply; {hint}") from None
    with refused_in_words(str(path), hint=hint):
        found = _Requirement.model_validate_json(content)
    return StatedProblem(**found.model_dump())


def _toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidConfiguration(f"{path} is not TOML: {error}") from None
    except ValueError:  # Python converts no number of so many digits
        raise _too_long(path) from None


def _too_long(path: Path) -> InvalidConfiguration:
    return InvalidConfiguration(f"{path} has a number of thousands of digits; no field takes one")
