"""Chromium without a window, told what to do by its DevTools protocol over a pipe: nothing to install beside it, no port."""
import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


class Browser:
    """One page. What it says, asks for and throws since it was opened: `errors` and `requests`."""

    def __init__(self, profile):
        theirs, self.to = os.pipe()
        self.back, mine = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--no-first-run",
                   "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}"]
        # The protocol is read from 3 and written to 4.
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{theirs} 4>&{mine}', "bash", CHROMIUM, *options, "about:blank"],
                                        pass_fds=(theirs, mine), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(mine)
        self.numbers, self.rest, self.session, self.errors, self.requests, self.loaded = itertools.count(1), b"", None, [], [], False
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)   # without its pipe it ends
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)

    def receive(self, deadline):
        while b"\0" not in self.rest:
            if not select.select([self.back], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser doesn't answer")
            more = os.read(self.back, 1 << 16)
            if not more:
                raise RuntimeError(f"the browser ended: {self.process.wait()}")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        m = json.loads(message)
        method, of = m.get("method"), m.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(of["exceptionDetails"].get("text", "") + of["exceptionDetails"].get("exception", {}).get("description", ""))
        elif method == "Runtime.consoleAPICalled":
            self.errors.append(f"{of['type']}: {[a.get('value') for a in of['args']]}")
        elif method == "Log.entryAdded":
            self.errors.append(of["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(of["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True
        return m

    def call(self, method, **parameters):
        number, deadline = next(self.numbers), time.monotonic() + 60
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            m = self.receive(deadline)
            if m.get("id") == number:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']}")
                return m["result"]

    def open(self, url, width, height, scheme):
        """Loads the page as it is in a window of that size, with prefers-color-scheme `scheme`: light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.errors, self.requests, self.loaded = [], [], False
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 60
        while not self.loaded:
            self.receive(deadline)

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def screenshot(self):
        """The window, as a PNG file's bytes."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
