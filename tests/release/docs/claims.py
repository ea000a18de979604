"""The figures in the prose of README.md and docs/ that bench/results holds.

`python -m tests.release.docs` writes these figures into the pages, and test_claims.py checks them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.release.docs.measured import (
    FIGURES,
    Shown,
    building,
    counting,
    date,
    each,
    factor,
    later,
    launch_beside_graphs,
    launch_by_hand,
    ratio,
    slices,
    speedups,
    spread,
)

#: Matches a figure, or a date.
FIGURE = r"\d(?:[\d.,-]*\d)?"


@dataclass(frozen=True)
class Claim:
    """A part of a page, in which {} stands for each figure."""

    page: str
    text: str
    shown: tuple[Shown, ...]

    def pattern(self) -> re.Pattern[str]:
        """Returns a pattern whose groups are the figures; lines may break between words."""
        words = (re.escape(word).replace(r"\{\}", f"({FIGURE})") for word in self.text.split())
        return re.compile(r"\s+".join(words))

    def found(self, text: str) -> re.Match[str]:
        """Returns the only place of the page that makes the claim."""
        places = [*self.pattern().finditer(text)]
        assert len(places) == 1, f"{len(places)} times on {self.page}: {self.text}"
        return places[0]

    def figures(self) -> list[str]:
        """Returns the figures that the results hold."""
        return [figure for shown in self.shown for figure in shown()]

    def refreshed(self, text: str) -> str:
        """Returns the page's text with the figures that the results hold."""
        found = self.found(text)
        for group, figure in reversed([*enumerate(self.figures(), 1)]):
            text = text[: found.start(group)] + figure + text[found.end(group) :]
        return text


# ---- README ----

README = "README.md"
#: Variants of a model: registering no memory, registering memory, waiting on one stream.
PLAIN, PINNED, WAITS = ".*/(?!registered).*", ".*/registered", ".*/(waits|shared)"


def models(side: str, pattern: str, *llvms: int) -> Shown:
    return speedups(("models", side, pattern, *llvms))


def graphs(pattern: str, llvm: int) -> Shown:
    return speedups(("graphs", "graph", f".*/{pattern}", llvm))


def pictured(llvm: int) -> Shown:
    """Shows the speedups of README's picture, which is of the table Graphs."""
    return speedups(("graphs", "mgpu_rt", f"{PICTURED}/.*", llvm))


def programs(pattern: str, kind: str = "programs") -> Shown:
    return speedups((kind, "mgpu_rt", pattern))


#: The model of README's picture, as bench/show/plot.py draws it.
PICTURED = "block"
#: How often a release loads a module.
LOADS = {19: "a module at each launch", 22: "each module once"}
CLAIMS = [
    Claim(README, "once on an H200 ({}), through", (date,)),
    *(
        Claim(
            README,
            f"| LLVM {llvm} lowered the model, which loads {loads} "
            "| {} to {} | {} to {} | {} to {} |",
            (models("mgpu_rt", PLAIN, llvm), models("lazy", PLAIN, llvm), graphs(".*", llvm)),
        )
        for llvm, loads in LOADS.items()
    ),
    *(
        Claim(
            README,
            f"| LLVM {llvm}, and each pass registers host memory and copies from it "
            "| {} to {} | {} to {} | not possible |",
            (models("mgpu_rt", PINNED, llvm), models("lazy", PINNED, llvm)),
        )
        for llvm in LOADS
    ),
    Claim(
        README,
        "There, *unchanged* gives a transformer block {} to {} (LLVM 22) and {} to {} (LLVM 19).",
        (pictured(22), pictured(19)),
    ),
    Claim(
        README,
        "| works on one stream, and waits after each operation | {} to {} | it saves streams, "
        "modules and memory; with `--exclusive --lazy` {} to {}, with `host_shared` {} to {} |",
        (
            speedups(("models", "mgpu_rt", WAITS), ("programs", "mgpu_rt", "forum")),
            speedups(("models", "lazy", ".*/waits"), ("programs", "lazy", "forum")),
            models("lazy", ".*/shared"),
        ),
    ),
    Claim(
        README,
        "| submits one long chain, lowered by LLVM 22 | {} to {} | little is left to save; as a "
        "graph {} to {} |",
        (models("mgpu_rt", ".*/chain", 22), graphs("chain", 22)),
    ),
    Claim(
        README,
        "| allocates sizes that vary in each round | {} to {} | freed blocks serve other sizes; a "
        "model that computes more gains {} to {} |",
        (programs("grow|ragged"), models("mgpu_rt", "decode/.*")),
    ),
    Claim(
        README,
        "| forks and joins two streams, with a wait on the host | {} to {} | freed blocks go to "
        "the other stream; two kernels of 1.6 ms gain {} to {}, least with LLVM 22 |",
        (programs("forkjoin"), programs("spin")),
    ),
    Claim(
        README,
        "| forks and joins without a wait on the host | {} to {} |",
        (programs("forkjoin-nowait"),),
    ),
    Claim(
        README,
        "| registers host memory in each pass | {} to {} | it takes most of the time; with "
        "`--exclusive --lazy` {} to {} |",
        (models("mgpu_rt", PINNED), models("lazy", PINNED)),
    ),
    Claim(
        README, "| runs in eight processes on one GPU | {} to {} |", (programs(".*", "processes"),)
    ),
]

# ---- the pages of docs/ ----

GRAPHS = "docs/graphs.md"
#: Figures: the time that an empty LaunchHook adds, and a graph's paired ratio.
HOOK, GRAPH = "calls, an empty LaunchHook, beyond native", ".*, mgpu_rt's graph / graph by hand"
CLAIMS += [
    Claim(
        GRAPHS,
        "the library's graph takes {} to {} times as long as a graph that is built by hand.",
        (spread("graphs-cuda", GRAPH),),
    ),
    Claim(
        GRAPHS,
        "each launch of the forum's kernel takes {} to {} µs. Without a graph it takes {} to {} "
        "µs. Building a graph takes as long as {} to {} passes",
        (
            spread("graphs-cuda", ".*, a launch in mgpu_rt's graph"),
            launch_beside_graphs,
            building,
        ),
    ),
    Claim("docs/statistics.md", "Counting adds {} to {} ns to each call", (counting,)),
    Claim(
        "docs/how-it-works.md",
        "takes {} to {} µs beside an H200, while a whole hand-written launch takes {} to {} µs.",
        (spread("in_python-cuda", f". {HOOK}", factor), launch_by_hand),
    ),
    Claim(
        "docs/rule.md",
        "a hand-written launch takes {} to {} µs on an H200.",
        (launch_by_hand,),
    ),
]

# ---- figures.md ----

H100 = "bench/results/2026-11-26-h100-cuda.json"
#: Paired ratios to the loop by hand: of models with resident weights, of registered memory, of
#: memory that stays registered, and of postponed waits.
RESIDENT = "(?!decode).*, (chain|waits), LLVM .., mgpu_rt / by hand"
REGISTERED = ".*, registered, LLVM .., mgpu_rt / by hand"
KEPT = ".*, registered, LLVM .., mgpu_rt exclusive / by hand"
POSTPONED = ".*, waits, LLVM .., mgpu_rt exclusive, lazy / by hand"
#: Paired ratios to stock's behaviour.
SLOWDOWN, SPEEDUP = ".*, mgpu_rt / stock's behaviour", "(forum|churn), LLVM 19, stock.* / mgpu_rt"
CLAIMS += [
    Claim(
        FIGURES,
        "Paired ratios to the loop by hand are {} to {} with resident weights, and {} to {} if "
        "every pass copies all tensors. They are {} to {} with host_shared, and {} to {} for "
        "decode ({} to {} with `--exclusive`). With registered memory, mgpu_rt takes {} to {} "
        "times as long as by hand.",
        (
            spread("models-cuda", RESIDENT),
            spread("models-cuda", ".*, copied, LLVM .., mgpu_rt / by hand"),
            spread("models-cuda", ".*, shared, LLVM .., mgpu_rt / by hand"),
            spread("models-cuda", "decode, .*, mgpu_rt / by hand"),
            spread("models-cuda", "decode, .*, mgpu_rt exclusive / by hand"),
            spread("models-cuda", REGISTERED, factor),
        ),
    ),
    Claim(
        FIGURES,
        "`--exclusive` keeps it registered: {} to {} times. With `--exclusive --lazy` a model that "
        "waits after each operation takes {} to {} times as long as the loop by hand with waits.",
        (spread("models-cuda", KEPT), spread("models-cuda", POSTPONED)),
    ),
    Claim(
        FIGURES,
        "paired ratios to the loop by hand were {} to {} with resident weights. With registered "
        "memory they were {} to {}. With `--exclusive` registered memory took {} to {} times as "
        "long. With `--exclusive --lazy` models that wait took {} to {} times as long ",
        (
            spread("models-cuda", RESIDENT, file=H100),
            spread("models-cuda", REGISTERED, factor, H100),
            spread("models-cuda", KEPT, file=H100),
            spread("models-cuda", POSTPONED, file=H100),
        ),
    ),
    Claim(FIGURES, "LLVM's own library takes {} to {} times as long there as here.", (later,)),
    Claim(
        FIGURES,
        "With mgpu_rt an iteration takes {} to {} times as long as by hand (paired ratios):",
        (spread("processes-cuda", ".*, mgpu_rt / by hand"),),
    ),
    Claim(
        FIGURES,
        "With LLVM's own library an iteration takes up to {} times {} ms, the least of these "
        "times.",
        (slices,),
    ),
    Claim(
        FIGURES,
        "forkjoin-nowait takes {} (LLVM 19) and {} (LLVM 22) times as long as stock's behaviour",
        (each("programs-cuda", f"forkjoin-nowait{SLOWDOWN}", ratio),),
    ),
    Claim(
        FIGURES,
        "The loop by hand is {} to {} times as fast as mgpu_rt.",
        (spread("programs-cuda", "forkjoin-nowait, .*, mgpu_rt / by hand"),),
    ),
    Claim(
        FIGURES,
        "With `--exclusive` forum takes {} to {} times as long as by hand, and churn {} to {} "
        "times.",
        (
            spread("programs-cuda", "forum, .*, mgpu_rt exclusive / by hand"),
            spread("programs-cuda", "churn, .*, mgpu_rt exclusive / by hand"),
        ),
    ),
    Claim(
        FIGURES,
        "With LLVM 19 stock's behaviour takes {} (forum) and {} times (churn) as long as mgpu_rt. "
        "spin, forkjoin, grow and ragged take {} to {} times as long as with stock's behaviour",
        (
            each("programs-cuda", SPEEDUP, factor),
            spread("programs-cuda", f"(?!forkjoin-nowait){SLOWDOWN}"),
        ),
    ),
    Claim(
        FIGURES,
        "By hand a launch takes {} ns:",
        (each("calls-stub", "hand-hoisted: launch and synchronise"),),
    ),
    Claim(
        FIGURES,
        "an empty LaunchHook adds {} µs (target: 3), and all calls through Python add {} µs "
        "(target: 8).",
        (
            each("in_python-stub", f"7 {HOOK}"),
            each("in_python-stub", "7 calls, all calls through Python, beyond native"),
        ),
    ),
    Claim(
        FIGURES,
        "On the H200 an empty LaunchHook adds {} µs with seven calls and {} µs with five. "
        "Singleton takes {} to {} times as long there as the loop by hand",
        (
            each("in_python-cuda", f". {HOOK}"),
            spread("in_python-cuda", ".*, Singleton / by hand", factor),
        ),
    ),
]
