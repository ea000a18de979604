"""Runs many one-launch programs, and says how many crashed, hung or were not answered.

    python -m tests.hosts.soak COUNT

The manager is started at a moment of each program that grows from run to run: before its first
call is over, while it ends, and not at all.
"""

from __future__ import annotations

import random
import subprocess
import sys

from tests.support.child import environment, library
from tests.support.hosting import KERNEL, ends, host, image, running_managers
from tests.support.patience import HANG

MODES = ("plain", "thread", "threads", "local-plain", "dlclose", "end-exit")
DELAYS = ("0", "0", "1", "3", "10", "1000")


def run_one(number: int, dice: random.Random) -> str | None:
    """What went wrong, or None."""
    mode, delay = MODES[number % len(MODES)], dice.choice(DELAYS)
    if mode == "end-exit":  # which waits for its manager
        mode, delay = ("served", "0") if number % 10 == 0 else ("plain", "0")
    command = [str(host()), str(library()), str(image()), KERNEL, mode]
    env = environment(MGPU_RT_PYTHON_DELAY=delay)
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG)
    except subprocess.TimeoutExpired:
        return f"{mode}, {delay} ms: hung"
    if done.returncode != 0 or "ok" not in done.stdout or done.stderr:
        return f"{mode}, {delay} ms: status {done.returncode}: {done.stdout}{done.stderr}"
    return None


def main() -> None:
    count = int(sys.argv[1])
    before = running_managers()
    dice = random.Random(count)
    failures = [wrong for number in range(count) if (wrong := run_one(number, dice))]
    left = [process for process in running_managers() - before if not ends(process)]
    print(f"{count} programs, {len(failures)} failures, {len(left)} managers left")
    print("\n".join(failures[:20]))
    raise SystemExit(1 if failures or left else 0)


if __name__ == "__main__":
    main()
