"""Logical merge on one core: speed and memory of its algorithms, as in the figures of the LMerge paper.

Chunks of the inputs come in turn, a CTI after each. Speed counts the elements of all inputs. Memory is what the
algorithm holds, payloads included. Bursts, congestion and plan switching (Figures 8 to 10) run in simulated time:
See `merging/arrivals.py` and `merging/switching.py`.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import numpy as np
import polars as pl
from harness import BenchmarkReport, median, one_core, spread

from cedr.columnar.chunk import Chunk, empty
from cedr.operators.align import AlignOperator
from cedr.operators.base import Operator
from cedr.operators.merge.algorithms import ALGORITHMS

sys.path.insert(0, str(Path(__file__).parent))

from merging.arrivals import RATE, TICK, Followed, bursty, congested, follow, longest_silence, rates
from merging.inputs import AS_IT_COMES, ORDERED, SCHEMA, agree, payloads, streams
from merging.switching import MOST, PLANS, SHARES, Ran, events, race

IN_ORDER = ("R0", "R1", "R2")
SPEED_BARS = {"R0": 10.0, "R3": 1.0}
MEMORY_BAR = 1.3
"""Maximum memory of ten inputs, relative to two."""
SMOOTH_BAR = 0.5
"""Of the steadiest input's variation, so much may be left in the output."""
MASKED_BAR = 0.9
"""Of the rate that sources send, so much must always come out, whatever is congested."""
FEEDBACK_BAR = 5.0
"""Minimum speedup of two plans with feedback, as in the paper."""
CLEANSE = "Cleanse and R1"


def run(report: BenchmarkReport, quick: bool = False) -> None:
    one_core()
    payload = payloads(20_000 if quick else 100_000)
    inputs = (2, 3) if quick else (2, 4, 6, 8, 10)
    over_inputs(report, payload, inputs, quick)
    over_disorder(report, payload)
    over_lag(report, payload, quick)
    over_ctis(report, payload, quick)
    bursts(report, 3 if quick else 12)
    congestion(report, 6 if quick else 20)
    plan_switching(report, 10_000 if quick else 200_000, quick)


@dataclass
class Measured:
    elements: int
    seconds: float
    most_bytes: int

    @property
    def speed(self) -> float:
        return self.elements / self.seconds / 1e6

    @property
    def memory(self) -> float:
        return self.most_bytes / 2**20


def merged(algorithm: str, feed: Sequence[Sequence[Chunk]], cleanse: bool = False, behind: int = 0) -> Measured:
    """Merge all inputs, chunk by chunk in turn; each input lags `behind` chunks behind the one before it."""
    operator = ALGORITHMS[algorithm](SCHEMA, len(feed))
    before: list[Operator | None] = [AlignOperator(SCHEMA, flavour="perfect") if cleanse else None for _ in feed]
    most, seconds = 0, 0.0
    for step in range(max(map(len, feed)) + behind * len(feed)):
        for port, chunks in enumerate(feed):
            place = step - behind * port
            if not 0 <= place < len(chunks):
                continue
            start = process_time()
            aligned, chunk = before[port], chunks[place]
            operator.process(port, aligned.process(0, chunk) if aligned else chunk)
            seconds += process_time() - start
        held = operator.state_size()[1] + sum(a.state_size()[1] for a in before if a)
        most = max(most, held)
    return Measured(sum(len(c) for chunks in feed for c in chunks), seconds, most)


def warm(algorithm: str) -> None:
    """Compile what it needs."""
    small = payloads(200)
    disorder = ORDERED if algorithm in IN_ORDER else AS_IT_COMES
    merged(algorithm, streams(replace(disorder, chunk=50), small, 2))


def outputs(algorithm: str, feed: Sequence[Sequence[Chunk]], policy: str = "first") -> Iterator[Chunk]:
    operator = ALGORITHMS[algorithm](SCHEMA, len(feed), policy)
    for step in range(max(map(len, feed))):
        for port, chunks in enumerate(feed):
            yield operator.process(port, chunks[step]) if step < len(chunks) else empty(SCHEMA)


# --- the figures ---------------------------------------------------------------------------------------------------


def over_inputs(report: BenchmarkReport, payload: pl.DataFrame, inputs: Sequence[int], quick: bool) -> None:
    """Figures 2 and 3: memory and speed over the number of inputs. Figure 7: R3 compared with inputs that are sorted
    first, each for itself, for the simpler R2."""
    memory = report.plot("figure_2", "Figure 2: most memory over the number of inputs", "inputs", "MiB", "y")
    speed = report.plot("figure_3", "Figure 3: speed over the number of inputs", "inputs", "M elements/s", "y")
    cleansed = "revised inputs in disorder, or put in order first"
    memory_7 = report.plot("figure_7_memory", f"Figure 7: most memory; {cleansed}", "inputs", "MiB")
    speed_7 = report.plot("figure_7_speed", f"Figure 7: speed; {cleansed}", "inputs", "M elements/s")
    for algorithm in (*ALGORITHMS, CLEANSE):
        cleanse = algorithm == CLEANSE
        name = "R1" if cleanse else algorithm
        warm(name)
        disorder = ORDERED if algorithm in IN_ORDER else AS_IT_COMES
        most = {}
        for count in (2,) if algorithm == "R3-" and quick else inputs:
            feed = streams(disorder, payload, count)
            runs = [merged(name, feed, cleanse) for _ in range(1 if quick or algorithm == "R3-" else 3)]
            speeds, most[count] = [r.speed for r in runs], runs[0].memory
            bar = None if quick else SPEED_BARS.get(algorithm)
            about = f"{algorithm}, {count} inputs"
            first, second = (speed_7, memory_7) if cleanse else (speed, memory)
            more = {"bar": bar, "spread": spread(speeds), "at": first.at(algorithm, count)}
            report.add(about, median(speeds), "M elements/s", **more)
            report.add(f"{about}: most memory", most[count], "MiB", at=second.at(algorithm, count))
            if algorithm in ("R3", "R3-"):
                speed_7.add(algorithm, count, median(speeds), spread(speeds))
                memory_7.add(algorithm, count, most[count])
        if cleanse:
            continue
        feed = streams(disorder, payload, inputs[0])
        report.add(f"{algorithm}: answers agree", agree(list(outputs(algorithm, feed)), feed[0]), "of 1", bar=1)
        if algorithm == "R3":
            growth = most[inputs[-1]] / most[inputs[0]]
            about = f"R3: memory of {inputs[-1]} inputs over that of {inputs[0]}"
            report.add(about, growth, "x", bar=MEMORY_BAR, at_most=True)


def over_disorder(report: BenchmarkReport, payload: pl.DataFrame) -> None:
    """Figure 4: what is put out over the share of late events."""
    title = "Figure 4: what R3 puts out, by policy, over disorder of three inputs"
    plot = report.plot("figure_4", title, "late events, %", "rows per event")
    for policy in ("first", "half-frozen", "reflect"):
        for late in (0.0, 0.2, 0.5):
            feed = streams(replace(AS_IT_COMES, late=late), payload, 3)
            out = sum(len(c) for c in outputs("R3", feed, policy))
            name = f"R3, {policy}, {late:.0%} late: rows put out"
            report.add(name, out / payload.height, "per event", at=plot.at(policy, 100 * late))


def over_lag(report: BenchmarkReport, payload: pl.DataFrame, quick: bool) -> None:
    """Figure 5: speed over the lag between inputs: what comes late of a slower one is of no more use."""
    title = "Figure 5: speed over the lag between three inputs"
    plot = report.plot("figure_5", title, "chunks behind each other", "M elements/s")
    feed = streams(AS_IT_COMES, payload, 3)
    for lag in (0, 1) if quick else (0, 1, 2, 4):
        speed = merged("R3", feed, behind=lag).speed
        report.add(f"R3, inputs {lag} chunks behind each other", speed, "M elements/s", at=plot.at("R3", lag))


def over_ctis(report: BenchmarkReport, payload: pl.DataFrame, quick: bool) -> None:
    """Figure 6: speed and memory over the frequency of CTIs."""
    title, x = "over the frequency of CTIs of three inputs", "elements between CTIs"
    speed = report.plot("figure_6_speed", f"Figure 6: speed {title}", x, "M elements/s", "x")
    memory = report.plot("figure_6_memory", f"Figure 6: most memory {title}", x, "MiB", "x")
    for size in (1_000, 5_000) if quick else (500, 1_000, 5_000, 20_000):
        measured = merged("R3", streams(replace(AS_IT_COMES, chunk=size), payload, 3))
        name = f"R3, a CTI every {size:,} elements"
        report.add(name, measured.speed, "M elements/s", at=speed.at("R3", size))
        report.add(f"{name}: most memory", measured.memory, "MiB", at=memory.at("R3", size))


def bursts(report: BenchmarkReport, seconds: int) -> None:
    """Figure 8: four inputs that stall and catch up at their own moments, and the merge of them.

    The paper's claim as a number: the variation of the rate (deviation over mean, in stretches of 0.1 s) of the output
    against that of the steadiest input.
    """
    followed = follow(payloads(seconds * RATE), 4, bursty, AS_IT_COMES)
    shown = over_time(report, "figure_8", "Figure 8: four bursty inputs; one of them and the merge", followed, 0.1, 1)
    *inputs, output = (float(np.std(r) / np.mean(r)) for r in shown)
    report.add("Bursts: variation of the inputs' rates, least", min(inputs), "of the mean")
    report.add("Bursts: variation of the output's rate", output, "of the mean")
    least = "Bursts: variation of the output over that of the steadiest input"
    report.add(least, output / min(inputs), "x", bar=SMOOTH_BAR, at_most=True)
    silences(report, "Bursts", followed)


def congestion(report: BenchmarkReport, seconds: int) -> None:
    """Figure 9: three inputs that are congested for a while, two of them at once for a part of it.

    The paper's claim as a number: the lowest rate of the output over half a second, against the rate of events sent.
    """
    stretches = [(seconds * since, seconds * until) for since, until in ((0.1, 0.25), (0.4, 0.55), (0.5, 0.65))]
    followed = follow(payloads(seconds * RATE), 3, congested(stretches), AS_IT_COMES)
    title = "Figure 9: three inputs, congested in turn, and the merge"
    shown = over_time(report, "figure_9", title, followed, 0.5, 3)
    sent = float(np.median(shown))
    *inputs, output = (float(np.min(r)) / sent for r in shown)
    report.add("Congestion: lowest rate of the inputs", min(inputs), "of what is sent")
    report.add("Congestion: lowest rate of the output", output, "of what is sent", bar=MASKED_BAR)
    silences(report, "Congestion", followed)


def over_time(
    report: BenchmarkReport, name: str, title: str, followed: Followed, over: float, shown: int
) -> list[np.ndarray]:
    """Plot rates over time, of the first inputs and of the output; returns those of all, while events happen."""
    plot = report.plot(name, title, "seconds", "thousand events/s")
    plot.foremost = "merged"
    inputs = {f"input {number + 1}": emitted for number, emitted in enumerate(followed.inputs[:shown])}
    for series, emitted in {**inputs, "merged": followed.output}.items():
        rate = rates(emitted[: followed.steady.stop], over)
        plot.line(series, (np.arange(len(rate)) + 1) * over, rate / 1_000)
    return [rates(emitted[followed.steady], over) for emitted in (*followed.inputs, followed.output)]


def silences(report: BenchmarkReport, about: str, followed: Followed) -> None:
    quiet = [longest_silence(emitted[followed.steady]) for emitted in (*followed.inputs, followed.output)]
    report.add(f"{about}: longest silence of an input", max(quiet[:-1]), "s")
    report.add(f"{about}: longest silence of the output", quiet[-1], "s")
    behind = np.mean(followed.output < np.max(followed.inputs, axis=0))
    name = f"{about}: moments when the output is behind the best input"
    report.add(name, float(behind), f"of all, each {1_000 * TICK:.0f} ms", bar=0, at_most=True)
    report.add(f"{about}: answers agree", followed.agrees, "of 1", bar=1)


def plan_switching(report: BenchmarkReport, n: int, quick: bool) -> None:
    """Figure 10: two plans that are slow in turn; a merge of both, without and with feedback to them."""
    first, *_ = plans = list(PLANS)
    race(plans, events(1_000), feedback=True)  # compile
    chunks = events(n)
    ran = {f"search {plan}": race([plan], chunks) for plan in plans}
    ran["merged"] = race(plans, chunks)
    ran["merged, feedback"] = race(plans, chunks, feedback=True)
    plot = report.plot("figure_10", "Figure 10: two plans that are slow in turn", "seconds", "thousand events through")
    plot.foremost = "merged, feedback"
    for name, one in ran.items():
        plot.line(name, one.seconds, progress(one, n))
        report.add(f"Plans: {name}", one.total, "s")
    cheap = race([first], events(n, alternate=False)).total
    report.add("Plans: a stream that is cheap throughout", cheap, "s")
    gain = ran["merged"].total / ran["merged, feedback"].total
    bar = None if quick else FEEDBACK_BAR
    report.add(f"Plans: what feedback gains, dear is {MOST} times as dear", gain, "x", bar=bar)
    for dear in [] if quick else [d for d in SHARES if d != MOST]:
        less = events(n, dear=dear)
        gain = race(plans, less).total / race(plans, less, feedback=True).total
        report.add(f"Plans: what feedback gains, dear is {dear} times as dear", gain, "x")
    same = [agree(one.output, ran["merged"].output) for one in ran.values()]
    report.add("Plans: answers agree", min(same), "of 1", bar=1)


def progress(ran: Ran, n: int) -> list[float]:
    """Thousands of events that are settled at each moment."""
    return [min(cti / 10, n) / 1_000 for cti in ran.through]
