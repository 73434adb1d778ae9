"""Runs programs in a control group with the kernel's own swap, for comparisons. Needs root.

The script of `largesse bench far --peers` makes the group and switches swap on and off. It ends when its input does,
in whatever way this process ends, and leaves no swap on.
"""
import collections, os, pathlib, re, signal, subprocess, sys, time

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "benches/engine/src/far/guard-swap.sh"
FREE_MIB = 4096
Ended = collections.namedtuple("Ended", "seconds status output killed")


class Peers:
    """Swap to a new file in `folder`, which lies on a disk, or to a new zram device."""

    def __init__(self, folder):
        words = ["sh", SCRIPT, f"largesse-peers-{os.getpid()}", pathlib.Path(folder) / "swap"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        # In a process group of its own, Ctrl-C does not reach it.
        self.script = subprocess.Popen(words, process_group=0, **pipes)
        self.group = pathlib.Path(self.answer())

    def answer(self):
        done, _, text = self.script.stdout.readline().rstrip("\n").partition(" ")
        if done != "done":
            sys.exit(f"no swap to compare with: {text or 'guard-swap.sh has ended'}")
        return text

    def ask(self, request):
        print(request, file=self.script.stdin, flush=True)
        return self.answer()

    def run(self, kind, swap_mib, limit_mib, words, seconds):
        """One run of a program with a limit of memory and swap of the kind `swap` or `zram`."""
        if pathlib.Path("/proc/swaps").read_text().count("\n") > 1:
            sys.exit("swap is on already, which programs would use, too")
        if available_mib() < FREE_MIB:
            sys.exit(f"swap is switched on only with {FREE_MIB} MiB of available memory")
        self.ask(f"{kind} {swap_mib << 20} {limit_mib << 20}")
        began = time.monotonic()
        join = ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', self.group]
        words = [str(word) for word in [*join, *words]]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(words, process_group=0, **quiet) as child:
            try:
                output, status = child.communicate(timeout=seconds)[0], child.returncode
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                output, status = "", None
        took, killed = time.monotonic() - began, self.killed()
        self.ask("off")
        return Ended(took, status, output, killed)

    def killed(self):
        """How many processes of the group the kernel has killed for lack of memory."""
        for name in ("memory.events", "memory.oom_control"):
            if (self.group / name).exists():
                return int(re.search(r"^oom_kill (\d+)$", (self.group / name).read_text(), re.M)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        self.script.stdin.close()
        self.script.wait()


def available_mib():
    return int(re.search(r"^MemAvailable:\s*(\d+) kB$", pathlib.Path("/proc/meminfo").read_text(), re.M)[1]) >> 10
