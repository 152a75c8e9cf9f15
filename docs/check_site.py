"""Checks the built site: every link leads to a page and a place in it; and in a headless Chromium, where one is installed, no page complains and search finds.

python docs/check_site.py site [--screenshots FOLDER]
"""

import argparse
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PAGES = ("index.html", "quickstart.html", "errors.html", "gallery.html", "gallery/gcn.html", "plans.html", "support.html", "reference/ferrax.lax.html")
SEARCH = "search.html?q=checkpoint"


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif value and ((name == "href" and tag in ("a", "link")) or (name == "src" and tag in ("img", "script"))):
                self.links.append(value)


def broken_links(site):
    pages = {p.resolve(): Page(p.read_text()) for p in site.rglob("*.html")}
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                yield f"{path.relative_to(site.resolve())}: {link}"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(site.resolve())}: {link}: no such place"
    print(f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links")


def outside(site):
    """What a page would fetch from elsewhere: a site in a folder has it all."""
    for path in site.rglob("*.html"):
        for address in re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]+)"', path.read_text()):
            yield f"{path.relative_to(site)}: fetches {address}"


def browse(browser, address, *options):
    with tempfile.TemporaryDirectory() as profile:
        always = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=8000")
        command = [browser, *always, f"--user-data-dir={profile}", "--window-size=1280,900", *options, address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    return done.stdout, re.findall(r"CONSOLE[:(].*", done.stderr)


def complaints(browser, site, shots):
    root = site.resolve().as_uri()
    for page in PAGES:
        _, lines = browse(browser, f"{root}/{page}", "--dump-dom")
        yield from (f"{page}: {line}" for line in lines)
    found, lines = browse(browser, f"{root}/{SEARCH}", "--dump-dom")
    yield from (f"{SEARCH}: {line}" for line in lines)
    hits = len(re.findall(r"<li[^>]*class=\"[^\"]*kind-", found)) or found.count('<li><a href="reference/')
    print(f"{len(PAGES)} pages in {pathlib.Path(browser).name}; a search finds {hits} places")
    if not hits:
        yield f"{SEARCH}: finds nothing"
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
        for page in (*PAGES, SEARCH):
            for scheme, number in (("light", 1), ("dark", 0)):
                name = re.sub(r"\W+", "-", page.removesuffix(".html"))
                browse(
                    browser, f"{root}/{page}", f"--screenshot={(shots / f'{name}-{scheme}.png').resolve()}", f"--blink-settings=preferredColorScheme={number}"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    args = parser.parse_args()
    wrong = [*broken_links(args.site), *outside(args.site)]
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser:
        wrong += complaints(browser, args.site, args.screenshots)
    else:
        print("no Chromium: pages were not opened")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
