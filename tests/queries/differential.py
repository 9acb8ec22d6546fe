#!/usr/bin/env python3
"""Random documents and random queries to two servers; prints what they answer differently.

    differential.py --url OURS --peer RAVENDB [--seconds 60] [--seed N]

Each round has a seed of its own, printed with each difference; `--seed N --seconds 0` replays one round. A peer answers a query that
widens an automatic index from the index that is about to be replaced, so both are asked again once their indexes have come to rest, and
only answers that differ then are told.
"""

import argparse
import random
import sys
import time

from json_text import Number, dumps
from queries import ask, is_ordered, prepare
from script import Case, Index, Script
from server import Database

TEXTS = ["Abc", "abc", "ABC", "abd", "b", "", "zed 9", "zed 10", "null", "1", "1.0", "10", "true", "quick brown fox", "Fox",
         "the lazy dog", "café", "Straße", "İi", "😀", "2020-01-01", "2020-01-01T12:00:00", "2020-01-01T12:00:00.000Z",
         "a*b", "x y", "_", "-5", "NULL_VALUE"]
NUMBERS = ["0", "1", "2", "10", "-1", "2.5", "1.0", "-0.5", "100", "9007199254740993", "0.1", "1e3", "3", "2.75", "-2"]
FIELDS = ["n", "s", "x", "d", "b", "a", "o.k"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, items):
        return self.random.choice(items)

    def number(self):
        return Number(self.pick(NUMBERS))

    def scalar(self):
        kind = self.random.randrange(10)
        if kind < 4:
            return self.pick(TEXTS)
        if kind < 8:
            return self.number()
        return self.pick([True, False, None, None])

    def document(self):
        makers = {
            "n": self.number, "s": lambda: self.pick(TEXTS), "x": self.scalar, "b": lambda: self.pick([True, False, None]),
            "d": lambda: f"20{self.random.randrange(18, 22)}-0{self.random.randrange(1, 4)}-1{self.random.randrange(0, 9)}"
                         + self.pick(["", "T10:00:00", "T10:00:00.1230000Z", "T10:00:00Z"]),
            "a": lambda: [self.scalar() for _ in range(self.random.randrange(0, 4))],
            "o": lambda: self.pick([None, {}, {"k": self.scalar()}, {"k": self.scalar(), "z": [self.scalar()]}]),
        }
        makers["i"] = lambda: Number(str(self.random.randrange(-3, 9)))
        names = [name for name in makers if self.random.random() < 0.8]
        self.random.shuffle(names)
        return {name: None if self.random.random() < 0.08 else makers[name]() for name in names}

    def literal(self, value):
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Number):
            return str(value) if "e" not in value else str(float(value))
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def predicate(self, fields):
        field = self.pick(fields)
        kind = self.random.randrange(19)
        text = self.literal(self.pick(TEXTS))
        if kind < 4:
            return f"{field} {self.pick(['=', '=', '!='])} {self.literal(self.scalar())}"
        if kind < 7:
            value = self.number() if self.random.random() < 0.6 else self.pick(TEXTS)
            return f"{field} {self.pick(['<', '<=', '>', '>='])} {self.literal(value)}"
        if kind == 7:
            low, high = self.pick([(Number("0"), Number("3")), (Number("0.5"), Number("2.5")), ("a", "c"), ("1", "9"), ("2018-02-01", "2020-02-15")])
            return f"{field} between {self.literal(low)} and {self.literal(high)}"
        if kind == 8:
            items = self.random.sample(TEXTS, self.random.randrange(0, 4))
            return f"{field} {self.pick(['in', 'in', 'all in'])} ({', '.join(self.literal(item) for item in items)})"
        if kind == 9:
            return f"{self.pick(['startsWith', 'endsWith'])}({field}, {text})"
        if kind == 10:
            return f"exists({field})"
        if kind == 11:
            return f"exact({field} = {text})"
        if kind == 12:
            return f"search({field}, {self.literal(self.pick(['fox', 'quick fox', 'FOX dog', 'fo*', 'zed', 'abc b', 'lazy dog', '9 10']))})"
        if kind == 13:
            return f"{field} = {self.pick(['null', 'true', 'false'])}"
        if kind == 14:
            return f"regex({field}, {self.literal(self.pick(['^a', 'b$', '[0-9]', '^zed', 'o']))})"
        if kind == 15:
            return self.pick(["id() = 't/1'", "id() != 't/2'", "id() > 't/3'", "id() <= 'T/2'", "id() between 't/1' and 't/2'", "endsWith(id(), '1')",
                              "startsWith(id(), 'T/')", "search(id(), 't/1*')", "id() in ('t/1', 'T/3', 'nope')", "exists(id())", "regex(id(), '[12]$')"])
        if kind == 16:
            return f"lucene({field}, {self.literal(self.pick(['fox', 'quick AND fox', '+lazy -fox', 'ab*', 'zed', '(abc OR b)', '*', 'a?c']))})"
        if kind == 17:
            return f"search({field}, {self.literal(self.pick(['quick fox', 'zed 9', 'fox']))}, and)"
        return f"boost({field} = {self.literal(self.scalar())}, 2)"

    def condition(self, fields, depth=0):
        if depth > 1 or self.random.random() < 0.5:
            return self.predicate(fields)
        left, right = self.condition(fields, depth + 1), self.condition(fields, depth + 1)
        joined = f"{left} {self.pick(['and', 'or', 'and', 'or', 'and not', 'or not'])} {right}"
        return f"({joined})" if depth else joined

    def query(self, fields, source):
        text = f"from {source}"
        if self.random.random() < 0.85:
            text += f" where {self.condition(fields)}"
        if self.random.random() < 0.3:
            keys = [f"{self.pick([name for name in fields if name not in ('a', 'a[]', 'o.z')])}{self.pick(['', ' as long', ' as double', ' as alphaNumeric'])}{self.pick(['', ' desc'])}"
                    for _ in range(self.pick([1, 1, 2]))]
            text += f" order by {', '.join(keys)}, id()"
            if self.random.random() < 0.3:
                text += self.pick([" limit 3", " limit 2, 4", " limit 100, 1"])
        elif self.random.random() < 0.2:
            text += f" select {', '.join(self.random.sample(['n', 's', 'x', 'a', 'o.k', 'o', 'o.z', 'a[]', 'id() as Id'], 2))}"
        return text

    def projection(self, source):
        """Fields by an alias, of documents and of the index."""
        parts = self.random.sample(["t.n", "t.s as S", "t.x", "t.a as A", "t.o.k", "t.o as O", "t.nope", "id() as Id", "t as Whole"], self.pick([1, 2, 3]))
        text = f"from {source} as t where exists(t.s)"
        return f"{text} select {self.pick(['', '', 'distinct '])}{', '.join(parts)}"

    def groups(self):
        """An automatic map/reduce index. Sums are of integers: those of fractions are exact in ours."""
        keys = self.random.sample(["s", "x", "b", "o.k", "a[]", "array(a)", "n", "d"], self.pick([1, 1, 1, 2]))
        text = f"from Things group by {', '.join(keys)}"
        if "a[]" in keys and "array(a)" in keys:
            return text.replace(", array(a)", "").replace("array(a), ", "") + " select count()"
        if self.random.random() < 0.3 and keys[0] not in ("a[]", "array(a)"):
            text += f" where {keys[0]} {self.pick(['=', '!=', '>', '<='])} {self.literal(self.pick(TEXTS))}"
        if self.random.random() < 0.3:
            text += self.pick([" order by count() desc", " order by sum(i) as long", " order by count()"])
        return text + f" select {', '.join(self.random.sample(['key()', 'count()', 'sum(i)', 'key() as K', 'count() as C'], self.pick([1, 2])))}"

    def facets(self):
        text = "from index 'Things/S'"
        if self.random.random() < 0.5:
            text += f" where {self.predicate(['n', 's', 'x'])}"
        return text + " select " + self.pick([
            "facet(s)", "facet(x)", "facet(b), facet(d)", "facet(n < 1, n >= 1 and n < 3, n > 3)", "facet(s, sum(n))", "facet(a)", "facet(s, max(n), min(n))",
            "facet(n)", "facet(x < 2.5, x >= 2.5)", "facet(s < 'b', s >= 'b')"])


def round_of(seed):
    maker = Maker(seed)
    script = Script(None)
    script.documents = [("Things", f"t/{number}", maker.document()) for number in range(1, maker.pick([5, 12, 30]))]
    script.indexes = [Index("Things/S", ["from t in docs.Things select new { t.n, t.s, t.x, t.d, t.b, t.a }"]),
                      Index("Things/J", ["map('Things', t => ({ n: t.n, s: t.s, x: t.x, d: t.d, b: t.b, a: t.a }))"])]
    cases = []
    for _ in range(40):
        kind, plain = maker.random.random(), [name for name in FIELDS if "." not in name]
        if kind < 0.5:
            text = maker.query(FIELDS + ["o.z", "a[]"], "Things")
        elif kind < 0.65:
            text = maker.query(plain, "index 'Things/S'")
        elif kind < 0.75:
            text = maker.query(plain, "index 'Things/J'")
        elif kind < 0.82:
            text = maker.projection(maker.pick(["Things", "index 'Things/S'"]))
        elif kind < 0.92:
            text = maker.groups()
        else:
            text = maker.facets()
        cases.append(Case(0, text))
    return script, cases


def comparable(case, answer):
    if len(answer) == 2:
        return answer[0]
    rows, extras, total = answer
    return (rows if is_ordered(case) else sorted(rows)), extras, total


def differences(url, peer, seed):
    script, cases = round_of(seed)
    found = 0
    with Database(url, "differential") as ours, Database(peer, "differential") as theirs:
        for database in (ours, theirs):
            prepare(database, script)
        for case in cases:
            for attempt in range(2):
                answers = [ask(database, script, case, "once") for database in (ours, theirs)]
                same = comparable(case, answers[0]) == comparable(case, answers[1])
                if same:
                    break
                for database in (ours, theirs):
                    database.wait_for_indexes()
            if not same:
                found += 1
                print(f"seed {seed}: {case.text}\n  ours   {told(answers[0])}\n  theirs {told(answers[1])}", flush=True)
                named = {row.split(" ")[0] for answer in answers if len(answer) == 3 for row in answer[0]}
                one_sided = set(answers[0][0]) ^ set(answers[1][0]) if all(len(answer) == 3 for answer in answers) else set()
                for _, identity, value in script.documents:
                    if identity in {row.split(" ")[0] for row in one_sided} and identity in named:
                        print(f"    {identity} {dumps(value)}")
    return len(cases), found


def told(answer):
    if len(answer) == 2:
        return f"{answer[0]}: {answer[1][:120]}"
    return f"total {answer[2]} {' '.join(answer[1])} {answer[0]}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--url", required=True, help="the server under test")
    arguments.add_argument("--peer", required=True, help="a real RavenDB")
    arguments.add_argument("--seconds", type=float, default=60, help="no round begins later than this")
    arguments.add_argument("--seed", type=int, default=None, help="the first round's")
    options = arguments.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    end = time.monotonic() + options.seconds
    asked, found = 0, 0
    while True:
        count, different = differences(options.url, options.peer, seed)
        asked, found, seed = asked + count, found + different, seed + 1
        if time.monotonic() >= end:
            break
    print(f"{asked} queries, {found} different; the next seed is {seed}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
