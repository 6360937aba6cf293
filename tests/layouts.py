"""Which layout operators keep their state in, see `cedr.operators.locality`: arrays, or blocks of a few rows."""

from cedr.columnar import blocks
from cedr.operators import locality

LAYOUTS = {
    "arrays": [False],
    "blocks": [True],
    "changing": [False, True, True, False, False, True, True, True],
}


def use_layout(monkeypatch, name):
    """From now on every operator uses this layout; `changing`: now one, now the other."""

    def prefers_blocks(self, rows, arrived, now):
        self.turn = getattr(self, "turn", -1) + 1
        return LAYOUTS[name][self.turn % len(LAYOUTS[name])]

    monkeypatch.setattr(locality.Locality, "prefers_blocks", prefers_blocks)
    monkeypatch.setattr(locality, "FEW", 5)
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
