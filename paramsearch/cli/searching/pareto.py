"""The front of messages against error, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from accounting.base.enclosure import exactly
from paramsearch.files import write_atomically
from paramsearch.parameters.parameter_file import ParameterFile


def draw(path: Path, files: Sequence[ParameterFile]) -> None:
    """Noise messages over the RMSE of the sum, both on logarithmic axes."""
    from io import BytesIO

    from matplotlib.figure import Figure

    problem = files[0].problem
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(
        [file.error.rmse for file in files],
        [file.cost.noise_messages for file in files],
        marker="o",
        color="#0072b2",
    )
    for file in files:
        share = file.central.eps_central / problem.eps
        axes.annotate(
            f"{share:.2f}",
            (file.error.rmse, file.cost.noise_messages),
            textcoords="offset points",
            xytext=(6, 4),
            fontsize=8,
        )
    axes.set_xlabel("RMSE of the sum")
    axes.set_ylabel("noise messages of all users")
    axes.set_title(
        f"max_value {problem.max_value}, eps {exactly(problem.eps)}, delta {problem.delta!r}; "
        "labels: central eps / eps",
        fontsize=9,
    )
    axes.grid(True, which="both", alpha=0.25)
    out = BytesIO()
    figure.savefig(out, format=path.suffix.lower().removeprefix("."), dpi=150)
    write_atomically(path, out.getvalue())
