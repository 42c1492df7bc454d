"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from accounting.base.errors import InvalidParameter

Gap = Annotated[float, typer.Option(help="Relative gap between the bounds.")]
Tier = Annotated[
    str,
    typer.Option(
        help="ball: every pair in ball arithmetic; fast: floating point with error bounds; mixed: "
        "ball for the worst pairs, fast for the others; auto: ball up to max_value 128, then "
        "mixed; for several releases ball up to max_value 24, then fast; light: an upper bound "
        "for less noise, where there is far more than needed."
    ),
]
SameChange = Annotated[
    bool,
    typer.Option(
        "--same-change",
        help="Cover several releases only for a user who makes the same change in every one.",
    ),
]


def check_same_change(same_change: bool, releases: int | None) -> None:
    """It says nothing about a single release."""
    if same_change and releases == 1:
        raise InvalidParameter(
            "--same-change says which changes several releases cover, and this is one release: "
            "give --releases, or leave it out"
        )


Machine = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
