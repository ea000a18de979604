"""Runs rocrtst, AMD's own tests of ROCr 7.2.4, on the emulated device, as `make check-amd` does.

    python -m softgpu.tests.amd.rocrtst            # all of it: ten minutes
    python -m softgpu.tests.amd.rocrtst NAME...    # some, by gtest's names

rocrtst calls AMD's management library only for clocks and fans. A stand-in for the management
library refuses every call.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from softgpu.tests.amd.gtest import LIBRARIES, Suite, listed, main
from tests.devices.rocm.surroundings import Surroundings

SMI = "libamd_smi.so.26"
PROGRAM = "rocrtst64"


def tests(suite: Suite, here: Surroundings, root: Path) -> dict[str, list[object]]:
    """Returns a process for each test, whose command runs in the folder of rocrtst64's kernels."""
    _stand_in(root / suite.folder / PROGRAM, root / LIBRARIES / SMI)
    names = listed(suite, here, root, PROGRAM)
    return {name: [f"./{PROGRAM}", f"--gtest_filter={name}"] for name in names}


def _stand_in(program: Path, library: Path) -> None:
    """Builds a management library that exports every function that rocrtst64 needs, and refuses
    every call."""
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=True
    ).stdout
    names = sorted(set(re.findall(r"\bamdsmi_\w+", listing)))
    source = "".join(f"int {name}(void) {{ return 2; }}\n" for name in names)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{SMI}", "-o", library]
    subprocess.run(command, input=source, text=True, check=True)


SUITE = Suite(
    "rocrtst",
    "ROCr",
    ("7.2.4",),
    ("libhsa-runtime64-tests", "libhwloc15", "libudev1", "libcap2"),
    120,
    tests,
    expected={
        "rocrtstFunc.GroupMemoryAllocationTest": "AMD's kernel writes past its workgroup memory: "
        "hardware drops such a write, the emulated device calls it a fault",
        "rocrtstFunc.MemoryAllocateContiguousTest": "wants dmabuf, which is not emulated",
        "rocrtstFunc.IPC": "wants memory shared between processes, which is not emulated",
        "rocrtstPerf.Memory_Async_Copy": "looks for the device on the machine's PCI bus",
        "rocrtstPerf.Memory_Async_Copy_On_Engine": "looks for the device on the machine's PCI bus",
    },
    slow={
        "rocrtstFunc.Max_Reference_Count": "counts calls to two billion",
        "rocrtstFunc.Memory_Alignment_Test": "allocates whatever a device has, by every alignment",
        "rocrtstStress.Queue_CAS_Write_Index_ConcurrentTest": "four threads take turns four "
        "million times without yielding, which two cores are too few for",
    },
)
load, section = SUITE.load, SUITE.section

if __name__ == "__main__":
    sys.exit(main(SUITE))
