"""What the figures were measured on, and how busy it was: read from `/proc`, so for Linux only."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Busy:
    """
    How busy the processors were for a while, in cores.

    Attributes:
        seconds: How long that was.
        ours: What the watched processes used.
        all: What everything used: the database's server is in it, and so is whoever else is on the machine.
    """

    seconds: float
    ours: float
    all: float


class Watch:
    """How busy the machine is, and some processes on it, since this was made."""

    def __init__(self, pids: Iterable[int]) -> None:
        """Begin to watch the processes *pids*."""
        self.pids = tuple(pids)
        self._began = self._read()

    def until_now(self) -> Busy:
        """Return how busy they were until now; the processes must still be there."""
        began, now = self._began, self._read()
        seconds = now[0] - began[0]
        return Busy(seconds, (now[1] - began[1]) / seconds, (now[2] - began[2]) / seconds)

    def _read(self) -> tuple[float, float, float]:
        return time.monotonic(), sum(map(_used_s, self.pids)), _all_used_s()


def described() -> str:
    """Name the machine: its processors, its memory, its system and its Python."""
    cores, gib = os.cpu_count(), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{cores} cores ({_model()}), {gib:.0f} GiB, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def load() -> float:
    """Return the load average of the last minute: how many others want the processors."""
    return os.getloadavg()[0]


def memory_kb(pid: int) -> int:
    """Return how much memory the process holds now, in KiB."""
    [line] = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS:")]
    return int(line.split()[1])


def _used_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _all_used_s() -> float:
    user, nice, system, _idle, _waiting, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def _model() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    return names[0] if names else platform.machine()
