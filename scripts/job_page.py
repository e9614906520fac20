#!/usr/bin/env python3
"""Opens pages of shardscope-trace in headless Chromium, as wide as a desktop's window and as a phone.

    scripts/job_page.py PAGE.html ... [--pictures FOLDER]

Checked at 1280 and 390 pixels, light and dark: no message in the console, nothing wider than the window, every lane
drawn, no script and no markup from names. Needs chromedriver and no package of Python's. Prints a line for each check;
exits with 1 at the first that fails."""

import argparse
import base64
import pathlib
import sys
import tempfile

from html_timeline import Browser

WIDTHS = (1280, 390)


def check(right, what, found=""):
    if not right:
        sys.exit(f"job_page: {what} failed: {found}")
    print(f"  {what}" + (f": {found}" if found != "" else ""))


def devtools(browser, command, **parameters):
    return browser.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})


def show(browser, page, width):
    devtools(browser, "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
             mobile=width < 600)
    browser.call("POST", "/url", {"url": page.resolve().as_uri()})
    browser.settle()


def picture(browser, path, width):
    height = browser.run("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, 12000), "scale": 1}
    shot = devtools(browser, "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    path.write_bytes(base64.b64decode(shot["data"]))


def look(browser, page, width, pictures):
    show(browser, page, width)
    wide, inner = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    check(wide <= inner <= width, f"nothing is wider than a window of {width}", f"{wide} in {inner}")
    outside = browser.run("""return [...document.querySelectorAll("body *")].filter(e => {
        const box = e.getBoundingClientRect();
        return box.width > 0 && box.right > window.innerWidth + 1 && !e.closest(".scroll, pre, details"); })
        .map(e => e.tagName + "." + e.className.baseVal + e.className).slice(0, 5)""")
    check(outside == [], f"nothing stands out at {width}", "; ".join(outside))
    lanes = browser.run("""return [...document.querySelectorAll("svg.lane")]
        .map(e => e.getBoundingClientRect()).map(b => [b.width, b.height])""")
    check(lanes != [] and all(w > width / 3 and h > 4 for w, h in lanes), f"lanes have room at {width}", len(lanes))
    axis = browser.run("""return [...document.querySelectorAll(".axis span")].filter(e => e.offsetParent)
        .map(e => e.getBoundingClientRect()).map(b => [b.left, b.right])""")
    check(all(a[1] < b[0] for a, b in zip(axis, axis[1:])), f"marks of the axis are apart at {width}", len(axis))
    if pictures:
        for appearance in ("light", "dark"):
            browser.appearance(appearance)
            picture(browser, pictures / f"{page.stem}-{width}-{appearance}.png", width)
        browser.appearance("light")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    parser.add_argument("--pictures", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            for page in arguments.pages:
                print(f"{page.name}: {page.stat().st_size:,} bytes")
                for width in WIDTHS:
                    look(browser, page, width, arguments.pictures)
                check(browser.run("return document.scripts.length + document.images.length + "
                                  "document.querySelectorAll('iframe, object').length") == 0 and
                      "owned" not in browser.run("return document.title"), "no script, no name became markup")
            messages = browser.messages()
            check(messages == [], "no message in the console", "; ".join(messages))
        finally:
            browser.close()


if __name__ == "__main__":
    main()
