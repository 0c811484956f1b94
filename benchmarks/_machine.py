"""What a measurement depends on: the machine, the versions and the memory in use."""

import ctypes
import gc
import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil

import skextra

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "torch")


def describe():
    """Return the CPU, the memory and the versions in use."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "skextra": skextra.__version__,
        **{name: version(name) for name in PACKAGES},
    }


def cpu_model():
    """Return the name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return models[0] if models else platform.processor()


class PeakMemory:
    """Megabytes that the process held at its worst, beyond those held at the start.

    Linux keeps the peak itself, so nothing is sampled; elsewhere ``megabytes`` is None.
    Memory that was freed before goes back to the system first, or it would not count.
    """

    def __enter__(self):
        self.megabytes = None
        gc.collect()
        try:
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        except (AttributeError, OSError, TypeError):
            self._start = None
        else:
            self._start = self._peak()
        return self

    def __exit__(self, *error):
        if self._start is not None:
            self.megabytes = round((self._peak() - self._start) / 1024, 1)

    @staticmethod
    def _peak():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if "VmHWM" in line)
