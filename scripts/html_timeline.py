#!/usr/bin/env python3
"""Opens an HTML timeline in headless Chromium and compares what it shows with SQL on its trace.

    scripts/html_timeline.py TRACE.sqlite PAGE.html [--pictures FOLDER]

TRACE is a database of ours, PAGE what `shardscope-trace timeline` made of all of it. Checked: no console message and
no exception; the time to the first picture; zooming with the wheel and the keyboard; the tooltip of an event, of a
folded pixel and of a row; finding. Needs chromedriver and no package of Python's. Prints a line for each check; exits
with 1 at the first that fails."""

import argparse
import base64
import json
import pathlib
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

WIDTH, HEIGHT = 1400, 900


class Browser:
    """A session of WebDriver, the protocol of chromedriver (https://www.w3.org/TR/webdriver2/)."""

    def __init__(self, profile):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(100):
            try:
                self.call("GET", "/status")
                break
            except OSError:
                time.sleep(0.1)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={profile}"]
        wanted = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        self.url += "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def open(self, path):
        self.call("POST", "/url", {"url": path.resolve().as_uri()})
        for _ in range(600):
            ready = self.run("return document.documentElement.dataset.ready")
            if ready is not None:
                return int(ready)
            time.sleep(0.05)
        raise RuntimeError("the page draws nothing: " + self.run("return document.getElementById('kept').textContent"))

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def settle(self):
        """Waits until the next picture is drawn."""
        self.call("POST", "/execute/async", {
            "script": "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));",
            "args": []})

    def _act(self, kind, actions, **more):
        self.call("POST", "/actions", {"actions": [{"type": kind, "id": kind, "actions": actions, **more}]})
        self.settle()

    def point(self, x, y):
        """Moves the mouse over a place of the canvas."""
        top = self.run("return document.getElementById('rows').getBoundingClientRect().top")
        self._act("pointer", [{"type": "pointerMove", "x": round(x), "y": round(top + y)}])

    def click(self):
        self._act("pointer", [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}])

    def drag(self, x, y, by):
        top = self.run("return document.getElementById('rows').getBoundingClientRect().top")
        self._act("pointer", [{"type": "pointerMove", "x": x, "y": round(top + y)}, {"type": "pointerDown", "button": 0},
                              {"type": "pointerMove", "x": x + by, "y": round(top + y), "duration": 50},
                              {"type": "pointerUp", "button": 0}])

    def wheel(self, x, y, notches):
        self._act("wheel", [{"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": -120 * notches}])

    def type(self, text):
        self._act("key", [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")])

    def tip(self):
        """The tooltip: its title, and its fields by label."""
        return self.run("""const tip = document.getElementById("tip");
            if (tip.hidden) return null;
            const [labels, values] = ["dt", "dd"].map(tag => [...tip.querySelectorAll(tag)].map(e => e.textContent));
            return [tip.querySelector("b").textContent, Object.fromEntries(labels.map((l, i) => [l, values[i]]))];""")

    def range(self):
        return self.run("const at = document.getElementById('rows').dataset; return [+at.from, +at.to]")

    def pixels(self):
        return self.run("return document.getElementById('rows').toDataURL()")

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def appearance(self, name):
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-color-scheme", "value": name}]}})
        self.settle()

    def messages(self):
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]


def check(right, what, found=""):
    if not right:
        sys.exit(f"html_timeline: {what} failed: {found}")
    print(f"  {what}" + (f": {found}" if found != "" else ""))


def number(text):
    """The nanoseconds of "3.2 ms (3,200,001 ns)" or "812 ns"."""
    return int(re.search(r"([\d,]+) ns", text).group(1).replace(",", ""))


def host_rows(database):
    """Each thread: the number of its rank, its events and their total time."""
    return database.execute("""
        SELECT r.rank, e.globalTid, COUNT(*), SUM(e.end - e.start)
        FROM (SELECT globalTid, start, end FROM NVTX_EVENTS WHERE end IS NOT NULL
              UNION ALL SELECT globalTid, start, end FROM CUPTI_ACTIVITY_KIND_RUNTIME) e
        JOIN SHARD_THREADS r ON r.globalTid = e.globalTid GROUP BY e.globalTid""").fetchall()


def sums_of_rows(browser, database):
    """Each host thread is a row: its tooltip's sums are those of SQL, whatever was folded."""
    expected = sorted((rank, count, total) for rank, _, count, total in host_rows(database))
    shown, folds = [], 0
    for line in browser.run("""return lines.map((l, i) => [l, i]).filter(([l]) => l.lane && l.n === 0 &&
            l.row.kind === "thread").map(([l, i]) => i)"""):
        scroll, y = browser.run("""const line = lines[arguments[0]]; scroll = line.y - 60; paint();
            return [scroll, line.y - scroll + RULER + 5]""", line)
        browser.point(60, y)
        fields = browser.tip()[1]
        shown.append((int(fields["rank"]), int(fields["events"].replace(",", "")), number(fields["sum of durations"])))
    check(sorted(shown) == expected, "sums of rows as SQL computes them",
          f"{len(shown)} rows, {sum(s[1] for s in shown):,} events" if sorted(shown) == expected
          else f"{sorted(shown)[:3]} and not {expected[:3]}")
    browser.run("scroll = 0; paint()")


def sums_of_pixels(browser):
    """What is drawn adds up: bars and folded pixels of a lane have its busy time in the view."""
    for _ in range(3):
        drawn, there = browser.run("""let drawn = 0, there = 0;
            for (const {lane} of lines.filter(l => l.lane)) {
              foldLane(lane, i => drawn += busySum[i + 1] - busySum[i] - outside(i, view.from, view.to),
                       (x, first, last, busy) => drawn += busy);
              for (let i = lane.first; i < lane.last; ++i) if (end[i] > view.from && start[i] < view.to)
                there += busySum[i + 1] - busySum[i] - outside(i, view.from, view.to);
            }
            return [drawn, there]""")
        check(abs(drawn - there) < 1 + 1e-9 * there, "drawn time is the busy time in the view", f"{there:,.0f} ns")
        browser.wheel(WIDTH // 2, 400, 5)


def tooltip_of_event(browser, database):
    """The longest range of every thousandth is shown with the name, times and rank that SQL finds."""
    seen = 0
    for tid, begin, finish, name, rank in database.execute("""
            SELECT e.globalTid, e.start, e.end, COALESCE(e.text, s.value), r.rank FROM NVTX_EVENTS e
            LEFT JOIN StringIds s ON s.id = e.textId JOIN SHARD_THREADS r ON r.globalTid = e.globalTid
            WHERE e.end IS NOT NULL ORDER BY e.end - e.start DESC LIMIT 4"""):
        place = browser.run("""const [from, to] = arguments;
            for (let i = 0; i < start.length; ++i) if (start[i] === from && end[i] === to && !isFold(i)) {
              goTo(i); paint();
              const line = lines.find(l => l.lane && i >= l.lane.first && i < l.lane.last);
              return [NAMES + (xOf(start[i]) + xOf(end[i])) / 2, line.y - scroll + RULER + line.h / 2];
            }
            return null""", begin, finish)
        check(place is not None, "the longest ranges are not folded")
        browser.point(*place)
        title, fields = browser.tip()
        shown = (title, fields["start"], number(fields["duration"]), int(fields["rank"]))
        expected = (name, f"{begin / 1e6:,.6f} ms", finish - begin, rank)
        check(shown == expected, "tooltip of an event", title if shown == expected else f"{shown} and not {expected}")
        seen += 1
    check(seen > 0, "events with a tooltip", seen)


def tooltip_of_pixel(browser, database):
    """A folded pixel says how many events touch it, and for how long."""
    browser.type("f")
    found = browser.run("""for (const line of lines) {
          if (!line.lane || line.y < scroll || line.y - scroll + RULER > canvas.clientHeight - 20) continue;
          let best = null;
          foldLane(line.lane, () => 0, (x, first, last, busy) => {
            if (x > 20 && x < view.width - 20 && (!best || last - first > best[1] - best[0]) &&
                under(NAMES + x, line.y - scroll + RULER + line.h / 2).item === undefined) best = [first, last, x, busy]; });
          if (best && best[1] - best[0] > 1)
            return [NAMES + best[2], line.y - scroll + RULER + line.h / 2,
                    eventSum[best[1]] - eventSum[best[0]], best[3]];
        }
        return null""")
    if found is None:
        return print("  no pixel of this page has several events")
    browser.point(found[0], found[1])
    title, fields = browser.tip()
    check(title == f"{found[2]:,} events in this pixel" and " of " in fields["busy"], "tooltip of a folded pixel",
          f"{title}, busy {fields['busy']}, mostly {fields['most time']}")


def zooming(browser):
    whole, picture = browser.range(), browser.pixels()
    browser.wheel(WIDTH // 2, 300, 4)
    near = browser.range()
    check(near[1] - near[0] < 0.6 * (whole[1] - whole[0]), "the wheel zooms", f"{whole} to {near}")
    check(browser.pixels() != picture, "zooming changes the picture")
    browser.drag(700, 200, -150)
    moved = browser.range()
    check(moved[0] > near[0] and abs((moved[1] - moved[0]) - (near[1] - near[0])) < 1, "dragging pans")
    browser.type("a")
    check(browser.range()[0] < moved[0], "A pans back")
    browser.type("w")
    check(browser.range()[1] - browser.range()[0] < moved[1] - moved[0], "W zooms in")
    browser.type("f")
    check(browser.range() == whole and browser.pixels() == picture, "F restores the first picture exactly")


def finding(browser, database):
    name, count = database.execute("""
        SELECT COALESCE(e.text, s.value) AS name, COUNT(*) FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId
        WHERE e.end IS NOT NULL GROUP BY name ORDER BY LENGTH(name) DESC, name DESC LIMIT 1""").fetchone()
    with_it = database.execute("""
        SELECT COUNT(*) FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId
        WHERE e.end IS NOT NULL AND INSTR(LOWER(COALESCE(e.text, s.value)), LOWER(?))""",
        (name,)).fetchone()[0]
    browser.run("""const box = document.getElementById("find");
        box.value = arguments[0];
        box.dispatchEvent(new Event("input"));""", name)
    browser.settle()
    text = browser.run("return document.getElementById('found').textContent")
    total = sum(int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", text))
    check(total == with_it >= count, "finding counts the events of a name as SQL does", f"{name}: {text}")
    if text.startswith("0 hits"):
        return
    before = browser.range()
    browser.run("document.getElementById('find').focus()")
    browser.type("\ue007")  # Enter
    kept = browser.run("return document.getElementById('kept').textContent")
    check(kept.startswith(name) and browser.range() != before, "Enter goes to the first hit", kept[:100])
    marked = browser.run("""const [r, g, b] = theme.hit.match(/[\\da-f]{2}/gi).map(h => parseInt(h, 16));
        const {data} = draw.getImageData(0, 0, canvas.width, canvas.height);
        let pixels = 0;
        for (let i = 0; i < data.length; i += 4) pixels += data[i] === r && data[i + 1] === g && data[i + 2] === b;
        return pixels""")
    check(marked > 0, "hits are marked", f"{marked:,} pixels")


def hostile_names(browser, database):
    check(browser.run("return document.images.length + document.querySelectorAll('h9, iframe').length") == 0 and
          "owned" not in browser.run("return document.title"), "no name became markup")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path)
    arguments = parser.parse_args()
    database = sqlite3.connect(f"{arguments.trace.resolve().as_uri()}?mode=ro", uri=True)
    database.text_factory = lambda text: text.decode(errors="replace")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            begun = time.monotonic()
            ready = browser.open(arguments.page)
            print(f"{arguments.page.name}: {arguments.page.stat().st_size:,} bytes, first picture after {ready} ms "
                  f"({time.monotonic() - begun:.2f} s with the browser's work)")
            print("  " + browser.run("return document.getElementById('kept').textContent"))
            if arguments.pictures:
                arguments.pictures.mkdir(parents=True, exist_ok=True)
                pictures(browser, arguments.pictures, arguments.page.stem)
            hostile_names(browser, database)
            zooming(browser)
            sums_of_rows(browser, database)
            sums_of_pixels(browser)
            tooltip_of_event(browser, database)
            tooltip_of_pixel(browser, database)
            finding(browser, database)
            hostile_names(browser, database)
            slowest = browser.run("""show(head.from, head.to); let slowest = 0;
                for (let zooms = 0; zooms < 12; ++zooms) { const begin = performance.now(); paint();
                  slowest = Math.max(slowest, performance.now() - begin); zoom(0.4); } return slowest""")
            print(f"  slowest of 12 pictures at 12 zooms: {slowest:.1f} ms")
            messages = browser.messages()
            check(messages == [], "no message in the console", "; ".join(messages))
        finally:
            browser.close()


def pictures(browser, folder, name):
    for appearance in ("light", "dark"):
        browser.appearance(appearance)
        browser.picture(folder / f"{name}-{appearance}.png")
        browser.run("show(head.from + (head.to - head.from) * 0.4, head.from + (head.to - head.from) * 0.401); "
                    "document.getElementById('about').open = true")
        browser.settle()
        browser.point(WIDTH // 2, 150)
        browser.picture(folder / f"{name}-{appearance}-near.png")
        browser.run("document.getElementById('about').open = false")
        browser.settle()
        browser.type("f")
    browser.appearance("light")


if __name__ == "__main__":
    main()
