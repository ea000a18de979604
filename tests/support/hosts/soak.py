"""Runs many programs with one launch each, and prints how many crashed, hung or failed.

    python -m tests.support.hosts.soak COUNT

Each run starts the manager at a different time: during the first call, while the program ends, or
not at all.
"""

from __future__ import annotations

import random
import subprocess
import sys

from tests.support.child import environment
from tests.support.hosting import ends, host_command, managers
from tests.support.patience import HANG

MODES = ("plain", "thread", "threads", "local-plain", "dlclose", "end-exit")
DELAYS = ("0", "0", "1", "3", "10", "1000")


def run_one(number: int, dice: random.Random, processes: set[int]) -> str | None:
    """Returns the fault of a program, or None. Records the program's process."""
    mode, delay = MODES[number % len(MODES)], dice.choice(DELAYS)
    if mode == "end-exit":  # this mode waits for its manager
        mode, delay = ("served", "0") if number % 10 == 0 else ("plain", "0")
    command = host_command(mode)
    env = environment(MGPU_RT_MANAGER=f"delay={delay}")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=env, text=True, **pipes) as program:
        processes.add(program.pid)
        try:
            out, err = program.communicate(timeout=HANG)
        except subprocess.TimeoutExpired:
            program.kill()
            return f"{mode}, {delay} ms: hung"
    if program.returncode != 0 or "ok" not in out or err:
        return f"{mode}, {delay} ms: status {program.returncode}: {out}{err}"
    return None


def main() -> None:
    count = int(sys.argv[1])
    processes: set[int] = set()
    dice = random.Random(count)
    failures = [wrong for number in range(count) if (wrong := run_one(number, dice, processes))]
    left = [process for process in managers(programs=processes) if not ends(process)]
    print(f"{count} programs, {len(failures)} failures, {len(left)} managers left")
    print("\n".join(failures[:20]))
    raise SystemExit(1 if failures or left else 0)


if __name__ == "__main__":
    main()
