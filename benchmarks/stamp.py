"""When, where and with which code something was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def date() -> str:
    return datetime.now(UTC).date().isoformat()


def commit() -> str:
    """The short name of the commit, with a plus if files have changed since; "unknown" outside a
    clone."""

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
            )
        except OSError:  # git is not installed
            return ""
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "accounting", "paramsearch")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def machine() -> str:
    """The processor, the cores, the memory, Python, and how busy the machine is."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = named[0] if named else platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (
        f"{processor}, {os.cpu_count()} cores, {memory:.0f} GiB, Python "
        f"{platform.python_version()}; load before: {os.getloadavg()[0]:.1f}"
    )
