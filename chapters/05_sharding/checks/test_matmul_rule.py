"""The SPMD rule of matmul: which letters, how parts combine, who wins."""

import itertools

import numpy as np

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.dialect import placement_text
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.dist.spmd import infer
from minipd.framework.row import ROWS
from tools.course.checking import check

R, P, S = Replicate(), Partial(), Shard
TP = parse_mesh("tp=2")


def text(*placed):
    """`S(0), R -> P`: of operands and the result; with several mesh axes `[S(0), R]`."""
    words = [", ".join(map(placement_text, p)) for p in placed]
    x, y, out = (f"[{word}]" if "," in word else word for word in words)
    return f"x {x}, y {y} -> {out}"


def rule(x, y, placed, mesh, attrs):
    got = infer(ROWS["matmul"], (np.zeros(x), np.zeros(y)), placed, attrs, mesh)
    return text(*got.inputs, *got.outputs)


def expect(x, y, placed, result, mesh=TP, moved=None, **attrs):
    """The result's placements; operands stay as they are, unless `moved` says what they become."""
    def many(p):
        return p if isinstance(p, tuple) else (p,)
    given, wanted = [many(p) for p in placed], [many(p) for p in moved or placed]
    how = "".join(f", {name}=True" for name in attrs)
    on = text(*given, (R,)).partition(" ->")[0]
    attrs = {"transpose_x": False, "transpose_y": False, **attrs}
    check(text(*wanted, many(result)), lambda: rule(x, y, given, mesh, attrs),
          f"matmul(x {list(x)}, y {list(y)}{how}) that come as {on}: the placements they need -> that of the result")


def test_rows_of_x():
    expect((4, 6), (6, 8), [S(0), R], S(0))


def test_columns_of_y():
    expect((4, 6), (6, 8), [R, S(1)], S(1))


def test_nothing_split():
    expect((4, 6), (6, 8), [R, R], R)


def test_split_over_what_is_summed_is_partial():
    expect((4, 6), (6, 8), [S(1), S(0)], P)


def test_one_operand_split_over_what_is_summed():
    """The other one, which is whole, is sliced: that costs nothing."""
    expect((4, 6), (6, 8), [S(1), R], P, moved=[S(1), S(0)])


def test_a_conflict_n_before_m():
    expect((4, 6), (6, 8), [S(0), S(1)], S(1), moved=[R, S(1)])


def test_a_conflict_m_before_k():
    expect((4, 6), (6, 8), [S(0), S(0)], S(0), moved=[S(0), R])


def test_a_conflict_n_before_k():
    expect((4, 6), (6, 8), [S(1), S(1)], S(1), moved=[R, S(1)])


def test_two_axes_two_letters():
    expect((4, 6), (6, 8), [(S(0), S(1)), (R, S(0))], (S(0), P), mesh=parse_mesh("dp=2,tp=2"))


def test_y_transposed():
    expect((4, 6), (8, 6), [R, S(0)], S(1), transpose_y=True)
    expect((4, 6), (8, 6), [S(1), S(1)], P, transpose_y=True)


def test_x_transposed():
    expect((6, 4), (6, 8), [S(1), R], S(0), transpose_x=True)
    expect((6, 4), (6, 8), [S(0), S(0)], P, transpose_x=True)


def test_a_batch_dimension():
    expect((3, 4, 6), (6, 8), [S(0), R], S(0))
    expect((3, 4, 6), (3, 6, 8), [S(0), S(0)], S(0))
    expect((3, 4, 6), (3, 6, 8), [S(2), S(1)], P)
    expect((3, 4, 6), (3, 6, 8), [S(0), S(2)], S(0), moved=[S(0), S(0)])


def test_batch_dimensions_align_to_the_right():
    expect((5, 3, 4, 6), (3, 6, 8), [R, S(0)], S(1), moved=[S(1), S(0)])
    expect((5, 1, 4, 6), (3, 6, 8), [R, S(0)], S(1))


def test_vectors():
    expect((6,), (6,), [S(0), S(0)], P)
    expect((4, 6), (6,), [S(0), R], S(0))
    expect((6,), (6, 8), [R, S(1)], S(0))
    expect((3, 4, 6), (6,), [S(0), R], S(0))


def test_values_under_every_placement():
    random = np.random.default_rng(5)
    x, y = random.integers(-3, 4, (3, 4)).astype("float32"), random.integers(-3, 4, (4, 2)).astype("float32")
    for transpose_x, transpose_y in itertools.product((False, True), repeat=2):
        a, b = (x.T if transpose_x else x), (y.T if transpose_y else y)
        for p, q in itertools.product([R, S(0), S(1), P], repeat=2):
            def product(mesh, a=a, b=b, p=p, q=q, tx=transpose_x, ty=transpose_y):
                u, v = dist.shard_tensor(a, mesh, [p]), dist.shard_tensor(b, mesh, [q])
                return paddle.matmul(u, v, tx, ty).numpy()
            check(x @ y, lambda product=product: simulate("tp=2", product)[0],
                  f"the values of matmul(x {list(a.shape)} placed {p}, y {list(b.shape)} placed {q}, {transpose_x}, "
                  f"{transpose_y}) on two ranks")
