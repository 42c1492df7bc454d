"""``python -m paramsearch``."""

from paramsearch.cli.app import main

if __name__ == "__main__":  # worker processes import this module, too
    main()
