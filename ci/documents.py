#!/usr/bin/env python3
"""Runs the examples of the documents, page by page, in a folder of their own, and compares what they print.

usage: documents.py [--show] [PAGE...]

Without PAGE: README.md and the pages of docs/ itself. --show prints what each example printed. If this script runs as
root, the examples run as the user nobody. `make install` puts what `make` built into a folder that stands for
/usr/local. The folder of a page has what tests/documents/ has: the programs and data that the guides name. A page may
have its own of these in a folder there, such as tests/documents/killed/ for docs/killed.md: less work for a program
that is slow there, because a part of its memory is far.
CONTRIBUTING.md says how an example is marked.

Exits with 1 if an example fails or prints something else, if a fence has no language, or if a block of another kind
holds commands. The end counts the examples that were run, only parsed, and not run, with their reasons.
"""
import argparse, concurrent.futures, functools, json, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
SECONDS = 600  # for one page
RUN = {"sh", "console", "r", "python", "c", "lisp"}
PARSED = {"json", "yaml"}
# Rust is compiled by `cargo test --doc`. The others are no commands.
OTHER = {"rust", "text", "cmake", "lua", "dockerfile"}
COMMAND = re.compile(r"^(\$ |largesse [a-z]+ |sudo |make( |$)|mpirun |srun |sbatch |docker |R CMD |Rscript )")
NUMBER = re.compile(
    r"(?<![\w.])(?:0x[0-9a-f]+|[-+]?\d(?:[\d,.]*\d)?(?:e[-+]?\d+)?)"
    r"(?:\s?(?:[KMGT]iB|bytes?|[nµum]?s|%|[MG]Hz|GB/s)(?!\w))?|–(?= |$)"
)


class Block:
    """A fenced block of a page, with the marks of the comment above it."""

    def __init__(self, page, line, language, marks, lines):
        self.page, self.line, self.language, self.marks, self.lines = page, line, language, marks, lines
        self.text = "\n".join(lines) + "\n"

    def __str__(self):
        return f"{self.page}:{self.line}"

    def needs(self):
        """Returns what must be there: the programs and packages of its mark, and the packages that it loads."""
        loads = {"r": r"(?m)^library\((\w+)\)", "python": r"(?m)^(?:import|from) (\w+)"}.get(self.language)
        prefix = {"r": "R:", "python": "python:"}.get(self.language)
        return self.marks.get("needs", "").split() + [prefix + name for name in re.findall(loads or "^$(x)", self.text)]

    def steps(self):
        """Returns pairs of a script and the output that the page shows for it; None is not compared."""
        if self.language == "lisp":
            answers = [line.split("; => ")[1] for line in self.lines if "; => " in line]
            return [(script("lisp", self.text), [line for answer in answers for line in ("…", answer)] + ["…"])]
        if self.language != "console":
            return [(script(self.language, self.text), None)]
        steps = []
        for line in self.lines:
            if line.startswith("$ "):
                steps.append([line[2:] + "\n", []])
            elif steps and line.startswith("> "):
                steps[-1][0] += line[2:] + "\n"
            elif steps:
                steps[-1][1].append(line)
        return [(code, expected or None) for code, expected in steps]


def script(language, text):
    """Returns a shell script that runs a block."""
    named = re.match(r"/\* (cc (\S+) .*) \*/\n", text)
    start = {
        "sh": None,
        "r": "cat > example.R <<'END OF FILE'\n{}END OF FILE\nRscript example.R",
        "python": "cat > example.py <<'END OF FILE'\n{}END OF FILE\npython3 example.py",
        "lisp": "cat > example.l <<'END OF FILE'\n(dolist (form '(\n{})) (print (largesse:eval-global form)))\nEND OF FILE\n"
        "largesse lisp example.l",
        # The first line of an example in C is a comment with the commands that compile and run it.
        "c": f"cat > {named.group(2)} <<'END OF FILE'\n{{}}END OF FILE\n{named.group(1)}" if named else "false: no command",
    }[language]
    return start.format(text) if start else text


def blocks_of(page, text):
    """Yields the blocks of a page. A comment `<!-- needs: R; status: 2 -->` above a fence holds its marks.

    >>> [(b.line, b.language, b.marks, b.text) for b in blocks_of("p", "<!-- root; status: 2 -->\\n```sh\\nls\\n```\\n")]
    [(2, 'sh', {'root': '', 'status': '2'}, 'ls\\n')]
    """
    lines, marks, at = text.split("\n"), {}, 0
    while at < len(lines):
        fence = re.match(r"( *)```(.*)", lines[at])
        comment = re.fullmatch(r" *<!-- (.*) -->", lines[at])
        if comment:
            pairs = [mark.partition(": ") for mark in comment.group(1).split("; ")]
            marks = {key: value for key, _, value in pairs}
        elif fence:
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == "```")
            inside = [line[len(fence.group(1)):] for line in lines[at + 1:end]]
            yield Block(page, at + 1, fence.group(2).strip(), marks, inside)
            marks, at = {}, end
        elif lines[at].strip():
            marks = {}
        at += 1


def normal(line, exact):
    """Replaces numbers with their units, rules of tables and spaces, which differ between machines and runs.

    >>> normal(" 0x7f83cd801440  30.5 MiB  thp  100 %   –", False)
    '# # thp # #'
    >>> normal("x86-64, Linux 6.18.44, ±2.0%, 1,024 bytes", False)
    'x86-#, Linux #, ±#, #'
    """
    line = re.sub(r"[▁▂▃▄▅▆▇█][▁▂▃▄▅▆▇█ ]*", "▁ ", line)  # a curve
    line = re.sub(r"[─-]{3,}", "---", line)
    line = line if exact else NUMBER.sub("#", line)
    return re.sub(r"\s+", " ", line).strip()


def agrees(expected, printed, exact):
    """Compares lines. `…` in an expected line stands for any text, and a line of its own for any number of lines.

    >>> agrees(["size 4 MiB", "…", "done …"], ["size 12 KiB", "a", "b", "done in 3 s"], False)
    True
    >>> agrees(["size 4 MiB"], ["size 4 MiB", "more"], False), agrees(["size"], ["sizes"], False)
    (False, False)
    >>> agrees(["status 2"], ["status 3"], True)
    False
    """
    pattern = ""
    for line in expected:
        line = normal(line, exact)
        pattern += "(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n"
    text = "".join(normal(line, exact) + "\n" for line in printed)
    return re.fullmatch(pattern, text) is not None


def faults_of(block):
    """Yields what is wrong with a block before it is run."""
    unknown = set(block.marks) - {"not run", "needs", "status", "file", "exact", "root"}
    if unknown:
        yield f"no such mark: {', '.join(unknown)}"
    if not block.language:
        yield "the fence has no language: sh, console, text …"
    elif block.language not in RUN | PARSED | OTHER:
        yield f"no such language here: {block.language}"
    if block.language in {"text", ""} and any(COMMAND.match(line) for line in block.lines):
        yield "commands belong into a block of sh or console"
    try:
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "yaml" and yaml():
            list(yaml().safe_load_all(block.text))
    except ValueError as error:
        yield f"json: {error}"
    except Exception as error:
        yield f"yaml: {error}"
    if block.language in {"sh", "console"}:
        for code, _ in block.steps():
            read = subprocess.run(["bash", "-n"], input=code, text=True, capture_output=True)
            if read.returncode or read.stderr:
                yield read.stderr.strip()


def yaml():
    try:
        import yaml
        return yaml
    except ImportError:
        return None


def kill_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Stage:
    """A folder with an installation, and a folder for each page."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="largesse-documents-", dir="/var/tmp"))
        self.root.chmod(0o755)
        self.running = set()  # the processes that lead the groups of examples
        self.local = self.root / "local"
        install = ["make", "--no-print-directory", "--silent", "install", f"PREFIX={self.local}"]
        installed = subprocess.run(install, cwd=ROOT, stdout=subprocess.DEVNULL)
        if installed.returncode:
            sys.exit("an installation is needed: type `make`")
        fixtures = ROOT / "tests/documents"
        shutil.copytree(fixtures, self.root / "data", ignore=lambda _, names: {n for n in names if (fixtures / n).is_dir()})
        shutil.copytree(ROOT / "docs/examples", self.root / "data/docs/examples")
        for source in fixtures.glob("*.c"):
            subprocess.run(["cc", "-O2", "-o", self.root / "data" / source.stem, source], check=True)
        self.library = TARGET / "r/library"  # where ci/r.sh installs the R package
        if self.library.exists():
            shutil.copytree(self.library, self.root / "library")
        if (ROOT / "fronts/python/largesse").exists():
            shutil.copytree(ROOT / "fronts/python/largesse", self.root / "python/largesse")
        # Examples of an administrator run as root, where sudo may be missing.
        (self.root / "root").mkdir()
        (self.root / "root/sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (self.root / "root/sudo").chmod(0o755)
        if "LARGESSE_DOCKER" in os.environ:  # ci/containers.sh has one
            shutil.copy(os.environ["LARGESSE_DOCKER"], self.local / "bin/docker")
        subprocess.run(["chmod", "-R", "a+rX", self.root], check=True)
        self.variables = {
            "PATH": f"{self.local}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "PKG_CONFIG_PATH": f"{self.local}/lib/pkgconfig",
            "MANPATH": f"{self.local}/share/man:",
            "R_LIBS": str(self.root / "library"),
            "PYTHONPATH": str(self.root / "python"),
            "USER": "ann",
        }

    def end(self, number):
        """Ends the examples that run, for a signal, and leaves nothing behind."""
        for child in list(self.running):
            kill_group(child)
        shutil.rmtree(self.root, ignore_errors=True)
        os._exit(128 + number)

    def places(self, folder):
        """Returns the folders that stand for those that the guides name."""
        return {"/usr/local/": f"{self.local}/", "/scratch/ann": f"{folder}/scratch"}

    def folder_of(self, page):
        folder = self.root / page.replace("/", "-")
        shutil.copytree(self.root / "data", folder)
        own = ROOT / "tests/documents" / pathlib.Path(page).stem
        if own.is_dir():
            shutil.copytree(own, folder, dirs_exist_ok=True)
        (folder / "scratch").mkdir()
        subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
        return folder

    @functools.cache
    def has(self, need):
        """Returns whether a program is in PATH, a package is there (`R:largesse`, `python:numpy`), or an example works."""
        kind, _, name = need.rpartition(":")
        test = {
            "": f"command -v {name}",
            "R": f"Rscript -e 'library({name})'",
            "python": f"python3 -c 'import {name}'",
            "plug-in": f"ls {self.local}/lib/largesse/liblargesse-{name}.so",
            "example": f"{ROOT}/docs/examples/{name} 64 true",
        }
        test |= {"docker": "docker info"} if need == "docker" else {}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        return subprocess.run(["bash", "-c", test.get(need, test[kind])], env=self.variables, **quiet).returncode == 0


def run(stage, folder, blocks, prefix):
    """Runs blocks in one shell. Returns for each step its exit status and output; nothing for those never reached."""
    notes = pathlib.Path(tempfile.mkdtemp(dir=stage.root))
    notes.chmod(0o777)
    driver = "trap 'ended=$?' ERR\n"
    steps = [(block, number) for block in blocks for number in range(len(block.steps()))]
    for at, (block, number) in enumerate(steps):
        code = block.steps()[number][0]
        for documented, real in stage.places(folder).items():
            # After a colon it is the folder of a container, but in `file:/scratch/ann` it is not.
            code = re.sub(f"(?<!:){documented}|(?<=file:){documented}", real, code)
        (notes / f"{at}.sh").write_text(code)
        driver += f"ended=0; . {notes}/{at}.sh > {notes}/{at}.out 2>&1; echo $ended > {notes}/{at}.status\n"
    environment = stage.variables | {"HOME": str(folder)}
    if not prefix:
        environment["PATH"] = f"{stage.root}/root:{environment['PATH']}"
    child = subprocess.Popen([*prefix, "bash", "-c", driver], cwd=folder, env=environment,
                             stdin=subprocess.DEVNULL, start_new_session=True)
    stage.running.add(child)
    try:
        child.wait(SECONDS)
    except subprocess.TimeoutExpired:
        pass
    kill_group(child)  # also programs that the page left in the background
    child.wait()
    stage.running.remove(child)
    answers = []
    for at, (block, number) in enumerate(steps):
        status, out = notes / f"{at}.status", notes / f"{at}.out"
        printed = out.read_text(errors="replace") if out.exists() else ""
        for documented, real in stage.places(folder).items():
            printed = printed.replace(real, documented)
        answers.append((block, number, int(status.read_text()) if status.exists() else None, printed))
    return answers


def wrong(block, number, status, printed):
    """Returns what is wrong with the answer of a step, or nothing."""
    code, expected = block.steps()[number]
    shown = f"\n    $ {code.strip()}\n" + "".join(f"    | {line}\n" for line in printed.split("\n")[-60:])
    if status is None:
        return f"did not end, or was not reached{shown}"
    last = number == len(block.steps()) - 1
    wanted = block.marks.get("status", "0") if last else "0"
    if wanted != "any" and status != int(wanted):
        return f"exit status {status} instead of {wanted}{shown}"
    if expected is not None and not agrees(expected, printed.rstrip("\n").split("\n"), "exact" in block.marks):
        return "prints something else than" + "".join(f"\n    : {line}" for line in expected) + shown
    return None


class Findings:
    """What the examples of a page gave: faults, counts by kind, reasons of those left out, and what they printed."""

    def __init__(self):
        self.faults, self.left_out, self.shown, self.seconds = [], [], "", 0.0
        self.counts = {"run": 0, "parsed": 0, "not run": 0}

    def __str__(self):
        numbers = ", ".join(f"{count} {kind}" for kind, count in self.counts.items() if count) or "nothing run"
        return numbers + (f", {len(self.faults)} WRONG" if self.faults else "") + f" ({self.seconds:.0f} s)"


def check(stage, page):
    """Runs the examples of a page."""
    found, start = Findings(), time.monotonic()
    blocks = list(blocks_of(page, (ROOT / page).read_text()))
    found.faults = [(block, fault) for block in blocks for fault in faults_of(block)]
    folder = stage.folder_of(page)
    ready = {"user": [], "root": []}
    for block in blocks:
        if "file" in block.marks:
            (folder / block.marks["file"]).write_text(block.text)
        missing = [need for need in block.needs() if not stage.has(need)]
        reason = block.marks.get("not run") or (f"{' '.join(missing)} is not here" if missing else "")
        if "root" in block.marks and os.geteuid() != 0:
            reason = reason or "only root can run it"
        if "file" in block.marks or block.language in PARSED:
            parsed = block.language != "yaml" or yaml()
            found.counts["parsed" if parsed else "not run"] += 1
            found.left_out += [] if parsed else [f"{block}: python3-yaml is not here"]
        elif block.language in RUN and not reason:
            ready["root" if "root" in block.marks else "user"].append(block)
            found.counts["run"] += 1
        elif block.language in RUN:
            found.counts["not run"] += 1
            found.left_out.append(f"{block}: {reason}")
    prefix = NOBODY if os.geteuid() == 0 else []
    for blocks_here, as_user in ((ready["user"], prefix), (ready["root"], [])):
        for block, number, status, printed in run(stage, folder, blocks_here, as_user) if blocks_here else []:
            fault = wrong(block, number, status, printed)
            if fault:
                found.faults.append((block, fault))
            found.shown += f"{block}: {block.steps()[number][0].strip()}\n{printed}"
    found.seconds = time.monotonic() - start
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--show", action="store_true", help="print what each example printed")
    arguments.add_argument("pages", nargs="*", help="pages; default: README.md and docs/*.md")
    given = arguments.parse_args()
    pages = [str(pathlib.Path(page).resolve().relative_to(ROOT)) for page in given.pages]
    pages = pages or ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]
    stage = Stage()
    everything = Findings()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stage.end(number))
    try:
        # Examples wait for most of their time, so two pages share a processor.
        with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
            for page, found in zip(pages, pool.map(lambda page: check(stage, page), pages)):
                if given.show:
                    print(found.shown, end="")
                for block, fault in found.faults:
                    print(f"{block}: {fault}")
                if any(found.counts.values()) or found.faults:
                    print(f"{page}: {found}", flush=True)
                everything.faults += found.faults
                everything.left_out += found.left_out
                for kind, count in found.counts.items():
                    everything.counts[kind] += count
    finally:
        shutil.rmtree(stage.root, ignore_errors=True)
    for line in everything.left_out:
        print(f"not run: {line}")
    counts = ", ".join(f"{count} {kind}" for kind, count in everything.counts.items())
    print(f"examples: {counts}, {len(everything.faults)} wrong")
    sys.exit(bool(everything.faults))


if __name__ == "__main__":
    main()
