"""One command for the page of results: runs the benchmarks, and writes benchmarks/results.

    python benchmarks/results.py [--only NAME ...] [--again] [--known] [--list] [--output FOLDER]

Every section of the page is a file in ``benchmarks/results/sections``, or in the folder
``sections`` of another output, with the commit, the date and
the machine of its measurement.  A section that is there is not measured again unless it is named
with ``--only`` or ``--again`` is given; the tables of ``search`` and ``real`` keep their rows in
CSV files and go on where they were interrupted (remove the file to measure them again); with
``--known`` they show the rows that are there.  All of it takes about three hours on two cores; let
the machine do nothing else meanwhile.  ``--smoke`` runs every script in its smallest setting, for
another output than the results.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import scripts
import stamp

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


@dataclass(frozen=True)
class Section:
    """A part of the page: the output of one benchmark, which is Markdown.

    Attributes:
        name: What ``--only`` calls it, and the name of its file.
        title: Its heading.
        command: The script, relative to this folder, and its arguments, relative to the output.
        rows: Further arguments for the rows of a table that is kept in a CSV file: to measure those
            that are missing, and to measure none.
        about: What the numbers mean.
        figures: Pictures that the script draws, in the folder of the results.
        as_text: Whether the output is plain text rather than Markdown.
    """

    name: str
    title: str
    command: tuple[str, ...]
    about: str
    rows: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    figures: tuple[str, ...] = ()
    as_text: bool = False


SECTIONS = (
    Section(
        "search",
        "What a search finds, and how long it takes",
        (
            *("generate.py", "--csv", "search.csv"),
            *("--growth", "growth.png", "--headline", "messages.svg"),
        ),
        "ε = 1, δ = 10⁻⁶, seed 0, without the package's table; certified files. `paper` is the "
        "paper's bound with the t' of its program and the best split of the slack.",
        rows=(("--all",), ("--rows",)),
        figures=("messages.svg", "growth.png"),
    ),
    Section(
        "real",
        "Real sums with almost one message per user",
        (
            *("paper/real_sums.py", "--csv", "real.csv"),
            *("--figure", "real.png"),
        ),
        "ε = 1, δ = 10⁻⁶, the error of the Laplace mechanism with 0.75 ε. The paper's columns are "
        "its max_value with the noise of its theorem.",
        rows=((), ("--users",)),
        figures=("real.png",),
    ),
    Section(
        "stage_1",
        "How well stage 1 predicts stage 2",
        ("stage_1.py",),
        "Sixty random families for each problem: Spearman's correlation of what the convex program "
        "predicts with the messages of stage 2.",
    ),
    Section(
        "bursts",
        "Bursts, and how far from the best noise they are",
        ("bursts.py", "--searches", "--figure", "bursts.png"),
        "ε = 1, δ = 10⁻⁶, ε* = 0.9 ε, max_value 1: the fewest messages for every m, and for free "
        "rates of 1, 2, … copies at once, which are found numerically.",
        figures=("bursts.png",),
    ),
    Section(
        "peer",
        "Speed beside google's dp_accounting",
        ("versus_dp_accounting.py",),
        "The same product of five negative binomials at the same gap, in one run.",
    ),
    Section(
        "composition",
        "Releases together, beside google's dp_accounting",
        ("composition.py",),
        "The ε of T releases of one file at δ = 10⁻⁶: our two bounds, and our exported loss "
        "distribution composed by the peer at its default interval of 10⁻⁴.",
    ),
    Section(
        "accounting",
        "How the accounting grows with max_value",
        ("growth.py",),
        "All ordered pairs: rigorous bounds, and the estimates that a search works with.",
    ),
    Section(
        "notary",
        "Proofs in ball arithmetic",
        ("notary.py",),
        "The second proof, pair by pair.",
        as_text=True,
    ),
    Section(
        "deploy",
        "The randomizer and the analyzer",
        ("deploy.py",),
        "Users and messages per second.",
        as_text=True,
    ),
    Section(
        "tables",
        "Tables: workers and lookups",
        ("tables.py",),
        "Throughput of a table's workers, and the time of a lookup.",
    ),
)


def measure(section: Section, output: Path, *, known: bool, smoke: bool) -> None:
    """Run the benchmark of a section and write the section's file."""
    script, *arguments = (*section.command, *section.rows[known])
    arguments += ["--smoke"] if smoke else []
    about = f"Made on {stamp.date()} at commit {stamp.commit()}: {stamp.machine()}."
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        cwd=output,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = done.stdout.strip()
    if section.as_text:
        found = f"```text\n{found}\n```"
    pictures = "".join(f"\n![{section.title}]({name})\n" for name in section.figures)
    place(section, output).parent.mkdir(parents=True, exist_ok=True)
    place(section, output).write_text(
        f"## {section.title}\n\n{section.about}\n\n{found}\n{pictures}\n{about} Again: `python "
        f"benchmarks/results.py --only {section.name}`.\n",
        encoding="utf-8",
    )


def place(section: Section, output: Path) -> Path:
    return output / "sections" / f"{section.name}.md"


def write_page(output: Path) -> None:
    """Put the sections that are there together."""
    parts = [
        "# Results\n\nMade by `python benchmarks/results.py`; nothing here is edited by hand. "
        "Below every section is the load of the machine before the measurement: where it is not "
        "small compared with the number of cores, other work was running, and times are upper "
        "bounds.\n"
    ]
    missing = [section.name for section in SECTIONS if not place(section, output).exists()]
    parts += [
        place(section, output).read_text(encoding="utf-8")
        for section in SECTIONS
        if place(section, output).exists()
    ]
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)}.\n")
    (output / "README.md").write_text("\n".join(parts), encoding="utf-8")


def main() -> None:
    parser = scripts.parser(__doc__)
    names = [section.name for section in SECTIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="NAME")
    parser.add_argument("--again", action="store_true", help="measure every section again")
    parser.add_argument("--known", action="store_true", help="no new rows of tables in CSV files")
    parser.add_argument("--list", action="store_true", help="the names of the sections")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(names))
        return
    output = asked.output.resolve()
    if asked.smoke and output == RESULTS:
        parser.error("--smoke measures nothing: give another --output than the results")
    output.mkdir(parents=True, exist_ok=True)
    for section in SECTIONS:
        wanted = section.name in asked.only if asked.only else not place(section, output).exists()
        if (wanted or asked.again) and not asked.page:
            scripts.say(f"{section.name}: {section.title}")
            measure(section, output, known=asked.known, smoke=asked.smoke)
            write_page(output)
    write_page(output)


if __name__ == "__main__":
    main()
