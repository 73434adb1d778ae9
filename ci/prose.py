#!/usr/bin/env python3
"""Checks the language of comments and documents.

usage: prose.py [--show] [--limit N] [PATH...]

Without PATH, checks the folders below and prints one row for each. A folder fails if it has more than N phrases
(0.3 by default) that hide what is meant, per 1,000 words of comments and prose. Documents (*.md) also fail if a line
of prose is longer than 120 characters, and decisions if they lack one of their five parts or exceed 500 words.
--show prints each finding with its file and line.

Code, inline code, quoted text, link targets and fenced blocks do not count. The count does not replace a reader: a
sentence without a finding can still be unclear, and a finding can be right. CONTRIBUTING.md explains the habits.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folders and files that must keep the limit. A document in a listed folder belongs to the longest match.
FOLDERS = [
    ".github",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "benches",
    "ci",
    "docs",
    "fronts",
    "fuzz",
    "heaps",
    "kernels",
    "os",
    "plot",
    "regions",
    "tests",
]

PATTERNS = {
    "so many, so long (without a noun)": r"\b[Ss]o (many|much|long|far|often|soon)\b(?! (as|that)\b)",
    "who, whom for a noun": r"(?:^|[.:;,(] |\b(?:of|for|by|to|and|or|wakes|from|with) )"
    r"[Ww]ho(?:ever|m|mever)? (?!is\?)(?![^.?]*\?)",
    "sentence that begins with What": r"(?:^|[.:;] )What [a-z]+ (?![^.?]*\?)",
    "nobody, somebody": r"\b([Nn]obody|[Ss]omebody|[Ee]verybody)\b",
    "beside": r"\b[Bb]eside\b",
    "meanwhile, lately, anew, of late, at hand": r"\b([Mm]eanwhile|[Oo]f late|[Ll]ately|at hand|anew)\b",
}
PROSE = {".md", ".Rd"}
SLASHES = {".rs", ".c", ".h"}
HASHES = {".R", ".py", ".sh", ".f90", ".l", ".toml", ".yml"}
SKIPPED = {"SUMMARY.md", "target", ".git", "cases", "answers"}
LONGEST_LINE = 120
MOST_WORDS = 500
PARTS = {
    "question": r"(?im)^(\*\*|#+ )(the )?question",
    "options": r"(?im)^(\*\*|#+ )(the )?options",
    "choice": r"(?im)^(\*\*|#+ )(the )?choice",
    "number": r"(?im)^(\*\*|#+ )(the )?number",
    "would change our mind": r"(?im)^(\*\*|#+ )(what )?would change our mind",
}


def without_quotes(line):
    line = re.sub(r"`[^`]*`", "`x`", line)
    line = re.sub(r"\]\([^)]*\)", "]", line)
    return re.sub(r"\"[^\"]*\"|“[^”]*”", "“x”", line)


def text_lines(path):
    """Yields the number and the text of each line of prose or comment."""
    fenced = False
    for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
        text = line.strip()
        if path.suffix in PROSE:
            if text.startswith("```"):
                fenced = not fenced
            elif not fenced:
                yield number, without_quotes(text)
        elif path.suffix in SLASHES:
            found = re.match(r"(?://[/!]?|/\*+|\*)\s?(.*)", text) or re.search(r"\s// (.*)", text)
            if found:
                yield number, without_quotes(found.group(1))
        else:
            found = re.match(r"(?:#'?|;+|!)\s?(.*)", text)
            if found:
                yield number, without_quotes(found.group(1))


def long_lines(path):
    """Yields the number and length of each line of prose that is too long. Tables, code and bare links are exempt."""
    fenced = False
    for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
        text = line.strip()
        if text.startswith("```"):
            fenced = not fenced
        elif not fenced and len(line) > LONGEST_LINE and not text.startswith(("|", "<")) and " " in text[:LONGEST_LINE]:
            yield number, len(line)


def decision_faults(path):
    text = path.read_text()
    for part, pattern in PARTS.items():
        if not re.search(pattern, text):
            yield f"the part “{part}” is missing"
    words = len(text.split())
    if words > MOST_WORDS:
        yield f"{words} words; at most {MOST_WORDS}"


def files_of(folder, others):
    """The files below a folder that do not belong to a longer entry of the lists."""
    root = ROOT / folder
    deeper = [ROOT / other for other in others if other != folder and other.startswith(folder + "/")]
    for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
        skipped = SKIPPED.intersection(path.relative_to(ROOT).parts) if path.is_relative_to(ROOT) else False
        belongs = not any(path == other or other in path.parents for other in deeper)
        if path.is_file() and path.suffix in PROSE | SLASHES | HASHES and not skipped and belongs:
            yield path


def check(folder, others, show):
    words, hits, faults = 0, dict.fromkeys(PATTERNS, 0), []
    for path in files_of(folder, others):
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for number, line in text_lines(path):
            words += len(line.split())
            for pattern, expression in PATTERNS.items():
                found = len(re.findall(expression, line))
                hits[pattern] += found
                if found and show:
                    print(f"{name}:{number}: [{pattern}] {line[:140]}")
        if path.suffix == ".md":
            faults += [f"{name}:{number}: {length} characters" for number, length in long_lines(path)]
            if re.fullmatch(r"\d{3}-.*\.md", path.name):
                faults += [f"{name}: {fault}" for fault in decision_faults(path)]
    return words, hits, faults


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--show", action="store_true", help="print each finding")
    arguments.add_argument("--limit", type=float, default=0.3, help="phrases per 1,000 words (0.3)")
    arguments.add_argument("paths", nargs="*", help="check these instead of the lists in this script")
    given = arguments.parse_args()
    listed = [str(pathlib.Path(path).resolve()) for path in given.paths] or FOLDERS
    failed = False
    print(f"{'per 1,000':>9} {'words':>7} {'lines':>6}  folder")
    for folder in listed:
        if not (ROOT / folder).exists():
            continue
        words, hits, faults = check(folder, listed, given.show)
        rate = 1000 * sum(hits.values()) / max(words, 1)
        wrong = faults or rate > given.limit
        failed = failed or bool(wrong)
        name = pathlib.Path(folder)
        name = name.relative_to(ROOT) if name.is_absolute() and name.is_relative_to(ROOT) else name
        note = " FAILS" if wrong else ""
        print(f"{rate:9.2f} {words:7} {len(faults):6}  {name}{note}")
        if faults:
            print("\n".join(f"    {fault}" for fault in faults))
        if any(hits.values()) and wrong and not given.show:
            print("    " + "; ".join(f"{name}: {count}" for name, count in hits.items() if count))
    if failed:
        print(f"prose: more than {given.limit} phrases per 1,000 words, or a fault above; ci/prose.py --show says where")
    sys.exit(failed)


if __name__ == "__main__":
    main()
