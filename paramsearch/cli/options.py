"""Options that several commands share."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.errors import InvalidParameter
from accounting.base.validation import shown

if TYPE_CHECKING:
    from accounting.model.change import Adjacency as AdjacencyName
    from accounting.model.laws.noise import NoiseLaw as NoiseName
    from accounting.model.proof_types import AuditTier as AuditTierName
    from accounting.model.proof_types import Tier as TierName
    from paramsearch.deploy.simulate import SamplingPath as PathName
    from paramsearch.deploy.simulate import Values as ValuesName
    from paramsearch.request import Method as MethodName
    from paramsearch.request import Objective as ObjectiveName
else:  # plain text to Typer: the code that uses a value checks it, and its message names the remedy
    AdjacencyName = AuditTierName = TierName = ValuesName = PathName = MethodName = str
    NoiseName = ObjectiveName = str


_MOST_DIGITS = 24
"""No number of users or values has as many; each option has a smaller limit of its own."""


def whole_number(text: str) -> int:
    """A whole number as people write it: 1000000, 1_000_000 or 1e6."""
    try:
        value = Decimal(text)
        # digits are counted before a huge power of ten is written out
        whole = value.is_finite() and value.adjusted() < _MOST_DIGITS
        whole = whole and value == value.to_integral_value()
    except InvalidOperation:
        whole = False
    if not whole:
        raise typer.BadParameter(f"{shown(text)} is not a whole number such as 1000000 or 1e6")
    return int(value)


Users = Annotated[int, typer.Option(help="Number of users.", parser=whole_number, metavar="N")]
Eps = Annotated[float, typer.Option(help="The guarantee's eps.")]
Delta = Annotated[float, typer.Option(help="The guarantee's delta.")]
MaxValue = Annotated[
    int, typer.Option(help="Inputs are the integers 0..K.", parser=whole_number, metavar="K")
]
CentralFraction = Annotated[
    float | None,
    typer.Option(
        help="eps of the central noise, as a fraction of the largest possible: of eps for numbers "
        "and under zero-out, of eps / 2 for other vectors, and of less for several releases. [0.9]"
    ),
]
MaxErrorRatio = Annotated[
    float | None,
    typer.Option(help="Allow this error, in units of that of the central mechanism, such as 1.5."),
]
Objective = Annotated[ObjectiveName, typer.Option(help="What to minimize: messages or bits.")]
_LAWS = (
    "negative-binomial, as in the paper; burst: noise in bursts, which takes about a sixth fewer "
    "messages, in files of format 5"
)
Noise = Annotated[NoiseName, typer.Option(help=f"The law of the noise on the atoms: {_LAWS}.")]
Noises = Annotated[
    list[NoiseName] | None,
    typer.Option(
        help=f"The law of the noise on the atoms: {_LAWS}. Given twice, both are shown side by "
        "side; by default negative-binomial."
    ),
]
AnyNoise = Annotated[
    NoiseName | None,
    typer.Option(
        help="Only files with this law of the noise on the atoms: negative-binomial, or burst, for "
        "clients that know file format 5. By default the cheapest file that the table has."
    ),
]
Method = Annotated[
    MethodName,
    typer.Option(help="search, or a method of the paper: dominance (its program) or theorem."),
]
Releases = Annotated[
    int,
    typer.Option(
        help="Number of releases covered together; one user's input may change differently in each."
    ),
]
SameChange = Annotated[
    bool,
    typer.Option(
        "--same-change",
        help="Cover several releases only for a user who makes the same change in every one.",
    ),
]
Adjacency = Annotated[
    AdjacencyName,
    typer.Option(
        help="substitution: one user's input becomes any other; zero-out: it becomes 0, or appears "
        "in the place of 0, and everybody's noise stays."
    ),
]
Adjacencies = Annotated[
    list[AdjacencyName] | None,
    typer.Option(
        help="substitution: one user's input becomes any other; zero-out: it becomes 0, or appears "
        "in the place of 0. Given twice, both are shown side by side; by default substitution."
    ),
]
OtherAdjacency = Annotated[
    AdjacencyName | None,
    typer.Option(
        help="substitution or zero-out, instead of the file's: whether one user's input becomes "
        "any other, or only 0 and back."
    ),
]
_PREMISE = "who is missing must not depend on the noise that was drawn"
Honest = Annotated[
    float, typer.Option(help=f"Fraction of the users assumed to add noise; {_PREMISE}.")
]
OtherHonest = Annotated[
    float | None, typer.Option(help=f"Fraction of the users assumed to add noise; {_PREMISE}.")
]
Participants = Annotated[
    int | None,
    typer.Option(
        help=f"How many users took part, if not all n of the file; {_PREMISE}.",
        parser=whole_number,
        metavar="N",
    ),
]
Tries = Annotated[
    int,
    typer.Option(help="Number of families to try; together with --seed it determines the result."),
]
SearchBudget = Annotated[
    float,
    typer.Option(
        help="Seconds for the search and the proof together; by default, as long as it takes.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the search.")]
Cold = Annotated[
    bool, typer.Option("--cold", help="Do not start from the table that comes with this package.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue from the file that --output names.")
]
Gap = Annotated[float, typer.Option(help="Relative gap between the bounds.")]
_TIERS = (
    "ball: every pair in ball arithmetic; fast: floating point with error bounds; mixed: "
    "ball for the worst pairs, fast for the others; auto: ball up to max_value 128, then "
    "mixed; for several releases ball up to max_value 24, then fast; light: an upper bound "
    "for less noise, where there is far more than needed"
)
Tier = Annotated[TierName, typer.Option(help=f"{_TIERS}.")]
AuditTier = Annotated[
    AuditTierName,
    typer.Option(
        help=f"{_TIERS}; reference: the definition, summed over all message counts, for small "
        "problems."
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where to write the parameter file.")
]
FileAsJson = Annotated[bool, typer.Option("--json", help="Print the parameter file on stdout.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON on stdout.")]

TableFolder = Annotated[
    Path | None,
    typer.Argument(metavar="TABLE", help="A table's folder; by default this package's own."),
]
CertifiedFile = Annotated[Path, typer.Argument(help="A certified parameter file.")]
Low = Annotated[
    float | None,
    typer.Option(help="Real values: the smallest possible value, if the file does not have it."),
]
High = Annotated[
    float | None,
    typer.Option(help="Real values: the largest possible value, if the file does not have it."),
]
SimulatedValues = Annotated[
    ValuesName, typer.Option(help="The users' values: uniform, zero or largest.")
]
SimulationPath = Annotated[
    PathName,
    typer.Option(
        help="users: every user's randomizer, up to 1e7; aggregate: the noise of all of them at "
        "once, from the same distribution, up to 1e10."
    ),
]
AllowFew = Annotated[
    bool,
    typer.Option(
        "--allow-few",
        help="Continue with fewer users or messages than the certificate needs: their values are "
        "not protected as the file says.",
    ),
]


def check_same_change(same_change: bool, releases: int | None) -> None:
    """Refuse --same-change for a single release, about which it says nothing."""
    if same_change and releases == 1:
        raise InvalidParameter(
            "--same-change says which changes several releases cover, and this is one release: "
            "give --releases, or leave it out"
        )
