#!/usr/bin/env python3
"""Writes the lists of design pages, decisions and results in docs/SUMMARY.md, from the titles of the pages.

usage: summary.py

The guides are listed by hand, above these lists. Exits with 1 if another page of docs/ is not listed.
"""
import pathlib, re, sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
SUMMARY = DOCS / "SUMMARY.md"
LISTS = {"Design": "design", "Decisions": "decisions", "Results": "results"}


def entry(page):
    title = page.read_text().split("\n", 1)[0].lstrip("# ").strip()
    return f"- [{re.sub(r'[][]', '', title)}]({page.relative_to(DOCS)})"


by_hand = SUMMARY.read_text().split(f"# {next(iter(LISTS))}\n")[0]
lists = [f"# {title}\n\n" + "\n".join(map(entry, sorted((DOCS / folder).glob("*.md")))) + "\n" for title, folder in LISTS.items()]
text = by_hand + "\n".join(lists)
if text != SUMMARY.read_text():
    SUMMARY.write_text(text)
    print("docs/SUMMARY.md was updated: commit it")
missing = [str(page) for page in sorted(DOCS.glob("*.md")) if page != SUMMARY and f"({page.name})" not in by_hand]
if missing:
    sys.exit(f"docs/SUMMARY.md does not list {', '.join(missing)}: add them to it")
