"""Saved models asked through `paddle.inference`."""

import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest

import minipd as paddle
from minipd import inference, nn
from minipd.framework.errors import InputError
from minipd.nn import functional as F
from minipd.passes.pipelines import INFERENCE_PASSES, inference_passes
from minipd.passes.table import pass_names
from minipd.static import InputSpec

#: passes that take in what the one under test has made
LATER = ("fused_gemm_epilogue_pass", "compile_fused_rows_pass")


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(7, 5), nn.Linear(5, 3)

    def forward(self, image):
        h = self.hidden(image)
        h = h * F.sigmoid(h)
        return self.out(h), h


def drawn(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype("float32")


@pytest.fixture
def saved(tmp_path):
    """A net, and the configuration that reads it."""
    net = Net()
    paddle.jit.save(net, f"{tmp_path}/net", [InputSpec([None, 7], "float32", "image")])
    return net, inference.Config(f"{tmp_path}/net.json", f"{tmp_path}/net.pdiparams")


def expected(net, x):
    return [y.numpy() for y in net(paddle.to_tensor(x))]


@pytest.mark.parametrize("optimise", [True, False])
def test_handles_and_tensors_give_what_the_layer_gives(saved, optimise):
    net, config = saved
    config.switch_ir_optim(optimise)
    predictor = inference.create_predictor(config)
    assert predictor.get_input_names() == ["image"]
    assert predictor.get_output_names() == ["fetch_name_0", "fetch_name_1"]
    handle = predictor.get_input_handle("image")
    for batch in (2, 4):                        # the size that is open
        x = drawn(batch, 7)
        handle.reshape(x.shape)
        handle.copy_from_cpu(x)
        assert handle.shape() == [batch, 7] and handle.type() is inference.DataType.FLOAT32
        assert predictor.run() is None
        for name, want in zip(predictor.get_output_names(), expected(net, x), strict=True):
            got = predictor.get_output_handle(name)
            assert got.shape() == list(want.shape)
            np.testing.assert_allclose(got.copy_to_cpu(), want, rtol=1e-6)
        found = predictor.run([paddle.to_tensor(x)])
        np.testing.assert_allclose(found[0].numpy(), expected(net, x)[0], rtol=1e-6)


def test_the_passes_run_and_say_what_they_did(saved):
    net, config = saved
    for name in LATER:
        config.delete_pass(name)
    predictor = inference.create_predictor(config)
    assert [run.name for run in predictor.statistics] == [n for n in inference_passes() if n not in LATER]
    assert "pd_op.silu" in [op.name() for op in predictor.program.walk()]
    config.switch_ir_optim(False)
    plain = inference.create_predictor(config)
    assert plain.statistics == [] and "pd_op.sigmoid" in [op.name() for op in plain.program.walk()]


def test_passes_can_be_taken_out_put_in_and_added(saved):
    net, config = saved
    config.delete_pass("silu_fuse_pass")
    builder = config.pass_builder()
    assert builder.all_passes() == [name for name in inference_passes() if name != "silu_fuse_pass"]
    builder.delete_pass("compile_fused_rows_pass")
    builder.append_pass("silu_fuse_pass")
    assert inference.create_predictor(config).statistics[-1].changes == 1
    config.enable_custom_passes(["dead_code_elimination_pass"], custom_pass_only=True)
    assert [run.name for run in inference.create_predictor(config).statistics] == ["dead_code_elimination_pass"]
    builder.set_passes(["no_such_pass"])
    with pytest.raises(KeyError, match="no_such_pass"):
        inference.create_predictor(config)


def test_the_names_of_the_pipeline_are_in_the_table():
    assert set(INFERENCE_PASSES) <= set(pass_names())
    twice = {name for name in INFERENCE_PASSES if INFERENCE_PASSES.count(name) > 1}
    assert twice <= {"common_subexpression_elimination_pass", "constant_folding_pass"}      # behind what patterns leave


def test_a_predictor_folds_what_depends_on_parameters_alone(tmp_path):
    class Doubled(nn.Layer):
        def __init__(self):
            super().__init__()
            self.w = self.create_parameter([3], default_initializer=nn.initializer.Constant(2.0))

        def forward(self, x):
            return x * (self.w * 3.0)
    paddle.jit.save(Doubled(), f"{tmp_path}/net", [InputSpec([2, 3], "float32", "x")])
    predictor = inference.create_predictor(inference.Config(str(tmp_path)))
    assert all(r.stop_gradient for op in predictor.program.walk() for r in op.results())
    y, = predictor.run([paddle.ones([2, 3])])
    np.testing.assert_array_equal(y.numpy(), np.full((2, 3), 6, "float32"))


def test_other_sizes_than_were_saved(tmp_path):
    net = Net()
    paddle.jit.save(net, f"{tmp_path}/net", [InputSpec([2, 7], "float32", "image")])
    predictor = inference.create_predictor(inference.Config(str(tmp_path), "net"))
    for batch in (3, 2, 3):
        x = drawn(batch, 7)
        got = predictor.run([paddle.to_tensor(x)])
        np.testing.assert_allclose(got[0].numpy(), expected(net, x)[0], rtol=1e-6)
    with pytest.raises(ValueError, match="inner sizes: expected 6, got 7"):
        predictor.run([paddle.ones([2, 6])])


def test_an_input_is_copied_or_shared(saved):
    net, config = saved
    predictor = inference.create_predictor(config)
    handle, result = predictor.get_input_handle("image"), predictor.get_output_handle("fetch_name_0")
    x = drawn(2, 7)
    want = expected(net, x)[0]
    handle.copy_from_cpu(x)
    x[:] = 0
    predictor.run()
    got = result.copy_to_cpu()
    np.testing.assert_allclose(got, want, rtol=1e-6)
    got[:] = 0                                  # a copy, too
    np.testing.assert_allclose(result.copy_to_cpu(), want, rtol=1e-6)
    tensor = paddle.to_tensor(drawn(2, 7) + 1)
    handle.share_external_data(tensor)
    predictor.run()
    np.testing.assert_allclose(result.copy_to_cpu(), net(tensor)[0].numpy(), rtol=1e-6)


def test_clones_have_inputs_and_results_of_their_own(saved):
    net, config = saved
    pool = inference.PredictorPool(config, 3)
    predictors = [pool.retrieve(i) for i in range(3)]
    assert predictors[0].program is predictors[1].program
    for i, predictor in enumerate(predictors):
        predictor.get_input_handle("image").copy_from_cpu(drawn(1, 7) + i)
        predictor.run()
    for i, predictor in enumerate(predictors):
        want = expected(net, drawn(1, 7) + i)[0]
        np.testing.assert_allclose(predictor.get_output_handle("fetch_name_0").copy_to_cpu(), want, rtol=1e-5)
    with pytest.raises(IndexError, match="below 3, got 3"):
        pool.retrieve(3)


def test_results_stay_after_the_next_run(saved):
    net, config = saved
    predictor = inference.create_predictor(config)
    first, = predictor.run([paddle.ones([1, 7])])[:1]
    kept = first.numpy().copy()
    predictor.run([paddle.zeros([1, 7])])
    np.testing.assert_array_equal(first.numpy(), kept)


def test_a_model_from_memory(saved):
    net, config = saved
    program, parameters = (open(path, "rb").read() for path in (config.prog_file(), config.params_file()))
    other = inference.Config()
    other.set_model_buffer(program, len(program), parameters, len(parameters))
    assert other.model_from_memory()
    got = inference.create_predictor(other).run([paddle.ones([1, 7])])
    np.testing.assert_allclose(got[0].numpy(), net(paddle.ones([1, 7]))[0].numpy(), rtol=1e-6)


def test_random_draws_are_new_in_every_run(tmp_path):
    class Noisy(nn.Layer):
        def forward(self, x):
            return x + paddle.rand([64])
    paddle.jit.save(Noisy(), f"{tmp_path}/net", [InputSpec([64], "float32", "x")])
    predictor = inference.create_predictor(inference.Config(str(tmp_path)))
    assert predictor.get_input_names() == ["x"]
    first, second = (predictor.run([paddle.zeros([64])])[0].numpy() for _ in range(2))
    assert first.std() > 0.1 and not np.array_equal(first, second)


def test_loops_and_branches(tmp_path):
    class Halving(nn.Layer):
        def forward(self, x):
            while x.sum() > 1.0:
                x = x / 2
            if x.sum() > 0.75:
                x = x * F.sigmoid(x)
            return x
    paddle.jit.save(Halving(), f"{tmp_path}/net", [InputSpec([3], "float32", "x")])
    config = inference.Config(str(tmp_path))
    config.delete_pass("compile_fused_rows_pass")
    predictor = inference.create_predictor(config)
    assert "pd_op.silu" in [op.name() for op in predictor.program.walk()]
    for x in (drawn(3) ** 2 + 1, np.full(3, 0.1, "float32")):
        want = x
        while want.sum() > 1:
            want = want / 2
        want = want / (1 + np.exp(-want)) if want.sum() > 0.75 else want
        np.testing.assert_allclose(predictor.run([paddle.to_tensor(x)])[0].numpy(), want, rtol=1e-5)


def test_hooks_see_inputs_and_results(saved):
    net, config = saved
    predictor, seen = inference.create_predictor(config), []
    predictor.register_input_hook(lambda op, name, x: seen.append((op, name, tuple(x.shape))))
    predictor.register_output_hook(lambda op, name, x: seen.append((op, name, tuple(x.shape))))
    predictor.run([paddle.ones([2, 7])])
    assert seen == [("pd_op.data", "image", (2, 7)), ("pd_op.fetch", "fetch_name_0", (2, 3)),
                    ("pd_op.fetch", "fetch_name_1", (2, 5))]


def test_what_does_not_fit_is_refused(saved, tmp_path):
    net, config = saved
    predictor = inference.create_predictor(config)
    handle = predictor.get_input_handle("image")
    with pytest.raises(RuntimeError, match="expected an array in 'image', got none yet"):
        predictor.run()
    with pytest.raises(RuntimeError, match="expected an array in 'fetch_name_0', got none yet"):
        predictor.get_output_handle("fetch_name_0").copy_to_cpu()
    with pytest.raises(KeyError, match="expected one of image, got 'picture'"):
        predictor.get_input_handle("picture")
    with pytest.raises(TypeError, match="expected elements of dtype float32 for 'image', got float64"):
        handle.copy_from_cpu(np.ones((2, 7)))
    with pytest.raises(TypeError, match="expected a numpy array for 'image', got list"):
        handle.copy_from_cpu([1.0])
    with pytest.raises(TypeError, match="expected a Tensor for 'image', got ndarray"):
        handle.share_external_data(drawn(2, 7))
    with pytest.raises(ValueError, match=r"expected 1 tensors \(image\), got 2"):
        predictor.run([paddle.ones([2, 7])] * 2)
    with pytest.raises(TypeError, match=r"expected a list of tensors, got a Tensor; write run\(\[x\]\)"):
        predictor.run(paddle.ones([1, 7]))
    with pytest.raises(InputError, match="nowhere"):
        inference.create_predictor(inference.Config("nowhere.json", "nowhere.pdiparams"))
    with pytest.raises(InputError, match="a Config without one"):
        inference.create_predictor(inference.Config())
    with pytest.raises(InputError, match="a folder with one model"):
        (tmp_path / "other.json").write_text("{}")
        inference.create_predictor(inference.Config(str(tmp_path)))
    with pytest.raises(ValueError, match="expected the device 'cpu'"):
        config.enable_use_gpu(100, 0)
    with pytest.raises(AttributeError, match="no Config.enable_tensorrt_engine"):
        config.enable_tensorrt_engine()


def test_files_may_be_named_one_by_one(saved, tmp_path):
    """Also where a folder was named before, which has two models by then."""
    net, config = saved
    (tmp_path / "other.json").write_text("{}")
    for other in inference.Config(), inference.Config(str(tmp_path)):
        other.set_prog_file(config.prog_file())
        with pytest.raises(InputError, match="net.json without the file of its parameters"):
            inference.create_predictor(other)
        other.set_params_file(config.params_file())
        assert inference.create_predictor(other).get_input_names() == ["image"]
    for name in (config.set_prog_file, config.set_params_file, config.set_model, inference.Config):
        with pytest.raises(TypeError, match="expected the names of files.*, got NoneType"):
            name(None)


def test_passes_can_be_watched_and_left_out_by_level(saved, capsys):
    net, config = saved
    config.switch_ir_debug(True, ["silu_fuse_pass", "dead_code_elimination_pass"])
    config.set_optimization_level(1)
    config.pass_builder().turn_on_debug()
    assert config.ir_debug() and config.optimization_level() == 1
    assert config.pass_builder().debug_string() == "  - silu_fuse_pass\n  - dead_code_elimination_pass\n"
    predictor = inference.create_predictor(config)
    assert [bool(run.skipped) for run in predictor.statistics] == [True, False]
    assert capsys.readouterr().out.count("===------ IR before dead_code_elimination_pass") == 1


def test_memory_that_is_given_back_is_taken_again(saved):
    net, config = saved
    predictor, x = inference.create_predictor(config), drawn(2, 7)
    for give_back in (predictor.try_shrink_memory, predictor.clear_intermediate_tensor):
        assert not give_back()
        for got, want in zip(predictor.run([paddle.to_tensor(x)]), expected(net, x), strict=True):
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def test_settings_are_remembered_and_listed(saved):
    """What there is one of here: it changes nothing, and Paddle's questions are answered."""
    net, config = saved
    for change in (config.enable_onednn, config.enable_profile, config.disable_glog_info, config.enable_memory_optim):
        change()
    config.enable_new_ir(False)
    config.switch_use_feed_fetch_ops(True)
    config.switch_specify_input_names(True)
    config.set_cpu_math_library_num_threads(3)
    assert config.onednn_enabled() and config.mkldnn_enabled() and config.glog_info_disabled()
    assert config.use_feed_fetch_ops_enabled() and config.specify_input_name() and not config.new_ir_enabled()
    assert config.cpu_math_library_num_threads() == 3 and not config.use_gpu() and not config.use_xpu()
    rows = dict(map(str.strip, row.strip("|").split("|")) for row in config.summary().splitlines()[3:-1])
    assert rows["cpu_math_thread"] == "3" and rows["onednn"] == "true" and rows["log"] == "false"


def test_a_copy_of_a_configuration_is_one_of_its_own(saved):
    net, config = saved
    copy = inference.Config(config)
    copy.delete_pass("silu_fuse_pass")
    assert "silu_fuse_pass" in config.pass_builder().all_passes()
    assert copy.prog_file() == config.prog_file()


def test_fused_operators_are_kernels_of_their_own(saved):
    net, config = saved
    config.delete_pass("fused_gemm_epilogue_pass")
    predictor = inference.create_predictor(config)
    assert predictor.statistics[-1].name == "compile_fused_rows_pass" and predictor.statistics[-1].changes == 1
    names = [op.name() for op in predictor.program.walk()]
    assert names.count("cinn_runtime.jit_kernel") == 1 and names.count("pd_op.matmul") == 2


def test_compiled_as_a_whole(saved):
    net, config = saved
    config.enable_cinn()
    predictor = inference.create_predictor(config)
    assert "cinn_runtime.jit_kernel" in [op.name() for op in predictor.program.walk()]
    x = drawn(4, 7)
    np.testing.assert_allclose(predictor.run([paddle.to_tensor(x)])[0].numpy(), expected(net, x)[0], rtol=1e-5)


def test_a_script_that_says_paddle(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(dedent("""
        import numpy as np
        import paddle
        import paddle.inference as paddle_infer
        from paddle.inference import Config, PrecisionType, create_predictor

        layer = paddle.nn.Linear(3, 2)
        paddle.jit.save(layer, "model/net", [paddle.static.InputSpec([None, 3], "float32", "x")])
        config = Config("model/net.json", "model/net.pdiparams")
        config.disable_gpu()
        config.disable_glog_info()
        config.enable_memory_optim()
        config.disable_mkldnn()
        config.set_cpu_math_library_num_threads(2)
        config.switch_use_feed_fetch_ops(False)
        predictor = create_predictor(config)
        x = np.ones((4, 3), "float32")
        handle = predictor.get_input_handle(predictor.get_input_names()[0])
        handle.copy_from_cpu(x)
        predictor.run()
        out = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
        print(out.shape, np.abs(out - layer(paddle.to_tensor(x)).numpy()).max() < 1e-6, config.use_gpu(),
              paddle_infer.get_num_bytes_of_data_type(paddle_infer.DataType.INT64), PrecisionType.Half.name)
        """))
    done = subprocess.run([sys.executable, "-m", "minipd", "as-paddle", str(script)], cwd=tmp_path, text=True,
                          capture_output=True, timeout=120)
    assert done.stdout.split("\n")[0] == "(4, 2) True False 8 Half", done.stderr
