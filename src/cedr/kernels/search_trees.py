"""A search tree from each of many roots, repaired when edges are added or removed instead of being rebuilt.

Every node that a root reaches hangs on another, its *parent*, by an edge. An edge that goes matters only where a node
hangs by it. That node is then detached, with all that hangs on it, and looks for another one to hang on: any whose way
up leads to the root. It does not lead there through a detached node, so no node can hang on itself. If there is none
for any of the detached, they are lost, and those that hang on them are detached in turn. In the end what was lost is
reached again where it can be. An edge that comes matters only to nodes that are not reached.

    parent[r, v]   the node on which v hangs in the tree of root r; NONE if v is not reached

A graph is lists of edges by node: `out_first[u]`, then `out_next[e]`, and the same for those that come in; no two edges
have the same nodes. A root as the beginning of paths needs no parent; as a node that a path leads back to it has one
like others. The way up is walked without a note while it is short; nodes on long ones are noted as rooted.
"""

import numpy as np
from numba import njit

NONE = np.int32(-1)
DETACHED = np.int32(-2)
SHORT = 32
MANY = 64


@njit(cache=True)
def link(edges, start, end, out_first, out_next, out_prev, in_first, in_next, in_prev):
    """Put edges into the lists of their nodes."""
    for e in edges:
        insert(e, start[e], out_first, out_next, out_prev)
        insert(e, end[e], in_first, in_next, in_prev)


@njit(cache=True)
def unlink(edges, start, end, out_first, out_next, out_prev, in_first, in_next, in_prev):
    for e in edges:
        remove(e, start[e], out_first, out_next, out_prev)
        remove(e, end[e], in_first, in_next, in_prev)


@njit(cache=True)
def insert(e, node, first, following, before):
    head = first[node]
    following[e], before[e] = head, -1
    if head >= 0:
        before[head] = e
    first[node] = e


@njit(cache=True)
def remove(e, node, first, following, before):
    if before[e] >= 0:
        following[before[e]] = following[e]
    else:
        first[node] = following[e]
    if following[e] >= 0:
        before[following[e]] = before[e]


@njit(cache=True)
def rooted(node, parent, root, known, sure):
    """Whether the way up from a node leads to the root. Nodes with `known[x] == sure` are known to."""
    x = node
    for _ in range(SHORT):
        if x == root:
            return True
        if x < 0:
            return False
        x = parent[x]
    far = x
    while x >= 0 and x != root and known[x] != sure:
        x = parent[x]
    if x < 0:
        return False
    while far != root and known[far] != sure:
        known[far] = sure
        far = parent[far]
    return True


@njit(cache=True)
def hang(v, parent, root, known, sure, start, in_first, in_next):
    """Hang a node on a rooted one; whether there is one."""
    e = in_first[v]
    while e >= 0:
        if rooted(start[e], parent, root, known, sure):
            parent[v] = start[e]
            return True
        e = in_next[e]
    return False


@njit(cache=True)
def let_go(parent, root, gone, known, sure, start, end, out_first, out_next, in_first, in_next):
    """Nodes that hung by edges that are gone hang on others. Returns those that find none, which are lost, and all that
    were detached."""
    lost = [np.int64(0) for _ in range(0)]
    detached = [np.int64(0) for _ in range(0)]
    waiting = [np.int64(0) for _ in range(0)]
    for e in range(len(gone)):
        if parent[gone[e, 1]] == gone[e, 0]:
            parent[gone[e, 1]] = DETACHED
            waiting.append(gone[e, 1])
            detached.append(gone[e, 1])
    while len(waiting) > 0:
        left = [np.int64(0) for _ in range(0)]
        for v in waiting:
            if not hang(v, parent, root, known, sure, start, in_first, in_next):
                left.append(v)  # noqa: PERF401 numba's lists are not extended by generators
        if len(left) < len(waiting):
            waiting = left  # what hangs again may hold others
            continue
        waiting = [np.int64(0) for _ in range(0)]
        for v in left:
            lost.append(v)
            parent[v] = NONE
        for v in left:
            f = out_first[v] if v != root else NONE
            while f >= 0:
                if parent[end[f]] == v:
                    parent[end[f]] = DETACHED
                    waiting.append(np.int64(end[f]))
                    detached.append(np.int64(end[f]))
                f = out_next[f]
    return lost, detached


@njit(cache=True)
def reach(parent, root, lost, come, start, end, out_first, out_next, in_first, in_next):
    """Hang nodes on that were lost and can be reached after all, and those that new edges reach; returns them."""
    found = [np.int64(0) for _ in range(0)]
    for v in lost:
        e = in_first[v]
        while e >= 0 and parent[v] < 0:
            if start[e] == root or parent[start[e]] >= 0:
                parent[v] = start[e]
                found.append(v)
            e = in_next[e]
    for e in range(len(come)):
        u, v = come[e]
        if parent[v] < 0 and (u == root or parent[u] >= 0):
            parent[v] = u
            found.append(v)
    place = 0
    while place < len(found):
        v = found[place]
        place += 1
        e = out_first[v]
        while e >= 0:
            if parent[end[e]] < 0:
                parent[end[e]] = v
                found.append(np.int64(end[e]))
            e = out_next[e]
    return found


@njit(cache=True)
def repair(parents, rows, roots, gone, come, start, end, out_first, out_next, in_first, in_next):
    """Apply edges, as pairs of nodes, that were removed and added; the lists are up to date already.

    Returns rows and nodes whose reachability changed, and whether they are reached now. When there are many, a tree is
    copied in one pass and repaired in the copy: random access to memory takes longer.
    """
    nodes = parents.shape[1]
    was_lost = np.zeros(nodes, dtype=np.bool_)
    known = np.full(nodes, -1, dtype=np.int32)
    many = MANY * (len(gone) + len(come)) > nodes
    near = np.empty(nodes, dtype=parents.dtype)
    changed_row = [np.int64(0) for _ in range(0)]
    changed_node = [np.int64(0) for _ in range(0)]
    reached = [True for _ in range(0)]
    for row in rows:
        parent, root = parents[row], roots[row]
        if many:
            near[:] = parent
            parent = near
        lost, detached = let_go(parent, root, gone, known, row, start, end, out_first, out_next, in_first, in_next)
        for v in lost:
            was_lost[v] = True
        found = reach(parent, root, lost, come, start, end, out_first, out_next, in_first, in_next)
        for v in found:
            if not was_lost[v]:
                changed_row.append(row)
                changed_node.append(v)
                reached.append(True)
        for v in lost:
            was_lost[v] = False
            if parent[v] < 0:
                changed_row.append(row)
                changed_node.append(v)
                reached.append(False)
        if many:
            for v in detached:
                parents[row, v] = near[v]
            for v in found:
                parents[row, v] = near[v]
    return np.array(changed_row), np.array(changed_node), np.array(reached)
