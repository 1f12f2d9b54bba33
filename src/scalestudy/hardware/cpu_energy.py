"""What the processors of this machine draw: RAPL's counters, as the kernel shows them."""

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
PACKAGES = "intel-rapl:[0-9]*"
"""AMD's too. `intel-rapl-mmio:…` would tell of the same packages again."""


class _Package:
    """One package's counter, made endless: it begins anew after `max_energy_range_uj`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range = int((folder / "max_energy_range_uj").read_text())
        self._last = self._read()
        self._microjoules = 0

    def look(self) -> float:
        now = self._read()
        self._microjoules += now - self._last if now >= self._last else self._range - self._last + now
        self._last = now
        return self._microjoules / 1e6

    def _read(self) -> int:
        return int(self._file.read_text())


class CpuEnergy:
    """Adds up what all packages have drawn since it was made.

    A package's counter wraps after some minutes at full power (65 or 262 kJ), so `look` must be called more
    often than that. What has failed once stays unknown, since nobody saw whether it wrapped meanwhile.

    Args:
        root: The kernel's folder of powercap.

    Attributes:
        reason: Why nothing is known; "" as long as all packages tell.
    """

    def __init__(self, root: Path = POWERCAP) -> None:
        self.reason = ""
        try:
            folders = [each for each in sorted(root.glob(PACKAGES)) if _is_package(each)]
            self._packages = [_Package(each) for each in folders]
        except (OSError, ValueError) as error:
            self._packages, self.reason = [], _said(error)
        if not self._packages:
            self.reason = self.reason or f"this machine counts none ({root} has no package of RAPL)"

    def look(self) -> float | None:
        """Joules so far; None where a package has not told."""
        if self.reason:
            return None
        try:
            return sum(each.look() for each in self._packages)
        except (OSError, ValueError) as error:
            self.reason = _said(error)
            return None


def _is_package(folder: Path) -> bool:
    """Whether it is a package: not one of its parts ("intel-rapl:0:1"), nor the whole platform."""
    return folder.name.count(":") == 1 and (folder / "name").read_text().startswith("package")


def _said(error: OSError | ValueError) -> str:
    if isinstance(error, PermissionError):
        return f"{error.filename} may be read by root alone: the site can open it to all"
    return f"{getattr(error, 'filename', None) or 'a counter'} cannot be read: {error}"
