"""Arithmetic, reductions, shapes, indices."""

from tools.interop.programs.registry import data, program


@program
def scalars(p):
    x = data(p)
    return ((x * 2 + 1 - 3) * 0.5).sum()


@program
def scalars_on_the_left(p):
    x = data(p)
    return (1 - x).mean() + (2.0 * x).sum()


@program
def negation(p):
    return (-data(p)).sum()


@program
def divided(p):
    return (data(p) / 4).sum()


@program
def pairs(p):
    x, y = data(p), data(p, "y", [1, 6])
    return ((x + y) * (x - y) / (y * y + 1)).mean()


@program
def open_batch(p):
    x = data(p, shape=[-1, 6])
    return (x * x).sum()


@program
def unary(p):
    x = data(p)
    return (p.exp(x) + p.tanh(x) + p.sin(x) + p.cos(x)).sum()


@program
def roots(p):
    x = data(p)
    y = x * x + 1
    return (p.sqrt(y) + p.rsqrt(y) + p.log(y) + p.square(x) + p.abs(x)).sum()


@program
def sums(p):
    x = data(p, shape=[2, 3, 4])
    return x.sum(axis=1).mean() + x.sum(axis=[0, 2], keepdim=True).sum() + x.sum(axis=-1).sum()


@program
def means(p):
    x = data(p, shape=[2, 3, 4])
    return x.mean(axis=-1, keepdim=True).sum() + p.mean(x, axis=[0, 1]).sum() + x.mean()


@program
def extremes(p):
    x = data(p)
    return x.max(axis=-1).sum() + x.min(axis=0).sum() + x.max()


@program
def products(p):
    x = data(p)
    return p.prod(x) + p.prod(x, axis=1).sum()


@program
def log_sums(p):
    return p.logsumexp(data(p), axis=1).sum()


@program
def matmuls(p):
    x, w = data(p), data(p, "w", [6, 3])
    return (p.matmul(x, w) @ p.matmul(w, x, True, True)).sum()


@program
def reshaped(p):
    return (p.reshape(data(p), [3, 4]) * 2.0).sum()


@program
def reshaped_with_the_rest(p):
    return (p.reshape(data(p), [-1, 4]) * 2.0).sum()


@program
def transposed(p):
    x = data(p)
    return (p.transpose(x, [1, 0]) @ x).sum()


@program
def squeezed(p):
    x = data(p, shape=[2, 1, 3])
    return (p.squeeze(x, 1) * p.unsqueeze(data(p, "y", [3]), 0)).sum()


@program
def unsqueezed_at_the_end(p):
    return (p.unsqueeze(data(p), -1) * 2.0).sum()


@program
def joined(p):
    x = data(p)
    return (p.concat([x, x * 2], axis=1) * 3.0).sum()


@program
def joined_at_the_end(p):
    x = data(p)
    return (p.concat([x, x], axis=-1) * 3.0).sum()


@program
def stacked(p):
    x = data(p)
    return (p.stack([x, x * 2]) * 3.0).sum()


@program
def split_in_two(p):
    a, b = p.split(data(p), 2, axis=1)
    return (a * b).sum()


@program
def split_in_sections(p):
    a, b = p.split(data(p), [2, 4], axis=1)
    return a.sum() + (b * b).sum()


@program
def sliced(p):
    x = data(p)
    return (x[:, 1:4] * 2.0).sum()


@program
def one_row(p):
    return (data(p)[0] * 2.0).sum()


@program
def last_column(p):
    return (data(p)[:, -1] * 2.0).sum()


@program
def every_second(p):
    return (data(p)[:, ::2] * 2.0).sum()


@program
def new_axis(p):
    return (data(p)[:, None] * 2.0).sum()


@program
def expanded(p):
    return (p.expand(data(p, shape=[1, 6]), [3, 6]) * data(p, "y", [3, 6])).sum()


@program
def flattened(p):
    return (p.flatten(data(p, shape=[2, 3, 4]), 1) * 2.0).sum()


@program
def tiled(p):
    return (p.tile(data(p), [2, 1]) * 2.0).sum()


@program
def clipped(p):
    return p.clip(data(p), -0.5, 0.5).sum()


@program
def masked(p):
    x = data(p)
    return p.where(x > 0, x, x * 0.5).sum()


@program
def compared(p):
    x, y = data(p), data(p, "y")
    p.logical_and(x < y, p.logical_not(x >= y))


@program
def cast(p):
    return (data(p).astype("float64") * 2.0).sum()


@program
def powers(p):
    return (p.pow(data(p), 2.0) + data(p, "y") ** 3).sum()


@program
def gathered(p):
    index = data(p, "index", [3], "int64", stop=True)
    return (p.gather(data(p), index, axis=1) * 2.0).sum()


@program
def chosen(p):
    x = data(p)
    p.argmax(x, axis=-1)
    p.topk(x, 2)
    p.cumsum(x, axis=1)


@program
def triangles(p):
    x = data(p, shape=[3, 3])
    return (p.tril(x) + p.triu(x, 1) * 2.0).sum()


@program
def made(p):
    x = data(p)
    return (x + p.ones([2, 6]) + p.zeros([6]) + p.full([1], 2.5)).sum()


@program
def ranges(p):
    p.arange(0, 10, 2)
    p.linspace(0, 1, 5)


@program
def likes(p):
    x = data(p)
    return (x * p.ones_like(x) + p.full_like(x, 3.0)).sum()


@program
def variance(p):
    return p.var(data(p), axis=1).sum()


@program
def norms(p):
    return p.norm(data(p))


@program
def lerp_and_norms_of_rows(p):
    x, y = data(p), data(p, "y")
    return (p.maximum(x, y) + p.minimum(x, y) + p.floor(x)).sum()


@program
def sorted_values(p):
    x = data(p)
    p.argsort(x, axis=-1)
    return p.sort(x, axis=1).sum() + p.topk(x, 2, axis=-1)[0].sum()


@program
def sorted_downwards(p):
    return (p.sort(data(p), axis=0, descending=True) * data(p, "y")).sum()


@program
def scattered(p):
    index = p.arange(2)
    return (p.scatter(data(p), index, data(p, "y")) * 2.0).sum()


@program
def gathered_points(p):
    index = data(p, "index", [3, 1], "int64", stop=True)
    return (p.gather_nd(data(p), index) * 2.0).sum()


@program
def taken_along(p):
    index = data(p, "index", [2, 2], "int64", stop=True)
    return (p.take_along_axis(data(p), index, 1) * 2.0).sum()


@program
def put_along(p):
    index = data(p, "index", [2, 2], "int64", stop=True)
    return p.put_along_axis(data(p), index, data(p, "y", [2, 2]), 1).sum()


@program
def selected_rows(p):
    index = data(p, "index", [3], "int64", stop=True)
    return (p.index_select(data(p), index, axis=0) * 3.0).sum()


@program
def indexed_by_a_tensor(p):
    index = data(p, "index", [3], "int64", stop=True)
    return (data(p)[index] * 3.0).sum()


@program
def sliced_twice(p):
    x = data(p, shape=[4, 5, 6])
    return (x[1:3, ::2, -1] * 2.0).sum()


@program
def ellipsis(p):
    x = data(p, shape=[4, 5, 6])
    return (x[..., 1:3] * 2.0).sum() + x[0, ..., 0].sum()


@program
def reversed_rows(p):
    return (data(p)[::-1] * data(p, "y")).sum()


@program
def written_number(p):
    x = data(p) * 1.0
    x[:, 1:3] = 0.5
    return x.sum()


@program
def written_tensor(p):
    x = data(p) * 1.0
    x[0] = data(p, "y", [6])
    return x.sum()


@program
def einsums(p):
    p.einsum("ij,kj->ik", data(p), data(p, "y", [3, 6])).sum()          # its gradient reads what only it has made


@program
def batched_products(p):
    x, y = data(p, shape=[2, 3, 4]), data(p, "y", [2, 4, 5])
    return p.bmm(x, y).sum()


@program
def products_and_sums(p):
    x, y, z = data(p, shape=[2, 3]), data(p, "y", [3, 4]), data(p, "z", [2, 4])
    return p.addmm(z, x, y, beta=0.5, alpha=2.0).sum()


@program
def dots(p):
    x, y = data(p, shape=[4]), data(p, "y", [4])
    return p.dot(x, y) + p.mv(data(p, "m", [3, 4]), y).sum() + p.outer(x, y).sum()


@program
def stacked_at_the_end(p):
    x, y = data(p), data(p, "y")
    return (p.stack([x, y], axis=-1) * 2.0).sum()


@program
def unstacked(p):
    a, b = p.unstack(data(p), axis=0)
    return (a * b).sum()


@program
def unbound(p):
    a, b = p.unbind(data(p), axis=0)
    return (a * b).sum()


@program
def chunks(p):
    a, b, c = p.chunk(data(p), 3, axis=-1)
    return (a * b + c).sum()


@program
def flipped(p):
    return (p.flip(data(p), [1]) * p.roll(data(p, "y"), 1, 0)).sum()


@program
def broadcast(p):
    return (p.broadcast_to(data(p, shape=[1, 6]), [2, 6]) * data(p, "y")).sum()


@program
def expanded_like(p):
    return (p.expand_as(data(p, shape=[1, 6]), data(p, "y")) * 2.0).sum()


@program
def repeated(p):
    return (p.repeat_interleave(data(p), 2, axis=1) * 2.0).sum()


@program
def padded(p):
    x = data(p, shape=[2, 3, 4, 4])
    return (p.nn.functional.pad(x, [1, 1, 0, 2]) * 2.0).sum()


@program
def deviations(p):
    x = data(p)
    return p.std(x, axis=1).sum() + p.median(x)


@program
def norms_of_rows(p):
    x = data(p)
    return p.norm(x, p=1, axis=1).sum() + p.norm(x, axis=-1, keepdim=True).sum()


@program
def running_sums(p):
    x = data(p)
    return (p.cumsum(x, axis=1) * p.cumprod(x, dim=1)).sum()


@program
def truths(p):
    x, y = data(p), data(p, "y")
    p.all(x > y)
    p.any(p.logical_or(x == y, x != y), axis=1)
    p.isnan(x), p.isfinite(x), p.logical_xor(x > 0, y > 0)


@program
def whole_numbers(p):
    x, y = data(p, "x", [2, 3], "int64", stop=True), data(p, "y", [2, 3], "int64", stop=True)
    x // (y + 1), x % (y + 3), p.bitwise_and(x, y), x * 2 + 1, -x, x.sum(), p.max(x), x.astype("float32").mean()


@program
def powers_of_numbers(p):
    x = data(p)
    return (x ** 2).sum() + (2.0 ** x).sum() + p.pow(x, data(p, "y", [1])).sum() + (x ** 0.5).sum()


@program
def rounded(p):
    x = data(p)
    p.round(x), p.ceil(x), p.floor(x), p.trunc(x), p.sign(x)


@program
def functions(p):
    x = data(p)
    return (p.erf(x) + p.log1p(p.abs(x)) + p.expm1(x) + p.sinh(x) + p.cosh(x) + p.atan(x) + p.asinh(x)
            + p.reciprocal(x) + p.log2(p.exp(x)) + p.log10(p.exp(x))).sum()


@program
def functions_of_two(p):
    x, y = data(p), data(p, "y")
    return (p.fmax(x, y) + p.fmin(x, y) + p.atan2(x, y) + p.remainder(x, y)).sum()


@program
def lerps(p):
    x, y = data(p), data(p, "y")
    return p.lerp(x, y, 0.3).sum()


@program
def divided_by_thirds(p):
    x = data(p)
    return (x / 3).sum() + (1 / x).sum()


@program
def halves(p):
    x = data(p, dtype="float16")
    ((x * 2 + 1) / 3).astype("float32").sum()


@program
def doubles(p):
    x = data(p, dtype="float64")
    return ((x * 0.1 + 0.3) / 3).sum()


@program
def grids(p):
    a, b = p.meshgrid(data(p, shape=[2]), data(p, "y", [3]))
    return (a * b).sum()


@program
def diagonals(p):
    x = data(p, shape=[3, 3])
    return p.diag(data(p, "v", [3])).sum() + p.trace(x) + p.diagonal(x).sum()


@program
def open_shapes(p):
    x = data(p, shape=[-1, 6])
    return (x.reshape([-1, 2, 3]).transpose([0, 2, 1]).flatten(1) * 2.0).sum()


@program
def open_sizes(p):
    x = data(p, shape=[-1, 6])
    n = p.shape(x)[0]
    return (p.reshape(x, [n, 3, 2]) * 2.0).sum()


@program
def one_hots(p):
    ids = data(p, "ids", [4], "int64", stop=True)
    return (p.nn.functional.one_hot(ids, 5) * data(p, "y", [4, 5])).sum()


@program
def selected_by_mask(p):
    x, y = data(p), data(p, "y")
    return p.where(x > y, x, y).sum() + p.masked_fill(x, x > 0, 0.5).sum()


@program
def eyes(p):
    return (p.eye(3) @ data(p, shape=[3, 3])).sum() + p.numel(data(p, "y")).astype("float32")


@program
def inverses(p):
    x = data(p, shape=[3, 3])
    y = p.matmul(x, x, transpose_y=True) + p.eye(3)
    return p.inverse(y).sum() + p.linalg.det(y) + p.linalg.cholesky(y).sum()


@program
def moved_axes(p):
    x = data(p, shape=[2, 3, 4])
    return (p.moveaxis(x, 0, 2) * 2.0).sum() + x.mT.sum() + p.swapaxes(x, 0, 1).sum()


@program
def variables(p):
    w = p.create_parameter([3, 4], "float32", name="weight")
    b = p.create_parameter([4], "float32", is_bias=True, name="bias")
    return (data(p, shape=[2, 3]) @ w + b).sum()
