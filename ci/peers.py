"""Runs programs in a control group with the kernel's own swap, for comparisons. Needs root.

The script of `largesse bench far --peers` makes the group and switches swap on and off. It ends when its input does,
in whatever way this process ends, and leaves no swap on. If the script is killed itself, another run of it cleans up.
"""
import contextlib, os, pathlib, re, signal, subprocess, sys, time

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "benches/engine/src/far/guard-swap.sh"
FREE_MIB = 4096


class Ended:
    """How a run ended: its seconds, exit status (none if it was stopped), output, and number of killed processes."""

    def __init__(self, seconds, status, output, killed):
        self.seconds, self.status, self.output, self.killed = seconds, status, output, killed


class Peers:
    """Swap of the kinds `swap`, to a new file in `folder`, and `zram`, to a new device. Use it in a `with` statement."""

    def __init__(self, kinds, folder):
        kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip()
        if "swap" in kinds and kind != "ext2/ext3":
            sys.exit(f"no swap file in {folder}: it is on {kind}, and swap files are known to work on ext4")
        if "zram" in kinds and not pathlib.Path("/sys/class/zram-control").exists():
            sys.exit("there is no zram in this kernel; perhaps as a module: modprobe zram")
        check_room()
        self.words = ["sh", SCRIPT, f"largesse-peers-{os.getpid()}", pathlib.Path(folder) / "swap"]
        self.area = ""
        print(f"switches on, for single runs: {' and '.join(kinds)}; off again at the end, in whatever way", flush=True)

    def __enter__(self):
        # In a process group of its own, Ctrl-C does not reach it.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "process_group": 0}
        self.script = subprocess.Popen(self.words, **pipes)
        self.group = pathlib.Path(self.answer())
        return self

    def __exit__(self, *_why):
        with contextlib.suppress(OSError):
            self.script.stdin.close()
        if self.script.wait() != 0:
            subprocess.run([*self.words, self.area], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def answer(self):
        done, _, text = self.script.stdout.readline().rstrip("\n").partition(" ")
        if done != "done":
            sys.exit(f"no swap to compare with: {text or 'guard-swap.sh has ended'}")
        return text

    def ask(self, request):
        print(request, file=self.script.stdin, flush=True)
        self.area = self.answer()

    def run(self, kind, swap_mib, limit_mib, words, seconds, log):
        """One run of a program with a limit of memory and swap of the kind `swap`, `zram` or `none`, stopped after
        `seconds`. Its standard error goes to the file `log`."""
        check_room()
        self.ask(f"{kind} {swap_mib << 20} {limit_mib << 20}")
        began = time.monotonic()
        join = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.group]
        words = [str(word) for word in [*join, *words]]
        with log.open("w") as errors:
            pipes = {"stdout": subprocess.PIPE, "stderr": errors, "text": True, "process_group": 0}
            with subprocess.Popen(words, **pipes) as child:
                try:
                    output, status = child.communicate(timeout=seconds)[0], child.returncode
                except subprocess.TimeoutExpired:
                    output, status = "", None
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)
        took, killed = time.monotonic() - began, self.killed()
        self.ask("off")
        if self.area:
            sys.exit(f"swap is still on. Type: swapoff {self.area}")
        return Ended(took, status, output, killed)

    def killed(self):
        """How many processes of the group the kernel has killed for lack of memory."""
        for name in ("memory.events", "memory.oom_control"):
            if (self.group / name).exists():
                return int(re.search(r"^oom_kill (\d+)$", (self.group / name).read_text(), re.M)[1])


def check_room():
    """Ends this program if other swap is on, or too little memory is available for swap to be switched on."""
    if areas := pathlib.Path("/proc/swaps").read_text().splitlines()[1:]:
        sys.exit(f"swap is on already, which programs would use, too. Type: swapoff {areas[0].split()[0]}")
    text = pathlib.Path("/proc/meminfo").read_text()
    free = int(re.search(r"^MemAvailable:\s*(\d+) kB$", text, re.M)[1]) >> 10
    if free < FREE_MIB:
        sys.exit(f"{free} MiB of memory are available; swap is switched on only with {FREE_MIB} MiB")
