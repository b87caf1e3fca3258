"""Pictures that are graphs: tapes, programs, use-def chains, fusion groups; and loop nests."""

import numpy as np
import pytest

import minipd as paddle
from minipd import viz
from minipd.framework.meta import Meta
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ops.math import where
from minipd.static.nn import cond
from minipd.viz.autograd.tape import tape_graph
from minipd.viz.cinn.groups import grouped
from minipd.viz.graph import Cluster, Edge, Graph, Node
from minipd.viz.ir.program import program_graph
from minipd.viz.ir.uses import use_def_graph

F32 = np.dtype(np.float32)


def labels(cluster):
    return [n.label for n in cluster.nodes]


def named_edges(graph):
    names = {n.name: n.label.split("\n")[0] for n in graph.root.all_nodes()}
    return [(names[e.source], names[e.target]) for e in graph.edges]


# ------------------------------------------------------------------------------------------------------ programs
def test_uses_become_edges():
    graph = program_graph(trace(lambda x, y: where(x > 0.0, x, y * 2.0), *[Meta((2,), F32)] * 2).program)
    assert named_edges(graph) == [
        ("data input_0", "greater_than"), ("full value=0.0", "greater_than"), ("data input_1", "multiply"),
        ("full value=2.0", "multiply"), ("greater_than", "where"), ("data input_0", "where"), ("multiply", "where"),
        ("where", "shadow_output output_0")]
    assert {e.label.split(": ")[1] for e in graph.edges} == {"f32[2]", "f32[]", "b[2]"}


def test_values_are_called_as_in_the_text():
    program = trace(lambda x: cond(x.sum() > 0.0, lambda: x.exp(), lambda: x.tanh()), Meta((2,), F32)).program
    text = program.to_string("exact")
    for node in program_graph(program).root.all_nodes():
        name, _, rest = node.label.partition("\n")
        for value in rest.splitlines():
            assert f"({value.split(':')[0]}) = \"pd_op.{name.split(' ')[0]}\"" in text


def test_regions_are_clusters():
    program = trace(lambda x: cond(x.sum() > 0.0, lambda: x.exp(), lambda: x), Meta((2,), F32)).program
    graph = program_graph(program)
    assert [(c.label, [n.split("\n")[0] for n in labels(c)]) for c in graph.root.clusters] == [
        ("if true", ["exp"]), ("if false", [])]
    into_if = [source for source, target in named_edges(graph) if target == "if"]
    assert sorted(into_if) == ["data input_0", "exp", "greater_than"]       # what the branches yield, and the condition


def test_arguments_of_a_block_are_nodes():
    graph = program_graph(parse("""{
    (%0) = "pd_op.data" () {name: "x"} : () -> tensor<b>
    (%1) = "pd_op.if" (%0) {} : (tensor<b>) -> tensor<b> {
    ^ %arg_0 {} : tensor<b>
        (%2) = "pd_op.logical_not" (%arg_0) {} : (tensor<b>) -> tensor<b>
        () = "cf.yield" (%2) {} : (tensor<b>) ->
    } {
    }
}
"""))
    assert labels(graph.root.clusters[0]) == ["argument\n%arg_0: b[]", "logical_not\n%2: b[]"]
    assert named_edges(graph)[:3] == [("data x", "argument"), ("argument", "logical_not"), ("logical_not", "if")]


def test_a_part_shows_what_it_reads_from_outside():
    program = trace(lambda x: (x.exp() + 1.0).tanh(), Meta((2,), F32)).program
    ops = [op.name() for op in program.global_block()]
    at = ops.index("pd_op.tanh")
    graph = program_graph(program, ops=range(at, at + 1))
    assert named_edges(graph) == [("add", "tanh")]
    assert {n.kind for n in graph.root.nodes} == {"use", "op"}


def test_a_large_program_has_its_parameters_in_the_nodes_that_use_them():
    class Deep(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.layers = paddle.nn.LayerList([paddle.nn.Linear(2, 2) for _ in range(60)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    model = paddle.jit.to_static(Deep(), input_spec=[paddle.static.InputSpec([2, 2], "float32")])
    graph = program_graph(model.forward.concrete_program.main_program)
    assert len(graph.root.nodes) < 150
    assert sum("\nreads " in n.label for n in graph.root.nodes) >= 60


def test_distributed_types_are_written_with_their_sharding():
    program = parse("""{
    (%0) = "pd_op.data" () {name: "x"} : () -> pd_dist.tensor<4x8xf32, mesh([2], [0, 1], "tp"), S(1)>
}
""")
    assert labels(program_graph(program).root) == ["data x\n%0: f32[4, 8_tp]"]


# -------------------------------------------------------------------------------------------------------- groups
def test_fusion_groups_are_clusters():
    program = trace(lambda x: (x.exp() + 1.0).matmul(x) * 2.0, Meta((4, 4), F32)).program
    graph = program_graph(grouped(program).program)
    fused = [c for c in graph.root.clusters if c.label.startswith("fusion")]
    assert fused and all(c.label.startswith("fusion group: %") for c in fused)
    assert any(label.startswith("exp\n") for c in fused for label in labels(c))
    assert any(label.startswith("matmul") for label in labels(graph.root))
    assert ("add", "matmul") in named_edges(graph)      # what leaves the group leaves from the member that makes it
    assert str(program).count("cinn_op") == 0           # the program itself is not changed


@pytest.mark.parametrize("function, kind, colour", [
    (lambda x: x.exp() + 1.0, "Trivial", "trivial"), (lambda x: (x * x).sum(-1), "Reduce", "reduce"),
    (lambda x: (x - x.max(-1, keepdim=True)).exp().sum(-1), "ReduceTree", "tree"),
    (paddle.nn.functional.softmax, "ReduceTree+Trivial", "treetop"),
    (lambda x: ((x * x).exp(), (x * 2.0).tanh()), "HorizontalFusion", "horizontal")])
def test_the_colour_of_a_group_is_its_kind(function, kind, colour):
    graph = program_graph(grouped(trace(function, Meta((8, 64), F32)).program).program)
    frame, = graph.root.clusters
    assert frame.label.endswith(f", {kind}") and frame.kind == colour


def test_why_a_value_goes_through_memory_is_told():
    def f(x, w):
        return paddle.matmul(x.tanh() * 2.0, w).exp() + 1.0
    program = trace(f, Meta((8, 16), F32), Meta((16, 4), F32)).program
    svg = viz.groups(program).svg
    assert 'class="line second dash"' in svg
    said = [line for line in svg.splitlines() if "→" in line]
    assert len(said) == 2 and "→ matmul: Unsupport" in said[0] and "→ exp: Anchor" in said[1]
    assert 'class="line way"' in svg            # the kernel works over the result of the product
    assert "fused by SinkTrivialPattern" in svg                 # shown when the pointer rests on the arrow
    assert "→ matmul" not in viz.groups(program, ops=range(2)).svg


def test_loops_of_nothing_are_refused():
    program = trace(lambda x, y: x @ y, *[Meta((4, 4), F32)] * 2).program
    with pytest.raises(ValueError, match="expected something that the compiler makes loops of"):
        viz.loops(program)


def test_loops_stand_inside_each_other():
    svg = viz.loops(trace(lambda x: x.exp().sum(-1), Meta((4, 64), F32)).program).svg
    assert svg.index("parallel for (i") < svg.index("vectorize for (j")
    assert 'class="output"' in svg and 'class="input"' in svg


# ------------------------------------------------------------------------------------------------------- use-def
def test_chains_list_the_operands_that_hold_a_value():
    program = trace(lambda x: (x * x) + x, Meta((2,), F32)).program
    x = program.global_block().front().result(0)
    graph = use_def_graph(x)
    assert graph.title == "use-def chain of %0"
    assert named_edges(graph) == [
        ("data", "%0: f32[2]"), ("%0: f32[2]", "use 0: operand 0"), ("%0: f32[2]", "use 1: operand 1"),
        ("%0: f32[2]", "use 2: operand 1"), ("use 0: operand 0", "multiply"), ("use 1: operand 1", "multiply"),
        ("use 2: operand 1", "add")]
    assert [n.label for n in graph.root.nodes if n.kind == "focus"] == ["%0: f32[2]"]
    assert len(use_def_graph(x, depth=3).root.nodes) > len(graph.root.nodes)


def test_chains_of_an_operation():
    program = trace(lambda x, y: (x * y).exp(), *[Meta((2,), F32)] * 2).program
    multiply = next(op for op in program.walk() if op.name() == "pd_op.multiply")
    graph = use_def_graph(multiply)
    assert [n.label for n in graph.root.nodes if n.kind == "focus"] == ["multiply"]
    assert {"%0: f32[2]", "%1: f32[2]", "%2: f32[2]", "exp"} <= {n.label for n in graph.root.nodes}


def test_chains_of_anything_else_are_refused():
    with pytest.raises(TypeError, match="expected a Value or an Operation, got str"):
        viz.use_def("%0")


# ---------------------------------------------------------------------------------------------------------- tape
def a_loss():
    x = paddle.to_tensor([[1.0, 2.0]], stop_gradient=False)
    x.name = "x"
    w = paddle.to_tensor([[1.0], [1.0]], stop_gradient=False)
    w.name = "w"
    return x, w, (paddle.exp(x @ w) * 3.0).sum()


def test_the_tape_shows_calls_what_they_keep_and_where_gradients_go():
    _, _, loss = a_loss()
    graph = tape_graph(loss)
    lines = [n.label.split("\n") for n in graph.root.nodes]
    assert [line[0] for line in lines] == ["leaf x", "leaf w", "matmul", "exp", "multiply", "sum", "result"]
    assert lines[2][2:] == ["to x, y", "keeps x, y"] and lines[3][2:] == ["keeps out"]
    numbers = [int(line[1][1:]) for line in lines[2:-1]]
    assert numbers == sorted(numbers)
    assert named_edges(graph) == [("leaf x", "matmul"), ("leaf w", "matmul"), ("matmul", "exp"), ("exp", "multiply"),
                                  ("multiply", "sum"), ("sum", "result")]
    assert all(e.back for e in graph.edges)
    assert graph.edges[0].label == "the gradient of x"


def test_after_backward_the_tape_is_freed_and_leaves_have_gradients():
    x, w, loss = a_loss()
    loss.backward()
    text = [n.label for n in tape_graph(loss).root.nodes]
    assert sum("freed" in label for label in text) == 4 and sum("has its gradient" in label for label in text) == 2
    del x, w
    assert sum(n.label == "leaf (gone)" for n in tape_graph(loss).root.nodes) == 2


def test_a_leaf_alone_and_several_results():
    x, _, loss = a_loss()
    assert [n.label for n in tape_graph(x).root.nodes] == ["leaf x\nf32[1, 2]"]
    fresh = paddle.to_tensor([1.0], stop_gradient=False)
    assert labels(tape_graph(fresh).root) == ["leaf\nf32[1]"]
    two = tape_graph(loss, x * 2.0)
    assert sum(n.kind == "output" for n in two.root.nodes) == 2


def test_tapes_of_what_has_none_are_refused():
    with pytest.raises(TypeError, match="expected a Tensor, got float"):
        viz.tape(1.0)
    with pytest.raises(ValueError, match=r"expected a tensor with a history, got f32\[1\] with stop_gradient=True"):
        viz.tape(paddle.to_tensor([1.0]))


# ----------------------------------------------------------------------------------------------------------- DOT
def test_dot_escapes_what_it_must_and_turns_arrows():
    graph = Graph("t", Cluster("", "", nodes=[Node("a", 'say "hi"'), Node("b", "x")]),
                  [Edge("a", "b", "f32[2]", back=True)])
    assert r'label="say \"hi\""' in graph.dot() and "dir=back" in graph.dot()


# -------------------------------------------------------------------------------------------------------- layers
def model():
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 4), paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU()))
    return trace(lambda x: net(net[0](x)).sum(), Meta((2, 4), F32)).program


def shape_of(cluster):
    return {"layer": cluster.label, "nodes": [n.label.split("\n")[0] for n in cluster.nodes],
            "inside": [shape_of(c) for c in cluster.clusters]} if cluster.label != "program" else [
                *(n.label.split("\n")[0] for n in cluster.nodes), *map(shape_of, cluster.clusters)]


def test_layers_are_folded_below_a_depth():
    program = model()
    folded = program_graph(program, depth=0)
    assert shape_of(folded.root) == ["data input_0", "0", "1", "sum axis=(0, 1)", "shadow_output output_0"]
    assert [n.label.split("\n")[1] for n in folded.root.nodes if n.kind == "layer"] == [
        "4 operations, 2 parameters", "3 operations, 2 parameters"]
    assert named_edges(folded) == [("data input_0", "0"), ("0", "1"), ("1", "sum axis=(0, 1)"),
                                   ("sum axis=(0, 1)", "shadow_output output_0")]
    open_ = program_graph(program, depth=1)
    assert [c.label for c in open_.root.clusters] == ["0", "1"]
    assert shape_of(open_.root.clusters[1]) == {"layer": "1", "nodes": ["0", "1"], "inside": []}
    whole = program_graph(program, depth=9)
    assert shape_of(whole.root.clusters[1])["inside"] == [
        {"layer": "0", "nodes": ["data captured_2", "matmul", "data captured_3", "add"], "inside": []},
        {"layer": "1", "nodes": ["relu"], "inside": []}]


def test_a_layer_that_is_called_again_is_drawn_again():
    net = paddle.nn.Linear(4, 4)
    program = trace(lambda x: net(net(x).exp()), Meta((2, 4), F32)).program
    for op in program.walk():
        if op.name() in ("pd_op.matmul", "pd_op.add"):
            op.set_str_attr("struct_name", "/fc/")
    graph = program_graph(program, depth=0)
    assert named_edges(graph)[:4] == [("data input_0", "fc"), ("fc", "exp"), ("exp", "fc"), ("fc", "fc")]


def test_a_layer_with_regions_is_folded():
    program = trace(lambda x: cond(x.sum() > 0.0, lambda: x.exp(), lambda: x.tanh()) * 2.0, Meta((2,), F32)).program
    for op in program.global_block():
        if op.name() in ("pd_op.if", "pd_op.greater_than"):
            op.set_str_attr("struct_name", "/gate/")
    graph = program_graph(program, depth=0)
    assert not graph.root.all_clusters()
    assert [(a, b) for a, b in named_edges(graph) if "gate" in (a, b)] == [
        ("sum axis=(0,)", "gate"), ("data input_0", "gate"), ("gate", "multiply")]


def test_a_page_of_layers_opens_and_closes():
    page = viz.layers(model(), "a model", open=1)
    assert page.html.count("<details") == 4 and page.html.count("<details open>") == 2
    assert page.html.count("<svg") == 5 and "1/0 <span" in page.html and "<script" not in page.html
    assert viz.layers(model(), open=0).html.count("<details open>") == 0


def test_names_of_layers_are_text():
    program = trace(lambda x: x.exp() + 1.0, Meta((2,), F32)).program
    for op in program.walk():
        if op.name() == "pd_op.exp":
            op.set_str_attr("struct_name", "/<b>&/")
        if op.name() == "pd_op.add":
            op.set_attr("struct_name", 3)           # no name at all
    page = viz.layers(program).html
    assert "<b>" not in page and "&lt;b&gt;&amp;" in page


@pytest.mark.parametrize("depth", [None, 0, 1])
def test_loops_are_frames_with_arguments(depth):
    from minipd.static.nn import while_loop
    program = trace(lambda x: while_loop(lambda i, x: i < 3, lambda i, x: [i + 1, x * 2.0],
                                         [paddle.zeros([], "int64"), x])[1], Meta((2,), F32)).program
    graph = program_graph(program, depth=depth)
    assert [c.label for c in graph.root.clusters] == ["while"]
    loop = next(op for op in program.walk() if op.name() == "pd_op.while")
    assert len([n for n in graph.root.clusters[0].nodes if n.label.startswith("argument")]) == 2
    assert use_def_graph(loop).root.nodes and use_def_graph(loop.regions[0].front().args()[0]).root.nodes


def test_a_long_program_with_layers_shows_its_layers():
    net = paddle.nn.Sequential(*[paddle.nn.Linear(2, 2) for _ in range(60)])
    program = trace(lambda x: net(x), Meta((2, 2), F32)).program
    assert program._repr_svg_() is None and program._repr_html_().count("<details") == 60
    assert model()._repr_html_() is None
