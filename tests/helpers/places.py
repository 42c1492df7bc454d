"""Where the tests find files."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests" / "examples"
ORACLES = ROOT / "tests" / "oracles"
SHIPPED = ROOT / "paramsearch" / "data" / "files"
