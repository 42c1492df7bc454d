"""What the scripts of this folder share: an option for the smallest setting, and progress."""

from __future__ import annotations

import argparse
import sys


def parser(documentation: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows the script's documentation and knows ``--smoke``."""
    found = argparse.ArgumentParser(
        description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument(
        "--smoke",
        action="store_true",
        help="everything once in its smallest setting, which takes seconds and measures nothing",
    )
    return found


def say(text: str) -> None:
    """Print progress on standard error, so that standard output has the results alone."""
    print(text, file=sys.stderr, flush=True)
