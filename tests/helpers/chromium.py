"""Chromium for tests, driven with nothing but the standard library."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONNECT = """import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])"""


CLIPPED = """[...document.querySelectorAll('figure > svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const at = text.getBoundingClientRect();
    return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1;
  }).map(text => text.textContent);
})"""
"""Texts of charts that stand out of them."""


def required_chromium() -> str:
    """The path of Chromium; without it a test is skipped, or fails where the variable CI is set."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is not None:
        return program
    missing = "the pages can only be tested where Chromium is installed (apt-get install chromium)"
    if os.environ.get("CI", "false") not in ("", "0", "false"):
        pytest.fail(f"{missing}, and CI is set")
    pytest.skip(missing)


class Chromium:
    """A page in Chromium, by its debugging pipe: it reads commands on 3 and writes answers on 4."""

    def __init__(self, program: str, profile: Path) -> None:
        self.answers, answers = os.pipe()
        commands, self.commands = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]
        options = "headless no-sandbox disable-gpu disable-quic no-first-run disable-sync"
        options += " disable-background-networking disable-component-update remote-debugging-pipe"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", CONNECT, *map(str, ends), program),
                *(f"--{option}" for option in options.split()),
                f"--user-data-dir={profile}",
            ],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, answers, *ends):
            os.close(end)
        self.sent, self.rest, self.session = 0, b"", ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.sent += 1
        message: dict[str, Any] = {"id": self.sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        answer = self.wait(lambda event: event.get("id") == self.sent)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            while b"\0" not in self.rest:
                assert select.select([self.answers], [], [], 60)[0], "Chromium is silent"
                got = os.read(self.answers, 1 << 16)
                assert got, "Chromium ended"
                self.rest += got
            first, self.rest = self.rest.split(b"\0", 1)
            event: dict[str, Any] = json.loads(first)
            self.events.append(event)
            if wanted(event):
                return event

    def open(self, path: Path, *, width: int, dark: bool) -> None:
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        self.wait(lambda event: event.get("method") == "Page.loadEventFired")

    def ask(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def seen(self, *methods: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("method") in methods]

    def close(self) -> None:
        os.write(self.commands, b'{"id":0,"method":"Browser.close"}\0')
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            os.close(self.commands)
            os.close(self.answers)
