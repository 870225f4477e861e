"""A headless Chromium, driven over a pipe: what the page does in a browser is tried in one."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_SECONDS = 60.0


class Browser:
    """One page in a browser of its own. `complaints`: what was written to its console as an error, or thrown."""

    def __init__(self) -> None:
        assert PROGRAM is not None, "there is no Chromium here"
        self._folder = tempfile.TemporaryDirectory(prefix="plait-browser-", ignore_cleanup_errors=True)
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        command = [PROGRAM, *options, f"--user-data-dir={self._folder.name}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._rest = 0, b""
        self.complaints: list[str] = []
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()

    def send(self, method: str, **parameters: Any) -> Any:
        """Have the browser do something and return what comes of it."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            told = self._read()
            if told.get("id") == self._number:
                assert "error" not in told, told["error"]
                return told["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], _SECONDS)
            assert ready, "the browser does not answer"
            self._rest += os.read(self._from, 1 << 20)
        text, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(text)
        self._note(told.get("method", ""), told.get("params", {}))
        return told

    def _note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(f"{parameters['entry']['text']} {parameters['entry'].get('url')}")
        elif method == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.complaints.append(str(parameters["args"]))

    def open(self, url: str, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Open a page in a window of this size."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.send("Page.navigate", url=url)
        self.until(f"location.href.startsWith({url!r}) && document.readyState == 'complete'")

    def run(self, script: str) -> Any:
        """Return what an expression of JavaScript comes to."""
        told = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, script: str, seconds: float = _SECONDS) -> Any:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"{script}: never; {self.complaints}"
            time.sleep(0.1)
        return found

    def press(self, key: str, code: int, text: str | None = None) -> None:
        """Press a key."""
        more = {} if text is None else {"text": text}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Write a picture of the page."""
        told = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(told["data"]))
