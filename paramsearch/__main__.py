"""``python -m paramsearch``."""

from paramsearch.cli import main

main()
