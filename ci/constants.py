#!/usr/bin/env python3
"""Compares the tables of docs/design/constants.md with the constants of the pager, its policies and its stores.

Every constant of regions/{policy,pager,store} stands in one of the two tables, with the value that the source has:
those that are tuned, and those that are given by an interface or a structure. Exits with 1 if one is missing, gone or
different. `--write` corrects values; a new constant has to be described by hand.

`--measure` halves and doubles each tuned number of the policies and the pager, one at a time, runs the test
`sensitivity`, and writes the largest change of the time that a program waits to the table. For that it makes a copy of
the sources in target/constants, in which each constant is a function that an environment variable scales: the library
itself has no such switch. `--measure-real` then does the same for those without an effect there, with two programs
on `memory:` and on a file in /var/tmp. `--measure-real` needs an idle machine for an hour, writes its numbers in
parentheses, and passes over rows that have some: it goes on where it was interrupted.
"""
import contextlib
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/design/constants.md"
CRATES = ["policy", "pager", "store"]
CONSTANT = re.compile(r"(?m)^[ \t]*(?:pub(?:\([a-z]+\))? )?const ([A-Z][A-Z_0-9]*): ([^=]+?) =\s*([^;]+);")
ROW = re.compile(r"(?m)^\| `([a-z_/]+\.rs)` `([A-Z_0-9]+)` \| (.*) \|$")
NUMBER = re.compile(r"(?:usize|u16|u32|u64|f64)|\[(?:usize|u32|f64); \d+\]")


def sources(root):
    """Yields the sources that are not tests, with their texts before their own tests."""
    for crate in CRATES:
        folder = root / "regions" / crate / "src"
        for path in sorted(folder.rglob("*.rs")):
            if path.name != "tests.rs" and "tests" not in path.parent.parts[len(folder.parts):]:
                text = path.read_text().split("#[cfg(test)]\nmod ")[0]
                yield path, f"{crate}/{path.relative_to(folder)}", text


def constants():
    """Returns type and value of each constant, by file and name. Of two of one name in a file, both values."""
    found = {}
    for _, name, text in sources(ROOT):
        for constant, kind, value in CONSTANT.findall(text):
            value = " ".join(value.split()).replace("|", "\\|")
            value = value if len(value) <= 40 else "…"
            before = found.get((name, constant))
            found[name, constant] = (kind, f"{before[1]}, {value}" if before else value)
    return found


def check(write):
    page, found, wrong = PAGE.read_text(), constants(), []
    listed = {}
    for file, name, rest in ROW.findall(page):
        value, _, rest = rest.partition(" | ")
        listed[file, name] = value
        want = f"`{found[file, name][1]}`" if (file, name) in found else None
        if want is None:
            wrong.append(f"{file}: {name} is listed and not in the source")
        elif value != want and write:
            page = page.replace(f"| `{file}` `{name}` | {value} | ", f"| `{file}` `{name}` | {want} | ")
        elif value != want:
            wrong.append(f"{file}: {name} is {want}, and listed as {value}")
    wrong += [f"{file}: {name} is not listed" for file, name in found if (file, name) not in listed]
    if write:
        PAGE.write_text(page)
    for line in wrong:
        print(line)
    if wrong:
        print("constants: correct docs/design/constants.md (`ci/constants.py --write` corrects values)")
    else:
        print(f"constants: all {len(found)} are listed as they are")
    return bool(wrong)


KNOB = """
use std::sync::OnceLock;
fn factor(key: &str) -> f64 {
    static KNOB: OnceLock<Option<(String, f64)>> = OnceLock::new();
    let knob = KNOB.get_or_init(|| {
        let (key, factor) = (std::env::var("KNOB").ok()?, std::env::var("FACTOR").ok()?);
        Some((key, factor.parse().ok()?))
    });
    knob.as_ref().map_or(1.0, |(scaled, factor)| if scaled == key { *factor } else { 1.0 })
}
pub(crate) trait Scaled { fn scaled(self, key: &str) -> Self; }
impl Scaled for f64 { fn scaled(self, key: &str) -> f64 { self * factor(key) } }
macro_rules! whole { ($($t:ty),*) => { $(impl Scaled for $t {
    fn scaled(self, key: &str) -> $t { ((self as f64 * factor(key)) as $t).max(1) }
})* } }
whole!(usize, u16, u32, u64);
impl<T: Scaled + Copy, const N: usize> Scaled for [T; N] {
    fn scaled(self, key: &str) -> [T; N] { self.map(|it| it.scaled(key)) }
}
"""
USE = re.compile(r"(?m)^[ \t]*(?:pub(?:\([a-z]+\))? )?use [^;]*;")


def scalable(tree, chosen):
    """Makes functions of the chosen constants in a copy of the sources. Returns those for which that is possible."""
    texts = {path: (name, path.read_text()) for path, name, _ in sources(tree)}
    values = [value for _, text in texts.values() for _, _, value in CONSTANT.findall(text)]
    # Functions that constants call stay `const`, so that constants in these functions cannot be scaled.
    called = set(re.findall(r"\b([a-z_]+)\(", " ".join(values)))
    made = []
    for file, constant in chosen:
        home = next(path for path, (name, _) in texts.items() if name == file)
        crate = file.split("/")[0]
        word = re.compile(rf"\b{constant}\b(?!\()")
        text = texts[home][1]
        declaration = re.search(rf"(?m)^([ \t]*(?:pub(?:\([a-z]+\))? )?)const {constant}: ([^=]+?) =\s*([^;]+);", text)
        if declaration[1].strip() == "pub":
            continue # other crates use it
        is_pub = "pub" in declaration[1]
        uses = [
            path for path, (name, text) in texts.items()
            if path == home or is_pub and name.startswith(crate) and (
                any(word.search(it) for it in USE.findall(text)) or re.search(rf"::{constant}\b", text))
        ]
        # The length of an array is a constant, and so is what other constants are made of.
        length = rf"\[[^\]\n;]*; [^\]\n]*\b{constant}\b[^\]\n]*\]"
        if any(re.search(length, texts[path][1]) for path in uses) or any(
            word.search(value) for path in uses for other, _, value in CONSTANT.findall(texts[path][1])
            if not any(other == name for _, name in chosen)
        ) or any(re.search(rf"const fn {of}\b[^{{]*{{[^}}]*\b{constant}\b", text) for of in called):
            continue
        for path in uses:
            name, text = texts[path]
            parts, end = [], 0
            for kept in list(USE.finditer(text)):
                parts += [word.sub(f"{constant}()", text[end:kept.start()]), kept[0]]
                end = kept.end()
            text = "".join([*parts, word.sub(f"{constant}()", text[end:])])
            if path == home:
                text = re.sub(
                    rf"(?m)^([ \t]*(?:pub(?:\([a-z]+\))? )?)const {constant}\(\): ([^=]+?) =\s*([^;]+);",
                    rf'\1fn {constant}() -> \2 {{ crate::knob::Scaled::scaled(\3, "{file}:{constant}") }}', text)
            texts[path] = (name, text)
        made.append((file, constant))
    for path, (_, text) in texts.items():
        path.write_text(re.sub(r"const fn (\w+)", lambda it: it[0] if it[1] in called else f"fn {it[1]}", text))
    for crate in {file.split("/")[0] for file, _ in made}:
        folder = tree / "regions" / crate / "src"
        (folder / "knob.rs").write_text(KNOB)
        (folder / "lib.rs").write_text((folder / "lib.rs").read_text() + "\nmod knob;\n")
    return made


def scaled_copy(chosen):
    """Copies the sources to target/constants/tree and makes functions of the chosen constants there. Returns the
    folder, the environment in which cargo builds it, and the constants for which that was possible."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "constants"
    tree = target / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target / "build"), "CARGO_PROFILE_DEV_OPT_LEVEL": "2",
                   "RUSTFLAGS": "-Awarnings"}
    return tree, environment, scalable(tree, chosen)


def tuned_numbers():
    """Yields the tuned constants of the policies and the pager that are numbers, with their measured columns."""
    found = constants()
    for file, name, rest in ROW.findall(PAGE.read_text().partition("\n## Given")[0]):
        if not file.startswith("store") and NUMBER.fullmatch(found[file, name][0].strip()):
            yield file, name, [cell.strip() for cell in rest.split("|")[3:]]


def build(words, tree, environment):
    built = subprocess.run(["cargo", *words], cwd=tree, env=environment, capture_output=True, text=True)
    if built.returncode:
        sys.exit(f"constants: the scaled copy does not compile:\n{built.stderr}")
    return built.stderr


def write_row(file, constant, cells):
    print(file, constant, *cells, flush=True)
    row = re.compile(rf"(?m)^(\| `{file}` `{constant}` \| [^|]* \| [^|]* \| [^|]* \|).*$")
    PAGE.write_text(row.sub(lambda it: f"{it[1]} {' | '.join(cells)} |", PAGE.read_text()))


def measure():
    tree, environment, made = scaled_copy([(file, name) for file, name, _ in tuned_numbers()])
    said = build(["test", "-p", "largesse-pager", "--test", "sensitivity", "--no-run"], tree, environment)
    program = pathlib.Path(re.search(r"Executable.*\((.*)\)", said)[1])
    program = program if program.is_absolute() else tree / program

    def waits(**knob):
        ran = subprocess.run([program], env={**os.environ, **knob}, capture_output=True, text=True)
        if ran.returncode:
            return None # the value is outside of what the code permits
        lines = [line.split(",") for line in ran.stdout.splitlines()]
        return {(store, pattern): int(waited) for store, pattern, waited, _, _ in lines}

    usual, best = waits(), (1, "none")
    for file, constant in made:
        both = [waits(KNOB=f"{file}:{constant}", FACTOR=factor) for factor in ["0.5", "2"]]
        write_row(file, constant, [change(usual, now, store) for store in ["memory", "file"] for now in both])
        for now, how in zip(both, ["halved", "doubled"]):
            for store in ["memory", "file"] if now else []:
                ratios = [now[key] / usual[key] for key in usual if key[0] == store]
                best = min(best, (statistics.geometric_mean(ratios), f"{constant} {how}, {store}"))
    print(f"In the geometric mean of the patterns, a program waits {best[0]:.3f} times as long with {best[1]}: the least")


def change(usual, now, store):
    """Formats the largest change of the waiting time among all patterns of accesses."""
    if now is None:
        return "refused"
    changes = [now[key] / usual[key] - 1 for key in usual if key[0] == store]
    largest = max(changes, key=abs)
    return "0" if abs(largest) < 0.0005 else f"{largest * 100:+.1f} %"


# Programs of benches/programs/c/far with their share of the data and their local memory, about half of it.
REAL = {"sort": ("0.1", "24M"), "gather": ("0.25", "30M")}
# Runs under each value, when the first one shows a change of more than this share.
ROUNDS, LOOKED_AT_AGAIN = 3, 0.1


def measure_real():
    """Measures the constants without effect in the model with programs, on `memory:` and a file in /var/tmp."""
    chosen = [(file, name) for file, name, cells in tuned_numbers() if not set(cells) - {"", "0"}]
    tree, environment, made = scaled_copy(chosen)
    build(["build", "--profile", "preload", "-p", "largesse-preload"], tree, environment)
    build(["build", "--release", "-p", "largesse-cli"], tree, environment)
    target = pathlib.Path(environment["CARGO_TARGET_DIR"])
    stores = {"memory": "memory:", "file": f"file:/var/tmp/largesse-constants-{os.getpid()}"}

    def seconds(store, program, **knob):
        scale, local = REAL[program]
        words = [target / "release/largesse", "run", "--local", local, "--far", stores[store], "--", "sh",
                 ROOT / "benches/programs/c/far/run.sh", program, "--scale", scale]
        library = {"LARGESSE_LIBRARY": str(target / "preload/liblargesse.so")}
        environ = {**os.environ, **library, **knob}
        with contextlib.suppress(subprocess.TimeoutExpired):
            ran = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60)
            if took := re.search(r'"seconds":([0-9.e-]+)', ran.stdout):
                return float(took[1])
        return math.inf # the value is outside of what the code permits

    usual_times = {(store, program): [] for store in stores for program in REAL}
    for file, constant in made:
        knobs = [{}, *({"KNOB": f"{file}:{constant}", "FACTOR": factor} for factor in ["0.5", "2"])]
        cells = []
        for store in stores:
            largest = [0.0, 0.0]
            for program in REAL:
                took, both = [], [1, 1]
                while len(took) < ROUNDS and max(map(abs, both)) > LOOKED_AT_AGAIN:
                    took.append([seconds(store, program, **knob) for knob in knobs])
                    usual, half, twice = (statistics.median(times) for times in zip(*took))
                    both = [half / usual - 1, twice / usual - 1]
                usual_times[store, program].append(usual)
                largest = [max(pair, key=abs) for pair in zip(largest, both)]
            cells += ["(refused)" if it == math.inf else f"({it * 100:+.0f} %)" for it in largest]
        write_row(file, constant, cells)
    for (store, program), times in usual_times.items():
        apart = [abs(one / statistics.median(times) - 1) * 100 for one in times]
        print(f"{program} on {store}: usual runs differ by {statistics.median(apart):.0f} % from "
              f"their median, at most by {max(apart):.0f} %")


if "--measure" in sys.argv:
    measure()
if "--measure-real" in sys.argv:
    measure_real()
sys.exit(check("--write" in sys.argv))
