"""Compiles the C example of docs/graphs.md, and runs it with and without a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.child import ROOT
from tests.support.known import program, run_program

#: Each run of `lowered` moves the numbers forward by one, so a second run shows.
AROUND = """
#include "mgpu_rt.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct ihipStream_t *stream_t;
stream_t mgpuStreamCreate(void);
void mgpuStreamSynchronize(stream_t stream);
void *mgpuMemAlloc(uint64_t bytes, stream_t stream, bool shared);
void mgpuMemFree(void *block, stream_t stream);
void mgpuMemcpy(void *to, void *from, size_t bytes, stream_t stream);

static int numbers[16];
static stream_t stream;

static void lowered(void) {
    char *block = mgpuMemAlloc(sizeof numbers, stream, false);
    mgpuMemcpy(block, numbers, sizeof numbers, stream);
    mgpuMemcpy(numbers, block + sizeof *numbers, sizeof numbers - sizeof *numbers, stream);
    mgpuMemFree(block, stream);
}

static void step(void) {
PAGE
}

int main(void) {
    stream = mgpuStreamCreate();
    for (int i = 0; i < 16; i++)
        numbers[i] = i;
    for (int i = 1; i <= 3; i++) {
        step();
        mgpuStreamSynchronize(stream);
        printf("%d\\n", numbers[0]);
    }
    return 0;
}
"""

#: Variables, and the lines on stderr. If begin fails at each of three steps, one line says so.
CASES = {
    "graph": ({}, ""),
    "no-cache": (
        {"MGPU_RT_CACHE": "off"},
        "mgpu_rt: no graph is begun, so calls run at once: a graph needs MGPU_RT_CACHE=on\n",
    ),
    "runtime": (
        {"MGPU_RT_RUNTIME": "mgpu_rt.runtime:PlainRuntime"},
        "mgpu_rt: no graph is begun, so calls run at once: a hook or runtime in Python answers "
        "them (--hook, mgpu_rt.intercept, mgpu-rt check or diff)\n",
    ),
    "no-memory-cache": (
        {"MGPU_RT_CACHE": "modules,functions,streams"},
        "mgpu_rt: the graph is not built: it allocates 64 bytes, which "
        "MGPU_RT_CACHE=modules,functions,streams leaves to HIP\n" * 3,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_example_computes_once(case: str, tmp_path: Path) -> None:
    variables, said = CASES[case]
    page = (ROOT / "docs/graphs.md").read_text(encoding="utf-8")
    example = page.partition("```c\n")[2].partition("```")[0].replace("lowered(...)", "lowered()")
    flags = f"-I{ROOT / 'csrc/include'}"
    path = program(tmp_path, AROUND.replace("PAGE", example), flags)
    done = run_program(path, MGPU_RT_MANAGER="off", **variables)
    assert (done.stdout, done.returncode) == ("1\n2\n3\n", 0), done.stderr
    assert done.stderr == said
