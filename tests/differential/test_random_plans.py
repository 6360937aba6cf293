"""cedr's answers to random plans over 10,000 rows and more are those of plain polars and DuckDB programs.

A fixed part of `./cedr bench differential`, and every case it has failed with so far. Reduce a failing case with
`./cedr bench differential --only seed=N`.
"""

import pytest
from random_plans.case import draw, failure
from random_plans.kept import FOLDER, load
from random_plans.mix import wanted

KEPT = sorted(FOLDER.glob("*.json"))
SEEDS = [n for n in range(100_000, 100_100) if wanted(n).rows <= 30_000 and wanted(n).slicing != 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_answer(seed: int) -> None:
    case = wanted(seed)
    made = draw(case.seed, case.rows, case.slicing)
    found = failure(made)
    assert found is None, f"{made}\n{found}"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept(path) -> None:
    case = load(path)
    found = failure(case)
    assert found is None, f"{path}\n{case}\n{found}"
