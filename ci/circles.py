#!/usr/bin/env python3
"""Finds circles of files within a crate: file A uses an item of file B, and B, directly or through others, one of A.

usage: circles.py [--edges] [CRATE-FOLDER...]     Without folders, every crate of the workspace.

A file in a circle cannot be understood, tested or moved without the others. Uses are paths in `use` declarations and
in code that begin with `crate::`, `super::`, `self::` or the name of a child module. A path to a re-exported name leads
to the file that defines it, so that a parent module that only declares and re-exports its children is in no circle.
Test code does not count. --edges prints each use between the files of a circle. Exits with 1 if a crate has one.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def without_comments(text):
    """Replaces comments, strings and character literals by spaces, and keeps line breaks."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|\br(#*)".*?"\1|"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\'\\])\'', re.S
    )
    return token.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def without_tests(text):
    """Removes items under `#[cfg(test)]` and the like: up to the semicolon or the closing brace."""
    while found := re.search(r"#\[cfg\((?:all\()?test\b[^\]]*\]", text):
        at, depth = found.end(), 0
        while at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if depth == 0 and text[at] in ";}" or depth < 0:
                break
            at += 1
        text = text[: found.start()] + text[at + 1 :]
    return text


def use_paths(tree):
    """Yields (path, name) for each leaf of a use tree."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace >= 0:
        prefix, inner, depth, start = tree[:brace], tree[brace + 1 : tree.rindex("}")], 0, 0
        for at, letter in enumerate(inner + ","):
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                if inner[start:at].strip():
                    for path, name in use_paths(inner[start:at]):
                        yield [part for part in prefix.split("::") if part.strip()] + path, name
                start = at + 1
        return
    path, _, alias = tree.partition(" as ")
    parts = [part.strip() for part in path.split("::") if part.strip()]
    if parts and parts[-1] == "self":
        parts.pop()
    yield parts, (alias.strip() or (parts[-1] if parts else ""))


class Crate:
    def __init__(self, folder):
        self.folder = folder
        self.modules = {}  # path of a module -> its file
        self.text = {}  # file -> its code
        self.exports = collections.defaultdict(dict)  # path of a module -> re-exported name -> path
        self.globs = collections.defaultdict(list)
        for root in ("lib.rs", "main.rs"):
            if (folder / "src" / root).is_file() and () not in self.modules:
                self.add((), folder / "src" / root, folder / "src")

    def add(self, module, file, below):
        text = without_tests(without_comments(file.read_text()))
        self.modules[module], self.text[module] = file, text
        for found in re.finditer(r"\bmod (\w+)\s*;", text):
            name = found[1]
            for candidate in (below / f"{name}.rs", below / name / "mod.rs"):
                if candidate.is_file():
                    self.add((*module, name), candidate, below / name)
                    break

    def collect_exports(self):
        for module, text in self.text.items():
            for found in re.finditer(r"\bpub(?:\([^)]*\))?\s+use\s+([^;]+);", text):
                for path, name in use_paths(found[1]):
                    full = self.absolute(module, path)
                    if full is None:
                        continue
                    if name == "*":
                        self.globs[module].append(full[:-1])
                    else:
                        self.exports[module][name] = full

    def absolute(self, module, path):
        """The path from the root of the crate, or None for other crates."""
        if not path:
            return None
        first, rest = path[0], path[1:]
        if first in ("crate", "$crate"):
            return tuple(rest)
        if first == "self":
            return (*module, *rest)
        if first == "super":
            while path and path[0] == "super":
                module, path = module[:-1], path[1:]
            return (*module, *path)
        return (*module, *path) if (*module, first) in self.modules else None

    def target(self, path, seen=()):
        """The module whose file defines the item of a path."""
        module = ()
        for at, part in enumerate(path):
            if (*module, part) in self.modules:
                module = (*module, part)
                continue
            export = self.exports[module].get(part)
            if export and (module, part) not in seen:
                return self.target((*export, *path[at + 1 :]), (*seen, (module, part)))
            if not self.defines(module, part):
                for glob in self.globs[module]:
                    other = self.target(glob)
                    if (module, part) not in seen and self.defines(other, part):
                        return other
            return module
        return module

    def defines(self, module, name):
        return re.search(rf"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!) +{re.escape(name)}\b", self.text[module])

    def uses(self):
        """Yields (user, used, path) for each use of another module of the crate."""
        self.collect_exports()
        for module, text in self.text.items():
            private = text
            paths = []
            for found in re.finditer(r"\buse\s+([^;]+);", text):
                exported = re.search(r"\bpub(?:\([^)]*\))?\s*$", text[: found.start()])
                if not exported:
                    paths += [path for path, _ in use_paths(found[1])]
            private = re.sub(r"\buse\s+[^;]+;", "", text)
            children = [other[-1] for other in self.modules if other[:-1] == module and other]
            starts = "|".join(["crate", "super", "self", *map(re.escape, children)])
            for found in re.finditer(rf"(?<![\w:.$])\$?((?:{starts})(?:\s*::\s*\w+)+)", private):
                paths.append([part.strip() for part in found[1].split("::")])
            for path in paths:
                full = self.absolute(module, path)
                if full is None:
                    continue
                if full and full[-1] == "*":
                    full = full[:-1]
                used = self.target(full)
                if used != module:
                    yield module, used, "::".join(path)


def circles(edges):
    """Strongly connected components of more than one module, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--edges", action="store_true", help="print each use between the files of a circle")
    arguments.add_argument("folders", nargs="*", help="folders of crates")
    given = arguments.parse_args()
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*Cargo.toml"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    folders = given.folders or sorted(str(pathlib.Path(name).parent) for name in names)
    sys.setrecursionlimit(10_000)
    failed = False
    for folder in folders:
        crate = Crate(ROOT / folder)
        edges, reasons = collections.defaultdict(set), collections.defaultdict(set)
        for user, used, path in crate.uses():
            edges[user].add(used)
            edges[used] |= set()
            reasons[user, used].add(path)
        found = circles(edges)
        if not found:
            continue
        failed = True
        print(f"{folder}: {len(found)} circles of {sum(map(len, found))} files")

        def show(module):
            return str(crate.modules[module].relative_to(crate.folder / "src"))

        for circle in found:
            print("  " + ", ".join(map(show, circle)))
            for (user, used), paths in sorted(reasons.items()) if given.edges else ():
                if user in circle and used in circle:
                    print(f"      {show(user)} -> {show(used)}: {', '.join(sorted(paths))}")
    if not failed:
        print("circles: no crate has a circle of files")
    sys.exit(failed)


if __name__ == "__main__":
    main()
