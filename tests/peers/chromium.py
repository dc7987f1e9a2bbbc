"""A headless Chromium that is controlled over a pipe with its own protocol. It opens, uses and inspects pages."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.deadlines import eventually

# `chromium-headless-shell` has the engine of the browser but no windows, and needs half of the processor time.
PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or shutil.which("google-chrome")

_ANSWER_SECONDS = 20.0
_ARGUMENTS = (
    "--headless=new",
    "--remote-debugging-pipe",
    # Tests run as root in containers, without a sandbox and with little shared memory.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-color-profile=srgb",
    # The host of a tenant may be unknown to every name server.
    "--host-resolver-rules=MAP *.example.test 127.0.0.1",
)


class PageError(Exception):
    """The browser refused a command, or a script of the test raised an error."""


class Page:
    """A tab of the browser."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        return self._browser.send(method, parameters, session=self._session)

    def open(self, address: str) -> None:
        """Load a URL and wait until all its parts are loaded."""
        self._browser.forget()
        found = self.send("Page.navigate", url=address)
        assert not found.get("errorText"), found
        self.until("document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page. A promise is awaited."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in found:
            raise PageError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def until(self, script: str, *, seconds: float = 10.0) -> None:
        """Wait until an expression in the page is true. While a new document loads, the expression cannot be evaluated."""

        def is_true() -> bool:
            with suppress(PageError):
                return bool(self.evaluate(script))
            return False

        eventually(is_true, seconds=seconds)

    def text(self, selector: str = "body") -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def fill(self, selector: str, value: str) -> None:
        """Set a field and send the events that scripts of the page wait for."""
        self.evaluate(
            f"(() => {{ const field = document.querySelector({json.dumps(selector)}); field.value = {json.dumps(value)};"
            " for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, {bubbles: true})); })()"
        )

    def press(self, key: str) -> None:
        """Press one key at the focused element."""
        code = {"Tab": 9, "Enter": 13, " ": 32, "/": 191, "ArrowDown": 40}[key]
        text = {"Enter": "\r", " ": " ", "/": "/"}.get(key, "")
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def show_as(self, *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Set the size of the window and the preferred color scheme."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def without_script(self, *, is_off: bool = True) -> None:
        self.send("Emulation.setScriptExecutionDisabled", value=is_off)

    def picture(self, path: Path) -> None:
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        path.write_bytes(base64.b64decode(shot["data"]))

    @property
    def complaints(self) -> list[str]:
        """Messages of the console and violations of the content policy since the page was opened."""
        found = []
        for event in self._browser.events:
            parameters = event["params"]
            if event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"])[:500])
        return found


class Chromium:
    """The browser and the two ends of its pipe."""

    def __init__(self, process: subprocess.Popen[bytes], reading: int, writing: int) -> None:
        self._process = process
        self._reading = reading
        self._writing = writing
        self._wire = b""
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def page(self) -> Page:
        """Open a tab with its own profile, without cookies of other pages."""
        context = self.send("Target.createBrowserContext", {})["browserContextId"]
        target = self.send("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
        return Page(self, self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])

    def ordinary_page(self) -> Page:
        """Open a tab in the browser's own profile, where sites keep cookies in frames on other sites."""
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        return self.attached(target)

    def attached(self, target: str) -> Page:
        """Return the tab or window of a target."""
        return Page(self, self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])

    def forget(self) -> None:
        self.events.clear()

    def send(self, method: str, parameters: dict[str, Any], session: str | None = None) -> Any:
        """Send a command and return its result. Keep the events that arrive in the meantime."""
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._writing, json.dumps(command).encode() + b"\0")
        until = time.monotonic() + _ANSWER_SECONDS
        while True:
            message = self._message(until)
            if message.get("id") == number:
                if "error" in message:
                    raise PageError(f"{method}: {message['error']['message']}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def _message(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._wire:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser did not answer")
            data = os.read(self._reading, 1 << 20)
            if not data:
                raise PageError("the browser has ended")
            self._wire += data
        raw, _, self._wire = self._wire.partition(b"\0")
        found: dict[str, Any] = json.loads(raw)
        return found


@contextmanager
def chromium(*further: str) -> Iterator[Chromium]:
    """Run a browser with an empty profile and with additional arguments. It is closed at the end of the block."""
    assert PROGRAM is not None
    to_browser, writing = os.pipe()
    reading, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads commands from file descriptor 3 and answers on 4. A shell opens these descriptors.
        place = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$0" "$@"'
        process = subprocess.Popen(
            ["bash", "-c", place, PROGRAM, *_ARGUMENTS, *further, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Chromium(process, reading, writing)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
            os.close(reading)
            os.close(writing)
