"""Run by gdb for fault-path.sh, which defines what is counted: traces the pager's calls between two marks of a test.

Prints the files that the fault passes, and ends with 1 if they are too many.
"""
import collections
import re

import gdb

SOURCE = "regions/pager/src/"
MOST_FILES, MOST_ENTRIES = 20, 2

# (file, function) of each call and of its callers, the nearest first.
calls = []


def in_pager(frame):
    """Returns file and function of a frame, None if it is not of the pager. A closure is part of its function."""
    symtab = frame.find_sal().symtab
    if symtab is None or SOURCE not in symtab.filename:
        return None
    name = frame.name()
    while (shorter := re.sub(r"(::)?<[^<>]*>", "", name)) != name:
        name = shorter
    file = symtab.filename.partition("/@/")[0].partition(SOURCE)[2]
    return file, re.sub(r"(::\{closure.*)+$", "", name).removeprefix("largesse_pager::")


class Call(gdb.Breakpoint):
    """Notes each call of a function, and lets the program continue."""

    def stop(self):
        frame, stack = gdb.newest_frame(), []
        while frame is not None:
            stack.append(in_pager(frame))
            frame = frame.older()
        calls.append([place for place in stack if place])
        return False


def functions():
    """Yields file and line of each function of the pager. At the line of a derived one there is no `fn`."""
    file = inside = None
    for line in gdb.execute("info functions -n", to_string=True).split("\n"):
        if found := re.match(r"File (.*):$", line):
            _, inside, file = found[1].partition("/@/")[0].rpartition(SOURCE)
        elif inside and (found := re.match(r"(\d+):", line)):
            with open(SOURCE + file, encoding="utf-8") as source:
                if re.search(r"\bfn\b", source.read().split("\n")[int(found[1]) - 1]):
                    yield SOURCE + file, int(found[1])


def trace():
    """Runs the test, and returns its exit status."""
    for setting in ("pagination off", "confirm off", "print thread-events off", "disable-randomization off"):
        gdb.execute(f"set {setting}")
    marks = [gdb.Breakpoint(f"fault_path::path_{mark}", internal=True) for mark in ("begins", "ends")]
    gdb.execute("run", to_string=True)
    inside = [Call(f"{file}:{line}", internal=True) for file, line in sorted(set(functions()))]
    gdb.execute("continue", to_string=True)
    for breakpoint in marks + inside:
        breakpoint.delete()
    gdb.execute("continue", to_string=True)
    return int(gdb.parse_and_eval("$_exitcode"))


def files():
    """Returns for each file the functions by which it is entered, and those that are detours."""
    calls_of = collections.defaultdict(set)
    for place, *callers in calls:
        if callers and callers[0] != place:
            calls_of[callers[0]].add(place)

    def leads_to(place, seen=()):
        """Returns the functions of other files that a function calls, itself or through functions of its file."""
        inside = {called for called in calls_of[place] if called[0] == place[0]} - {place, *seen}
        outside = {called for called in calls_of[place] if called[0] != place[0]}
        return outside.union(*(leads_to(called, (place, *seen)) for called in inside))

    found, seen = {}, set()
    for place, *callers in calls:
        entries, detours = found.setdefault(place[0], ([], []))
        if place not in seen and all(caller[0] != place[0] for caller in callers):
            is_detour = not any(leads_to(called) for called in leads_to(place))
            (detours if is_detour else entries).append(place[1].rpartition("::")[2])
        seen.add(place)
    return found, len(seen)


status = trace()
found, functions_called = files()
print(f"{len(found)} files, {functions_called} functions")
for file, (entries, detours) in sorted(found.items(), key=lambda item: (-len(item[1][0]), item[0])):
    entered = f" entered {len(entries)} times ({', '.join(entries)});" if entries else ""
    print(f"  {file}:{entered} detours: {', '.join(detours) or 'none'}")
wrong = [] if status == 0 else [f"the test ended with {status}"]
wrong += [] if calls else ["no call was traced"]
wrong += [f"{len(found)} files are passed, at most {MOST_FILES} may be"] if len(found) > MOST_FILES else []
for file, (entries, _) in found.items():
    if len(entries) > MOST_ENTRIES:
        wrong.append(f"{file} is entered {len(entries)} times, at most {MOST_ENTRIES} may be")
for line in wrong:
    print(f"fault-path: {line}")
gdb.execute(f"quit {int(bool(wrong))}")
