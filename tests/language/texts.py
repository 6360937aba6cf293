"""Texts that are queries, and random texts made of them: shuffled tokens of them, and copies with typing errors."""

import random

VALID = [
    """EVENT CIDR07_Example
       WHEN UNLESS(SEQUENCE(INSTALL x, SHUTDOWN AS y, 12 hours), RESTART AS z, 5 minutes)
       WHERE {x.machine = y.machine} AND {x.machine = z.machine}""",
    """EVENT a WHEN ATLEAST(2, A x FIRST CONSUME, NOT(B y, SEQUENCE(C c, D, 5)) AS s LAST, 1 hour 30 minutes) @ [1, 9)
       WHERE CorrelationKey(machine, EQUAL) AND [machine EQUAL 'v'] AND x.load NOT BETWEEN 1 AND 2 AND c.on IS NOT NULL
       OUTPUT x.*, COUNT(*) AS c, x.load + 1.5 AS b -- comment
       CONSISTENCY BLOCK 5 s REMEMBER INF LATENCY eager;""",
    """EVENT a WHEN SEQUENCE(A x EACH, NOT(B y, SEQUENCE(C c, D, 5)) AS s, 90 minutes)
       WHERE CorrelationKey(machine, UNIQUE) AND (s.Vs - x.Rt < 5 s OR c.at > TIMESTAMP '2024-01-01')
       OUTPUT x.*, c.machine, SUM(load) AS l, UPPER(x.machine) || 'b' AS b, TIMESTAMP(x.Vs) AS t # [1, )""",
    """EVENT t SELECT f.machine, AVG(f.load + 1) AS load
       FROM feed AS f SLIDING 60s LEFT JOIN other o ON f.machine = o.machine AND f.load > o.load
       WHERE f.n IN (1, 2) AND f.machine LIKE 'a%' GROUP BY f.machine HAVING COUNT(*) > 3 /* why */
       UNION SELECT CASE WHEN load > 3 THEN machine ELSE 'x' END AS machine, CAST(n AS FLOAT) AS load
       FROM "other" # ['2024-01-01', )""",
    """EVENT u WHEN ATMOST(3, A, B, 5 minutes); EVENT v SELECT DISTINCT * FROM u TUMBLING 5 s;
       EVENT w WHEN CANCEL-WHEN(ALL(u p, v q, 5 s), ANY(C r)) WHERE p.count <> r.n LATENCY perfect""",
    """EVENT r WHEN REGEX(A (B | C){2,3} A+ stop?, 5 minutes) AS m OVER feed BY machine ORDER BY n
       REGISTER total = 0, most = -1.5 DEFINE A SET total = total + n DEFINE stop AS load > 3 AND total < 5
       SET total = 0, most = GREATEST(most, load) WHERE m.total > 1 OUTPUT machine, m.end - m.begin AS took # [1, )""",
    """EVENT l RECURSIVE SELECT machine, n FROM feed UNION SELECT l.machine, o.n AS n FROM l
       JOIN other o ON l.n = o.n AND o.load > 1 CONSISTENCY STRONG""",
]

KEYWORDS = """EVENT WHEN WHERE OUTPUT SELECT FROM JOIN ON GROUP BY HAVING AS AND OR NOT IS NULL IN LIKE BETWEEN CASE END
    CAST SEQUENCE ATLEAST UNLESS CANCEL-WHEN ANY EACH FIRST CONSUME CorrelationKey EQUAL [ ] ( ) { } , . ; @ # * + - / %
    || = < <> >= 'text' ' " "quoted" x y A B load machine 5 5.5 1e400 99999999999999999999 minutes h -- /* */ STRONG
    RECURSIVE REGEX( OVER ORDER DEFINE SET REGISTER |
    BLOCK CONSISTENCY LATENCY eager SLIDING UNION TIMESTAMP'2024-01-01' timestamp'x' ? é \\ 1e5s"""
TOKENS = [*KEYWORDS.split(), "\t", "\n", "\0"]


def soup(r: random.Random) -> str:
    return " ".join(r.choices(TOKENS, k=r.randint(0, 25)))


def mutated(r: random.Random) -> str:
    """A query with a few tokens or characters changed, left out or inserted."""
    text = r.choice(VALID)
    for _ in range(r.randint(1, 3)):
        at, width = r.randrange(len(text) + 1), r.choice([0, 1, 1, 5, 20])
        new = r.choice(["", "", r.choice(TOKENS), chr(r.choice([r.randrange(128), r.randrange(0x3000)]))])
        text = text[:at] + new + text[at + width :]
    return text


def exchanged(r: random.Random) -> str:
    """A query with two of its tokens exchanged, or one replaced by another: more of these can be parsed."""
    tokens = r.choice(VALID).split(" ")
    for _ in range(r.randint(1, 2)):
        i, j = r.randrange(len(tokens)), r.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], r.choice([tokens[i], tokens[j]])
    return " ".join(tokens)
