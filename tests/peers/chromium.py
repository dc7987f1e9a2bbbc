"""A headless Chromium that opens, uses and inspects pages. Tests control it with its DevTools protocol over a pipe."""

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

# Prefer `chromium-headless-shell`: it is the engine of Chromium without windows, and uses half of the processor time.
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
    # Resolve the hosts of tenants to this machine, because no name server knows these hosts.
    "--host-resolver-rules=MAP *.example.test 127.0.0.1",
)


class PageError(Exception):
    """The browser refused a command or ended, or a script of the test raised an error."""


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
        """Load a URL, and wait until the page and everything that it contains are loaded."""
        self._browser.forget()
        found = self.send("Page.navigate", url=address)
        assert not found.get("errorText"), found
        self.until("document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """Evaluate a JavaScript expression in the page, and return its value. If the value is a promise, wait for its result."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in found:
            raise PageError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def until(self, script: str, *, seconds: float = 10.0) -> None:
        """Wait until a JavaScript expression in the page is true. Ignore errors of the expression while a new page loads."""

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
        """Set the value of a field, and send the events `input` and `change`, for which scripts of the page wait."""
        self.evaluate(
            f"(() => {{ const field = document.querySelector({json.dumps(selector)}); field.value = {json.dumps(value)};"
            " for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, {bubbles: true})); })()"
        )

    def press(self, key: str) -> None:
        """Press one key. The focused element gets the key."""
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
        """The errors in the console since the page was opened. Violations of the content security policy are among them."""
        found = []
        for event in self._browser.events:
            parameters = event["params"]
            if event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"])[:500])
        return found


class Chromium:
    """A running browser, which gets commands and sends responses and events over two pipes."""

    def __init__(self, process: subprocess.Popen[bytes], reading: int, writing: int) -> None:
        self._process = process
        self._reading = reading
        self._writing = writing
        self._wire = b""
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def page(self) -> Page:
        """Open a tab in a new profile, which has no cookies of other tabs."""
        context = self.send("Target.createBrowserContext", {})["browserContextId"]
        target = self.send("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
        return Page(self, self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])

    def ordinary_page(self) -> Page:
        """Open a tab in the default profile, which accepts third-party cookies: a site in a frame can store its own cookies."""
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        return self.attached(target)

    def attached(self, target: str) -> Page:
        """Return the page with which a tab or window can be controlled. `target` is its id."""
        return Page(self, self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])

    def forget(self) -> None:
        self.events.clear()

    def send(self, method: str, parameters: dict[str, Any], session: str | None = None) -> Any:
        """Send a command and return its result. Store the events that arrive before the result in `events`."""
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
    """Run a browser with an empty profile and with the additional arguments `further`. End the browser at the end of the block."""
    assert PROGRAM is not None
    to_browser, writing = os.pipe()
    reading, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads commands from the file descriptor 3 and writes to 4. The shell connects these descriptors with the pipes.
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
