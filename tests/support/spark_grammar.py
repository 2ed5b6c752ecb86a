"""Sentences of Spark's own grammar, drawn from the automaton of the parser that is installed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_RULE_STOP, _LOOP_END, _BLOCK_STARTS = 7, 12, (3, 4, 5)
_RULE, _ATOM, _SET = 3, 5, 7
_EOF = -1


@dataclass(frozen=True)
class Edge:
    """A step of the automaton: ``rule`` is entered, or one of ``tokens`` is read, or nothing."""

    number: int
    target: int
    rule: int | None = None
    tokens: tuple[int, ...] = ()


@dataclass
class Grammar:
    """The automaton: rules by number, each with its first state, and the edges of each state."""

    names: Sequence[str]
    rules: Sequence[str]
    starts: list[int] = field(default_factory=list)
    stops: set[int] = field(default_factory=set)
    edges: dict[int, list[Edge]] = field(default_factory=dict)

    def rule(self, name: str) -> int:
        """Return the number of a rule."""
        return self.rules.index(name)


def sparks_grammar(spark: Any) -> Grammar:
    """Return the grammar of the parser in a session's JVM."""
    jvm = spark._jvm
    parser = jvm.org.apache.spark.sql.catalyst.parser.SqlBaseParser
    listed = jvm.org.antlr.v4.runtime.atn.ATNSerializer.getSerialized(parser._ATN).toString()
    names = list(parser.tokenNames)
    rules = list(parser.ruleNames)
    return _read(list(map(int, listed.strip("[]").split(", "))), names, rules)


def _read(numbers: list[int], names: Sequence[str], rules: Sequence[str]) -> Grammar:
    """Read ANTLR's serialized form of an automaton, version 4."""
    data = iter(numbers)
    assert next(data) == 4
    next(data)
    next(data)
    found = Grammar(names, rules)
    for state in range(next(data)):
        kind = next(data)
        if kind == 0:
            continue
        next(data)
        if kind == _LOOP_END or kind in _BLOCK_STARTS:
            next(data)
        if kind == _RULE_STOP:
            found.stops.add(state)
    for _ in range(2):
        _taken(data, next(data))
    found.starts = _taken(data, next(data))
    _taken(data, next(data))
    sets = [_set(data) for _ in range(next(data))]
    for number in range(next(data)):
        source, target, kind, one, two, _ = _taken(data, 6)
        rule = two if kind == _RULE else None
        tokens: tuple[int, ...] = ()
        if kind == _ATOM:
            tokens = (one,)
        elif kind == _SET:
            tokens = sets[one]
        found.edges.setdefault(source, []).append(Edge(number, target, rule, tokens))
    return found


def _taken(data: Iterator[int], count: int) -> list[int]:
    return [next(data) for _ in range(count)]


def _set(data: Iterator[int]) -> tuple[int, ...]:
    count, with_end = next(data), next(data)
    found: list[int] = [_EOF] if with_end else []
    for _ in range(count):
        first, last = next(data), next(data)
        found += range(first, last + 1)
    return tuple(found)


class Drawing:
    """Draws sentences of one alternative of a rule; ``samples`` stand for whole rules or tokens."""

    def __init__(
        self, grammar: Grammar, samples: Mapping[str, Sequence[str]], seed: int = 0
    ) -> None:
        self.grammar = grammar
        self.samples = samples
        self.random = random.Random(seed)
        self._lengths: dict[int, float] = {}
        self._reach: dict[int, frozenset[int]] = {}
        self._measure()

    def alternatives(self, rule: str) -> list[Edge]:
        """Return the alternatives of a rule: the edges of its first choice."""
        state = self.grammar.starts[self.grammar.rule(rule)]
        while len(self.grammar.edges[state]) == 1:
            state = self.grammar.edges[state][0].target
        return self.grammar.edges[state]

    def choices(self, edge: Edge) -> frozenset[int]:
        """Return the edges at places with a choice that a walk through an edge can take."""
        return frozenset().union(*self._ways(edge))

    def _ways(self, edge: Edge) -> list[frozenset[int]]:
        found = [self._closure(edge.target)]
        if edge.rule is not None and not self._is_sample(edge.rule):
            found.append(self._closure(self.grammar.starts[edge.rule]))
        return found

    def shortest(self, edge: Edge, goals: Collection[int] = ()) -> str:
        """Return a short sentence through an edge and, if it can be, through some `choices`."""
        left, used = set(goals), set[int]()

        def reached(option: Edge) -> int:
            own = self._ways(option) if option.number not in used else ()
            return sum(g == option.number or any(g in way for way in own) for g in left)

        def choose(options: list[Edge], _: int) -> Edge:
            found = min(options, key=lambda o: (-reached(o), o.number not in left, self._cost(o)))
            used.add(found.number)
            left.discard(found.number)
            return found

        return self._sentence(edge, choose)

    def any(self, edge: Edge) -> str:
        """Return a sentence through an edge that is drawn by chance."""

        def choose(edges: list[Edge], length: int) -> Edge:
            return min(edges, key=self._cost) if length > 25 else self.random.choice(edges)

        return self._sentence(edge, choose)

    def _sentence(self, edge: Edge, choose: Callable[[list[Edge], int], Edge]) -> str:
        words: list[str] = []
        stack: list[int] = []
        while True:
            state = edge.target
            if edge.rule is not None and not self._is_sample(edge.rule):
                stack.append(state)
                state = self.grammar.starts[edge.rule]
            elif edge.rule is not None:
                words.append(self.random.choice(self.samples[self.grammar.rules[edge.rule]]))
            elif edge.tokens:
                words.append(self._word(self.random.choice(edge.tokens)))
            while state in self.grammar.stops:
                if not stack:
                    return " ".join(words)
                state = stack.pop()
            edges = self.grammar.edges[state]
            edge = edges[0] if len(edges) == 1 else choose(edges, len(words))

    def _word(self, token: int) -> str:
        name = self.grammar.names[token]
        return self.random.choice(self.samples.get(name, (name.strip("'"),)))

    def _is_sample(self, rule: int) -> bool:
        return self.grammar.rules[rule] in self.samples

    def _cost(self, edge: Edge) -> float:
        inner = 1.0 if edge.tokens else 0.0
        if edge.rule is not None:
            start = self.grammar.starts[edge.rule]
            inner = 1.0 if self._is_sample(edge.rule) else self._length(start)
        return inner + self._length(edge.target)

    def _length(self, state: int) -> float:
        return self._lengths.get(state, float("inf"))

    def _measure(self) -> None:
        """Find the least number of words from each state to the end of its rule."""
        self._lengths = dict.fromkeys(self.grammar.stops, 0.0)
        changed = True
        while changed:
            changed = False
            for state, edges in self.grammar.edges.items():
                least = min(map(self._cost, edges))
                if least < self._length(state):
                    self._lengths[state] = least
                    changed = True

    def _closure(self, start: int) -> frozenset[int]:
        """Return the choices between a state and the end of its rule, those of inner rules too."""
        if start in self._reach:
            return self._reach[start]
        found: set[int] = set()
        seen, left = {start}, [start]
        while left:
            edges = self.grammar.edges.get(left.pop(), [])
            for edge in edges:
                if len(edges) > 1:
                    found.add(edge.number)
                states = [edge.target]
                if edge.rule is not None and not self._is_sample(edge.rule):
                    states.append(self.grammar.starts[edge.rule])
                left += [state for state in states if state not in seen]
                seen.update(states)
        self._reach[start] = frozenset(found)
        return self._reach[start]
