"""Rules as Paddle's Python API writes them: `paddle.pir.DrrPatternContext`.

    ctx = DrrPatternContext()
    pat = ctx.SourcePattern()
    pat.Op("pd_op.sigmoid")([pat.Tensor("x")], [pat.Tensor("s")])
    pat.Op("pd_op.multiply")([pat.Tensor("x"), pat.Tensor("s")], [pat.Tensor("out")])
    res = pat.ResultPattern()
    res.Op("pd_op.swish")([res.Tensor("x")], [res.Tensor("out")])

    manager.register_pass("silu_fuse_pass", ctx)

The operators are Paddle's, with Paddle's operands and attributes, whatever ours are made of: the pattern is matched in
the program as Paddle has it (`view`), and the result is read as a saved program is (`result`).  The
matcher is the one of `drr`.

As in Paddle, operands are met in their order only, a value in between that others read is no match, and what is
replaced are the tensors of the source that the result makes.  Not as in Paddle: a name that is wrong is refused where
it is written, and a question of the wrong kind (`Int64Attr` of an int32 attribute, which ends Paddle's process) raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.ir.attributes import Attribute
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.passes.formula import Attr
from minipd.passes.matching import Match, Source
from minipd.passes.nodes import Input, OperationNode, Output
from minipd.passes.paddle.match import MatchContext, NormalAttribute
from minipd.passes.paddle.pattern import Graph, ResultPattern, SourcePattern
from minipd.passes.paddle.result import write
from minipd.passes.paddle.view import Place, View, view_of
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.rewriter import inherited

__all__ = ["DrrPatternContext", "ResultPattern", "SourcePattern"]


class DrrPatternContext(RewritePattern):
    """A rule of Paddle's classes.  benefit: see `RewritePattern`.  commutative: operators, by Paddle's names without
    dialect, whose operands may be met in either order.

    >>> from minipd.static import InputSpec
    >>> from minipd.ir.traced import trace
    >>> from minipd.passes import PassManager
    >>> ctx = DrrPatternContext()
    >>> pat = ctx.SourcePattern()
    >>> pat.Op("pd_op.square")([pat.Tensor("x")], [pat.Tensor("y")])
    >>> pat.AddConstraint(lambda match: match.Tensor("x").shape[-1] > 1)
    >>> res = pat.ResultPattern()
    >>> res.Op("pd_op.multiply")([res.Tensor("x"), res.Tensor("x")], [res.Tensor("y")])
    >>> program = trace(lambda x: x.square(), InputSpec([2, 3], "float32")).program
    >>> manager = PassManager()
    >>> manager.register_pass("square_pass", ctx)
    >>> manager.run(program), [op.name() for op in program.global_block()]
    (1, ['pd_op.data', 'pd_op.multiply', 'builtin.shadow_output'])
    """

    def __init__(self, name: str = "DrrPatternContext", benefit: int = 1, commutative: Sequence[str] = ()):
        self._name, self.benefit, self.commutative = name, benefit, frozenset(commutative)
        self.graph, self.result = Graph("SourcePattern"), Graph("ResultPattern")
        self.constraints: list[Callable[[MatchContext], bool]] = []
        self.post_processes: list[Callable[[MatchContext], None]] = []
        self._source: tuple[int, Source] | None = None
        self._seen: View | None = None

    def SourcePattern(self) -> SourcePattern:
        return SourcePattern(self, self.graph)

    @property
    def name(self) -> str:
        return self._name

    # --------------------------------------------------------------------------------------------- the pattern
    @property
    def source(self) -> Source:
        """The source as a pattern.

        Raises: TypeError for one that is none, or that the result has nothing to do with.
        """
        size = len(self.graph.calls) + len(self.result.calls) + len(self.result.assigned)
        if self._source is None or self._source[0] != size:         # more was written since
            self._source = size, self._read()
        return self._source[1]

    def _read(self) -> Source:
        if not self.graph.calls:
            raise TypeError(f"rule {self.name}: expected operators in the source pattern, got none")
        makers = self.graph.made()
        nodes: list[OperationNode] = []
        pending = list(range(len(self.graph.calls)))
        placed: dict[int, OperationNode] = {}
        while pending:                      # Paddle lets an operator be connected before what makes its operands
            ready = [i for i in pending if all(t not in makers or makers[t][0] in placed
                                               for t in self.graph.calls[i][1] if t is not None)]
            if not ready:
                raise TypeError(f"rule {self.name}: expected a source pattern without a circle")
            for i in ready:
                op, inputs, outputs = self.graph.calls[i]
                operands = tuple(None if t is None else Output(placed[makers[t][0]], makers[t][1]) if t in makers
                                 else Input(t) for t in inputs)
                attrs = {k: Attr(a.name) if isinstance(a, NormalAttribute) else a for k, a in op.attributes.items()}
                short = op.name.partition(".")[2]
                placed[i] = PaddleNode(op.name, operands, attrs, len(outputs), None, short in self.commutative)
                nodes.append(placed[i])
            pending = [i for i in pending if i not in placed]
        given = self.result.made().keys() | self.result.assigned.keys()
        results = [Output(placed[i], j) for t, (i, j) in makers.items() if t in given]
        if not results:
            raise TypeError(f"rule {self.name}: expected the result pattern to make a tensor of the source "
                            f"({', '.join(makers)}), got {', '.join(given) or 'nothing'}")
        self._check_result(makers)
        words: dict[str, Input | Output] = {t: Output(placed[i], j) for t, (i, j) in makers.items()}
        return Source.of(f"source pattern of {self.name}", nodes, results, words)

    def _check_result(self, makers: dict[str, tuple[int, int]]) -> None:
        """Raises: TypeError for a result that reads what there will not be."""
        inputs = {t for _, operands, _ in self.graph.calls for t in operands if t is not None and t not in makers}
        bound = {a.name for op, _, _ in self.graph.calls for a in op.attributes.values()
                 if isinstance(a, NormalAttribute)}
        there = set(inputs)
        for op, operands, results in self.result.calls:
            for t in operands:
                if t is not None and t not in there:
                    raise TypeError(f"rule {self.name}: {op.name} reads {t!r}; expected an input of the source "
                                    f"({', '.join(sorted(inputs))}) or a result of an operator before it"
                                    + (", for what is in between is gone" if t in makers else ""))
            for key, a in op.attributes.items():
                if isinstance(a, NormalAttribute) and a.name not in bound:
                    raise TypeError(f"rule {self.name}: attribute {key!r} of {op.name} is Attr({a.name!r}), which no "
                                    f"operator of the source binds; there are {', '.join(sorted(bound)) or 'none'}")
            there.update(t for t in results if t is not None)
        for new, old in self.result.assigned.items():
            if old not in there or new not in makers:
                raise TypeError(f"rule {self.name}: expected Assign of an input or a new tensor to one that the source "
                                f"makes, got {old!r} to {new!r}")

    # ----------------------------------------------------------------------------------------------- rewriting
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        source, view = self.source, view_of(rewriter)
        for theirs in view.ending.get(op, ()):
            for match in source.matches(theirs) if theirs.name() == source.outputs[0].node.name else ():
                place = self._place(view, source, match)
                if place is None:
                    continue
                context = MatchContext(match, place, self.name)
                before = place.before()
                if before is None or not all(allowed(context) for allowed in self.constraints):
                    continue
                for process in self.post_processes:
                    process(context)
                self._rewrite(view, source, context, place, before, rewriter)
                return True
        return False

    def _place(self, view: View, source: Source, match: Match) -> Place | None:
        inputs = [v for p, v in match.values.items() if isinstance(p, Input)]
        return view.place_of(match.ops, inputs, [match.values[o] for o in source.outputs])

    def _rewrite(self, view: View, source: Source, context: MatchContext, place: Place, before: Operation,
                 rewriter: PatternRewriter) -> None:
        rewriter.set_insertion_point(before)
        facts = inherited(list(place.ops)[-1])
        olds = {next(n for n, p in source.words.items() if p == o): place.outputs[context.match.values[o]]
                for o in source.outputs}
        made = write(self.result, context, olds, facts, rewriter)
        for name, replaced in olds.items():
            for old in replaced:
                if name not in self.result.assigned:        # (not an input that is passed through)
                    made[name].stop_gradient = old.stop_gradient
                rewriter.replace_all_uses(old, made[name])
        block = before.parent
        assert block is not None
        block.number()
        for gone in sorted(place.ops, key=lambda o: -o.order):
            if gone not in rewriter.erased and all(r.use_empty() for r in gone.results()):
                rewriter.erase_op(gone)

    # -------------------------------------------------------------------------------------- for `explain`, which
    # asks a rule of the short form the same
    @property
    def sources(self) -> list[Source]:
        return [self.source]

    def seen(self, program: Program) -> Program:
        """The program in which the pattern is looked for."""
        self._seen = View(program)
        return self._seen.program

    def constraint(self, match: Match) -> bool:
        place = self.place(self.source, match)
        return place is None or all(allowed(MatchContext(match, self._at(match), self.name))
                                    for allowed in self.constraints)

    def _at(self, match: Match) -> Place:
        assert self._seen is not None
        found = self._place(self._seen, self.source, match)
        assert found is not None
        return found

    def place(self, source: Source, match: Match) -> Operation | None:
        assert self._seen is not None
        place = self._place(self._seen, source, match)
        return None if place is None else place.before()

    def _names(self, source: Source, match: Match) -> dict[str, Any]:
        return {**match.names(), "match": match}


class PaddleNode(OperationNode):
    """An operator of a pattern.  Attributes are bound with their kinds."""

    def attribute(self, op: Operation, name: str) -> Attribute | None:
        return op.attributes.get(name)


