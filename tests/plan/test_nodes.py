"""Every node answers everything a plan asks, in its own class, and nothing else keeps lists of nodes."""

import ast
import inspect
from pathlib import Path

import pytest

import cedr.plan
from cedr.physical import operator_of
from cedr.plan import nodes
from cedr.plan.node import Binary, Independent, Node, RowByRow, Speculative, Unary, Work
from cedr.plan.nodes.lifetimes import Lifetime
from cedr.plan.nodes.sets import PayloadComparison

BASES = {Node, Unary, Binary, Independent, RowByRow, Speculative, Lifetime, PayloadComparison}
PLAN = Path(cedr.plan.__file__).parent


def subclasses(base: type) -> set[type]:
    return {base}.union(*(subclasses(sub) for sub in base.__subclasses__()))


CONCRETE = sorted(subclasses(Node) - BASES, key=lambda node: node.__name__)
WITHOUT_OPERATOR = {nodes.Source, nodes.Level}


def test_all_nodes_are_in_plan_nodes_by_name():
    assert {node.__name__ for node in CONCRETE} <= set(nodes.__all__)
    assert all(node.__module__.startswith("cedr.plan.nodes.") for node in CONCRETE)


@pytest.mark.parametrize("node", CONCRETE, ids=lambda node: node.__name__)
def test_a_node_answers_everything(node):
    assert not inspect.isabstract(node), f"{node.__name__} lacks {', '.join(sorted(node.__abstractmethods__))}"
    assert isinstance(getattr(node, "work", None), Work), f"{node.__name__} does not declare its work"
    has_operator = operator_of.dispatch(node) is not operator_of.dispatch(object)
    assert has_operator == (node not in WITHOUT_OPERATOR)


def test_a_node_without_an_answer_cannot_be_created():
    class Half(Unary):
        pass

    with pytest.raises(TypeError, match="derive_properties"):
        Half(nodes.Source("a", ()))


def test_only_the_choice_of_operators_dispatches_on_nodes():
    names = {node.__name__ for node in CONCRETE}
    for path in sorted(PLAN.rglob("*.py")):
        tree = ast.parse(path.read_text())
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "singledispatch"], path
        if path.parent.name != "nodes":
            assert not [found for found in module_tuples(tree) if len(names & set(found)) > 1], path


def module_tuples(tree: ast.Module) -> list[list[str]]:
    """The names in each tuple that a module assigns to a constant."""
    values = [statement.value for statement in tree.body if isinstance(statement, ast.Assign)]
    tuples = [value.elts for value in values if isinstance(value, ast.Tuple)]
    return [[n.id for element in elements for n in ast.walk(element) if isinstance(n, ast.Name)] for elements in tuples]
