#!/usr/bin/env python3
"""Reads `cargo metadata` and holds every crate's licence and source against deny.toml."""
import json
import re
import sys


def allowed(expression, names):
    """Whether a licence expression can be satisfied with these names ("/" is an old OR)."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    python = []
    for place, token in enumerate(tokens):
        if token in "()":
            python.append(token)
        elif token in ("OR", "AND"):
            python.append(token.lower())
        elif token == "WITH" or (place and tokens[place - 1] == "WITH"):
            continue
        else:
            exception = " WITH " + tokens[place + 2] if tokens[place + 1:place + 2] == ["WITH"] else ""
            python.append(str(token + exception in names))
    return eval(" ".join(python))  # only True, False, and, or, and parentheses are left


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    names = set(re.findall(r'"([^"]+)"', re.search(r"(?ms)^allow = \[(.*?)^\]", text).group(1)))
    packages = json.load(sys.stdin)["packages"]
    wrong = []
    for package in packages:
        licence, source = package["license"], package["source"]
        if not licence or not allowed(licence, names):
            wrong.append(f"{package['name']} {package['version']}: licence {licence}")
        if source and source != "registry+https://github.com/rust-lang/crates.io-index":
            wrong.append(f"{package['name']} {package['version']}: from {source}")
    print("\n".join(wrong) or f"deny: the licences of {len(packages)} crates are fine")
    sys.exit(bool(wrong))


main()
