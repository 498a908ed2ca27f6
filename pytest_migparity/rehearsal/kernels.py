"""BLAS settings of a run's subprocess. Set there and nowhere else: numpy reads them once, when it is first imported.

A second kernel rounds differently but computes the same thing: that is the honest "other hardware" of one machine.
Some old kernels are wrong for some sizes, so a kernel is used only after its products were held against float64.
"""

import hashlib
import os
import platform
import site
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pytest_migparity.core.errors import UserError, did_you_mean

DEFAULT, OTHER = "default", "other"

CANDIDATES = {
    "x86_64": ("Sandybridge", "Haswell", "Nehalem", "SkylakeX", "Prescott"),
    "AMD64": ("Sandybridge", "Haswell", "Nehalem", "SkylakeX", "Prescott"),
    "aarch64": ("ARMV8", "NEOVERSEN1", "CORTEXA57"),
}
"""OPENBLAS_CORETYPE values tried in order by machine. The first on x86 has no fused multiply-add: most bits differ."""

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
LARGEST_ERROR = 1e-5
"""Of a float32 product of standard normal numbers, over sqrt(inner size); a right kernel has about 3e-6."""
PROBE_SIZES = ((256, 100, 256), (256, 256, 48), (100, 256, 256), (256, 48, 256), (512, 100, 256), (33, 256, 48))


def environment(kernel: str, threads: int, first_on_path: Sequence[Path] = ()) -> dict[str, str]:
    """Our environment, changed for a Python subprocess: BLAS kernel, thread count, and where it imports from.

    `kernel` is DEFAULT (the CPU's own), OTHER (see `other_kernel`) or a value of OPENBLAS_CORETYPE.
    """
    named = {name for names in CANDIDATES.values() for name in names}
    if kernel not in {DEFAULT, OTHER, *named}:  # OpenBLAS would take its own, without a word
        raise UserError(f"no BLAS kernel {kernel!r}; {did_you_mean(kernel, {DEFAULT, OTHER, *named})}")
    settings = {name: value for name, value in os.environ.items() if name not in ("OPENBLAS_CORETYPE", "PYTHONPATH")}
    settings.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    if kernel != DEFAULT:
        settings["OPENBLAS_CORETYPE"] = other_kernel() if kernel == OTHER else kernel
    settings["PYTHONPATH"] = os.pathsep.join(map(str, [*first_on_path, *_package_root()]))
    return settings


@cache
def other_kernel() -> str:
    """An OPENBLAS_CORETYPE that computes right, and different bits from this CPU's own choice."""
    usual, _ = _probe(DEFAULT)
    for name in CANDIDATES.get(platform.machine(), ()):
        digest, error = _probe(name)
        if digest != usual and error < LARGEST_ERROR:
            return name
    raise UserError(
        f"no second BLAS kernel on this machine ({platform.machine()}): every OPENBLAS_CORETYPE tried gives the bits "
        "of the default one (numpy may not be built with OpenBLAS). Record the run without its rerun and the fault "
        "'other-kernel' elsewhere"
    )


def _probe(kernel: str) -> tuple[str, float]:
    """Digest of some products under a kernel, and their largest error."""
    command = [sys.executable, "-P", "-m", "pytest_migparity.rehearsal.kernels"]
    done = subprocess.run(command, check=False, env=environment(kernel, 1), capture_output=True, text=True)
    if done.returncode:
        return "", float("inf")  # this kernel does not run here
    digest, error = done.stdout.split()
    return digest, float(error)


def _package_root() -> list[Path]:
    """The folder this package is imported from, unless every interpreter of this environment looks there anyway."""
    root = Path(__file__).resolve().parents[2]
    return [] if root in {Path(folder).resolve() for folder in site.getsitepackages()} else [root]


def _print_products() -> None:
    """What `_probe` reads: digest and largest error of products under the kernel of this process."""
    import numpy as np

    random = np.random.default_rng(0)
    digest, worst = hashlib.sha256(), 0.0
    for rows, inner, columns in PROBE_SIZES:
        a = random.standard_normal((rows, inner), dtype=np.float32)
        b = random.standard_normal((inner, columns), dtype=np.float32)
        for left, right in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b))):
            product = left @ right
            exact = left.astype(np.float64) @ right.astype(np.float64)
            digest.update(product.tobytes())
            worst = max(worst, float(np.abs(product - exact).max()) / inner**0.5)
    print(digest.hexdigest(), worst)


if __name__ == "__main__":
    _print_products()
