"""Tensors from elsewhere and to elsewhere, what they say of themselves, and which memory they have."""

import copy
import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import minipd as paddle
from minipd.jit import to_static


# ------------------------------------------------------------------------------------------------ from and to elsewhere
def test_other_makers():
    a = np.array([1.5, 2.5])
    for make in (paddle.as_tensor, paddle.tensor, paddle.asarray, paddle.from_numpy):
        x = make(a)
        a[0] = 9.0
        assert x.dtype == paddle.float64 and x.tolist() == [1.5, 2.5] and x.stop_gradient     # a copy
        a[0] = 1.5
    assert paddle.tensor([[1 + 1j]], dtype="complex128", device="cpu", requires_grad=True).stop_gradient is False
    assert paddle.asarray(paddle.ones([2]), dtype="int32").tolist() == [1, 1]
    assert paddle.tensor.add(x, x).tolist() == [3.0, 5.0] and paddle.tensor.create_tensor("int8").shape == [0]
    with pytest.raises(TypeError, match="from_numpy: expected a numpy array, got list"):
        paddle.from_numpy([1])
    with pytest.raises(ValueError, match="expected the device 'cpu', the only one that minipd uses, got 'gpu:0'"):
        paddle.tensor([1], device="gpu:0")


def test_makers_named_after_dtypes():
    assert paddle.FloatTensor([1, 2]).dtype == paddle.float32 and paddle.LongTensor(2, 3).shape == [2, 3]
    assert paddle.BoolTensor(np.array([0, 2])).tolist() == [False, True] and paddle.HalfTensor().shape == [0]


def test_constants():
    assert paddle.ones([2])[:, paddle.newaxis].shape == [2, 1] and paddle.pi == np.pi and paddle.inf > paddle.e


def test_dlpack_shares_memory():
    x = paddle.to_tensor([1.0, 2.0])
    y = paddle.from_dlpack(paddle.to_dlpack(x))
    y[0] = 5.0
    assert x.tolist() == [5.0, 2.0] and np.from_dlpack(x).tolist() == [5.0, 2.0]
    a = np.array([[1, 2], [3, 4]])
    z, separate = paddle.from_dlpack(a), paddle.from_dlpack(a, copy=True)
    z[1, 1] = 7
    assert a.tolist() == [[1, 2], [3, 7]] and separate.tolist() == [[1, 2], [3, 4]]
    assert paddle.from_dlpack(a.T).strides == [1, 2] and x.__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError, match="from_dlpack: expected a capsule, or an object with __dlpack__, got list"):
        paddle.from_dlpack([1])
    with pytest.raises(TypeError, match="got numpy's uint64"):
        paddle.from_dlpack(np.ones(2, np.uint64))


def test_parts_of_a_file(tmp_path):
    path = tmp_path / "numbers"
    np.arange(10, dtype=np.float32).tofile(path)
    file = paddle.MmapStorage(str(path), 40)
    assert file.get_slice("float32", 2, 8, 3).tolist() == [2.0, 5.0]
    assert file.get_slice(paddle.float32).tolist() == list(range(10))
    assert file.get_slice("float64").shape == [5]
    x = file.get_slice("float32", 0, 2)
    x[0] = 9.0                                              # in memory only
    assert np.fromfile(path, np.float32)[0] == 0.0
    with pytest.raises(ValueError, match="expected a file of at least 41 bytes"):
        paddle.MmapStorage(str(path), 41)


# ------------------------------------------------------------------------------------------------ dtypes, devices
def test_to():
    x = paddle.to_tensor([1.7], stop_gradient=False)
    for y in (x.to("float64"), x.to(paddle.float64), x.to(dtype="float64"), x.to("cpu", "float64"),
              x.to(paddle.CPUPlace(), dtype="float64"), x.to(paddle.ones([1], "float64")), x.to("float64", True),
              x.double(), x.type_as(paddle.ones([1], "float64"))):
        assert y.dtype == paddle.float64 and not y.stop_gradient
    assert x.to("cpu") is x.to(device="cpu") is x.cpu() is x.to("float32") is x
    for bad, text in (((), "got nothing"), (("cpu", "int32", True, 1), "expected to.dtype.*too many"),
                      (("what",), "dtype: expected one of")):
        with pytest.raises(TypeError, match=text):
            x.to(*bad)
    for call in (lambda: x.to("gpu"), x.cuda, lambda: x.to(device="xpu:0"), lambda: paddle.set_device("gpu")):
        with pytest.raises(ValueError, match="expected the device 'cpu'"):
            call()
    with pytest.raises(RuntimeError, match=r"CUDAPlace: expected CPUPlace\(\)"):
        paddle.CUDAPlace(0)


def test_cast_():
    x = paddle.to_tensor([1.7])
    assert x.cast_("int32") is x and x.tolist() == [1] and x.dtype == paddle.int32


@pytest.mark.parametrize(("method", "dtype"), [
    ("float", "float32"), ("half", "float16"), ("bfloat16", "bfloat16"), ("int", "int32"), ("long", "int64"),
    ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"), ("cfloat", "complex64"),
    ("complex128", "complex128"),
])
def test_methods_named_after_dtypes(method, dtype):
    assert getattr(paddle.to_tensor([1.0]), method)().dtype.name == dtype


def test_new_ones():
    x = paddle.ones([2, 2], "int32")
    assert x.new_zeros(2, 3).shape == x.new_zeros([2, 3]).shape == x.new_empty((2, 3)).shape == [2, 3]
    assert x.new_ones(2).dtype == paddle.int32 and x.new_ones([1]).tolist() == [1]
    assert x.new_full([1], 7.5, dtype="float64", requires_grad=True).stop_gradient is False


def test_limits():
    f = paddle.finfo("bfloat16")
    assert (f.min, f.max, f.bits, f.dtype) == (-f.max, float(ml_dtypes.finfo("bfloat16").max), 16, "bfloat16")
    assert paddle.finfo("complex64").eps == 2.0**-23 and paddle.finfo("float64").resolution == 1e-15
    assert (paddle.iinfo("int16").min, paddle.iinfo("uint8").max) == (-32768, 255)
    assert str(paddle.finfo("float32")) == ("paddle.finfo(min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
                                            "resolution=1e-06, smallest_normal=1.17549e-38, tiny=1.17549e-38, bits=32, "
                                            "dtype=float32)")
    with pytest.raises(TypeError, match="finfo: expected a floating dtype, got int32"):
        paddle.finfo("int32")
    with pytest.raises(TypeError, match="iinfo: expected an int dtype, got float32"):
        paddle.iinfo("float32")


# ------------------------------------------------------------------------------------------------ what they say
def test_memory():
    x = paddle.arange(6, dtype="float64").reshape([2, 3])
    assert x.strides == x.get_strides() == x.stride() == [3, 1] and x.stride(-1) == 1
    assert x.T.strides == [1, 3] and not x.T.is_contiguous() and x.T.contiguous().strides == [2, 1]
    assert x.contiguous() is x and paddle.ones([]).strides == []
    assert (x[1].offset, x.offset, x[:, 1:].strides) == (24, 0, [3, 1])
    assert x[1].data_ptr() - x.data_ptr() == 24 and x[1]._is_shared_buffer_with(x.T)
    assert not x.clone()._is_shared_buffer_with(x)
    assert (x.element_size(), x.itemsize, x.nbytes, x.dim(), x.ndimension()) == (8, 8, 48, 2, 2)
    assert repr(x.place) == "Place(cpu)" and x.place == paddle.CPUPlace() and str(x.device) == x.device == "cpu"
    assert x.is_dense() and not (x.is_sparse() or x.is_sparse_coo() or x.is_sparse_csr() or x.is_cuda)
    assert str(x.type) == "VarType.DENSE_TENSOR" and x.layout == "NCHW" and x.get_device() == -1
    assert x.is_same_shape(paddle.ones([2, 3])) and not x.is_same_shape(x.T)
    with pytest.raises(IndexError, match=r"stride: dimension 2 is out of range for f64\[2, 3\]"):
        x.stride(2)
    with pytest.raises(NotImplementedError, match=r"to_sparse_coo of f64\[2, 3\]: minipd has no sparse tensors"):
        x.to_sparse_coo(2)


def test_sizes():
    x = paddle.ones([2, 3, 4])
    size = x.shape
    assert size.numel() == 24 and paddle.Size([]).numel() == 1
    for s, want in ((size + [1], [2, 3, 4, 1]), ((1,) + size, [1, 2, 3, 4]), (size[1:], [3, 4]), (size[:0] * 2, [])):
        assert repr(s) == f"paddle.Size({want})" and s == want
    assert size[-1] == 4 and hash(size) == hash((2, 3, 4))


def test_questions():
    x = paddle.ones([2, 3], "bfloat16")
    assert paddle.shape(x).tolist() == [2, 3] and paddle.numel(x).item() == x.numel().item() == 6
    assert paddle.rank(x).item() == 2 and paddle.rank(x).dtype == paddle.int32
    assert not x.is_empty().item() and paddle.is_empty(paddle.ones([0, 2])).item()
    assert x.is_floating_point() and not x.is_integer() and paddle.ones([1], "uint8").is_integer()
    assert not paddle.ones([1], "bool").is_integer() and not paddle.ones([1], "complex64").is_floating_point()
    assert paddle.is_tensor(x) and not paddle.is_tensor(x.numpy()) and paddle.tolist(x[0]) == [1, 1, 1]
    assert paddle.broadcast_shape([2, 1, 3], [5, 1]) == [2, 5, 3] and paddle.broadcast_shapes() == []
    with pytest.raises(ValueError, match="broadcast_shapes: cannot broadcast shapes"):
        paddle.broadcast_shapes([2], [3])
    assert paddle.ones([2, 3, 4]).mT.shape == [2, 4, 3]


def test_the_shape_in_a_program_is_that_of_the_run():
    @to_static
    def f(x):
        return paddle.shape(x), paddle.numel(x)

    for n in (2, 5):
        shape, numel = f(paddle.ones([n, 3]))
        assert shape.tolist() == [n, 3] and numel.item() == 3 * n


def test_modes():
    assert paddle.in_dynamic_mode()
    paddle.enable_static()
    assert not paddle.in_dynamic_mode()
    paddle.disable_static()
    assert paddle.in_dynamic_mode()
    paddle.disable_signal_handler()
    assert paddle.get_device() == "cpu" and not paddle.is_compiled_with_cuda()


# ------------------------------------------------------------------------------------------------ handles
def test_data():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x.data[0] = 5.0
    assert x.tolist() == [5.0, 2.0] and x.data.stop_gradient
    x.data = paddle.to_tensor([1.0, 2.0, 3.0])
    assert x.shape == [3] and not x.stop_gradient
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_set_():
    source = paddle.to_tensor([11.0, 22.0, 33.0, 44.0, 55.0])
    x = paddle.to_tensor([1.0])
    assert x.set_(source) is x and x.tolist() == source.tolist()
    x.set_(source, shape=[2], stride=[2], offset=4)
    assert x.tolist() == [22.0, 44.0]
    source[1] = 0.0
    x[1] = 9.0
    assert x.tolist() == [0.0, 9.0] and source.tolist() == [11.0, 0.0, 33.0, 9.0, 55.0]
    x.set_()
    assert x.shape == [0]
    for bad in ({"shape": [6]}, {"shape": [3], "stride": [3]}, {"shape": [2], "offset": 16}, {"offset": -4}):
        with pytest.raises(ValueError, match="set_: expected a shape, strides and an offset within the memory"):
            x.set_(source, **bad)
    leaf = paddle.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(RuntimeError, match="set_ on leaf"):
        leaf.set_(source)


def test_resize_():
    x = paddle.to_tensor([1.0, 2.0, 3.0])
    assert x.resize_([2, 1]).tolist() == [[1.0], [2.0]]
    assert x.resize_([2, 2], fill_zero=True).tolist() == [[1.0, 2.0], [0.0, 0.0]]


def test_other_handles():
    x, y = paddle.to_tensor([1.0]), paddle.to_tensor([2.0], stop_gradient=False)
    z = y * 3.0
    assert z.grad_fn is not None and y.grad_fn is None
    x.reconstruct_from_(z)
    x.sum().backward()
    assert y.grad.tolist() == y.grad_.tolist() == [3.0]
    assert z.detach_() is z and z.stop_gradient and z.is_leaf
    assert z.requires_grad_() is z and z.requires_grad and not z.stop_gradient
    z.requires_grad = False
    assert z.stop_gradient and z.value() is z
    assert z.apply(lambda t: t + 1.0).tolist() == [7.0] and z.apply_(lambda t: t + 1.0).tolist() == [7.0] == z.tolist()
    with pytest.raises(RuntimeError, match="apply: expected a tensor without gradient"):
        y.apply(lambda t: t)
    assert z.copy_(paddle.ones([2])).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="copy_: expected a tensor of paddle.float32"):
        z.copy_(paddle.ones([2], "int32"))
    assert str(z.get_tensor()) == ("  - shape: [2]\n  - layout: NCHW\n  - place: Place(cpu)\n  - dtype: float32\n"
                                   "  - data: [1 1]\n")


def test_assign_into_another_shape():
    out = paddle.zeros([3, 3])
    x = paddle.to_tensor([1.0], stop_gradient=False)
    assert paddle.assign(x * 2.0, out) is out and out.shape == [1]
    out.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_retained_gradients():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 2.0
    y.retain_grads()
    y.retain_grads()                                        # once is enough
    y.register_hook(lambda g: g * 10.0)
    x.retain_grads()                                        # a leaf keeps it anyhow
    (y * y).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [40.0, 80.0] and x.grad.tolist() == [80.0, 160.0] and not y.grad.stop_gradient
    paddle.grad((y * y).sum(), x, retain_graph=True)        # which leaves .grad alone
    assert y.grad.tolist() == [40.0, 80.0]
    y.sum().backward()
    assert y.grad.tolist() == [50.0, 90.0]
    with paddle.no_grad():
        y.grad[0] = 0.0                                     # is nobody else's memory
    assert x.grad.tolist() == [100.0, 180.0]
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None
    with pytest.raises(RuntimeError, match="stop_gradient=True, so it gets no gradient"):
        paddle.ones([1]).retain_grads()


def test_cleared_gradients():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x.clear_gradient()
    assert x.grad is None
    (x * x).sum().backward()
    x.clear_grad()
    assert x.grad.tolist() == [0.0, 0.0]
    x.clear_gradient(False)
    assert x.grad is None


def test_deep_copies_have_memory_of_their_own():
    x = paddle.to_tensor([1.0, 2.0])
    x.data = paddle.to_tensor([3.0])
    y = copy.deepcopy(x)
    y[0] = 5.0
    assert x.tolist() == [3.0] and not y._is_shared_buffer_with(x)


def test_older_paths():
    from minipd.base import core, dygraph
    paddle.enable_static()
    with dygraph.guard():
        assert paddle.in_dynamic_mode()
    assert not paddle.in_dynamic_mode()
    paddle.disable_static()
    assert core.CPUPlace is paddle.CPUPlace and core.Shard is paddle.distributed.Shard
    paddle.base.set_flags({"FLAGS_use_stride_kernel": True})
