"""What promises can come, held against what each operator needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from cedr.plan.analysis.advice import advice
from cedr.plan.aspects.progress import AT_ONCE, NodeContext, RequiredPromise, Requirement
from cedr.plan.aspects.promises import CTI, Names
from cedr.plan.node import Node, topological
from cedr.plan.nodes import Align, Source
from cedr.plan.properties import all_properties
from cedr.plan.schemes import all_schemes, settling
from cedr.temporal.notebook import pre
from cedr.temporal.time import INF


@dataclass(frozen=True)
class Finding:
    """About one operator that keeps rows.

    unblocked   whether it emits before the end of the stream; `unblocked_by` what lets it emit
    bounded     whether its state stays small however long the stream; `bounded_by` what lets it forget
    missing     what would help where one of them is False
    whose       which results `unblocked` is about, when the others are emitted at once
    """

    node: Node
    unblocked: bool
    unblocked_by: tuple[str, ...]
    bounded: bool
    bounded_by: tuple[str, ...]
    missing: tuple[str, ...] = ()
    whose: str = ""

    def __repr__(self) -> str:
        return as_text([self])

    def __str__(self) -> str:
        when = " or ".join(text if text == AT_ONCE else f"on {text}" for text in self.unblocked_by)
        of = f" {self.whose}" if self.whose else ""
        emits = f"emits {when}" if self.unblocked else f"emits{of} only at end of stream"
        state = f"bounded by {' or '.join(self.bounded_by)}" if self.bounded else "unbounded"
        return f"{emits}; state is {state}"


def as_text(findings: Sequence[Finding]) -> str:
    """As `explain` has it."""
    from cedr.plan.explain import finding_lines

    return "\n".join(text.strip() for text in finding_lines(findings))


class Findings(tuple[Finding, ...]):
    """Findings that prompts and notebooks show as a text."""

    __slots__ = ()

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return pre(str(self))


def analyse(plan: Node) -> tuple[Finding, ...]:
    """A finding for each operator with state of a plan that runs, inputs before users."""
    analysis = Analysis(plan)
    found = [analysis.finding(node) for node in topological(plan)]
    return tuple(finding for finding in found if finding is not None)


class Analysis:
    def __init__(self, plan: Node) -> None:
        self.known, self.schemes, self.useful = all_properties(plan), all_schemes(plan), settling(plan)
        self.waited = rows_that_waited(plan)

    def finding(self, node: Node) -> Finding | None:
        waited = all(self.waited[id(i)] for i in node.inputs)
        context = NodeContext([self.known[id(i)] for i in node.inputs], self.known[id(node)], waited)
        required = node.progress_requirements(context)
        if required is None:
            return None
        emits, forgets = self.answers(node, required.to_emit), [self.answers(node, r) for r in required.to_forget]
        promises = [r for r in (required.to_emit, *required.to_forget) if isinstance(r, RequiredPromise)]
        unmet = [promise for promise in promises if not self.answers(node, promise)]
        return Finding(
            node,
            bool(emits),
            tuple(emits),
            all(forgets),
            tuple(dict.fromkeys(text for texts in forgets for text in texts)) if all(forgets) else (),
            distinct([advice(node, promise, self.useful[id(node)]) for promise in unmet]),
            required.results,
        )

    def answers(self, node: Node, required: Requirement) -> list[str]:
        """All that fulfils a requirement, as text."""
        if isinstance(required, str):
            return [required]
        found = node.common_schemes([self.schemes[id(i)] for i in node.inputs], required.ports)
        helpful = sorted(names for names, ends in found.items() if ends or not required.without_end)
        if isinstance(node, Align):
            helpful = [names for names in helpful if names == CTI or names in node.by]
        return [with_span(names, required) for names in helpful]


def rows_that_waited(plan: Node) -> dict[int, bool]:
    """Of each node whether all its rows went through an Align that waits for promises."""
    known: dict[int, bool] = {}
    for node in topological(plan):
        waits = isinstance(node, Align) and node.block == INF and node.clock is None
        known[id(node)] = waits or (not isinstance(node, Source) and all(known[id(i)] for i in node.inputs))
    return known


def with_span(names: Names, required: RequiredPromise) -> str:
    about = f"promises about {', '.join(names)}" if names else "CTIs"
    return f"{about} and {required.span}" if required.span and not required.without_end else about


def distinct(texts: Sequence[str]) -> tuple[str, ...]:
    """Without those that another one only adds to."""
    return tuple(dict.fromkeys(t for t in texts if not any(u != t and u.startswith(t) for u in texts)))
