"""Where values come from, which of them fit together, and what is said about those that do not."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.framework.errors import InputError
from minipd.models.config import RunConfig, from_arguments, load, parse_mesh, resolve, save, to_toml, validate
from minipd.models.config.values import KEYS, get, nearest_keys, with_values


def message(call, *arguments):
    with pytest.raises(InputError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.fixture
def toml(tmp_path):
    def write(text):
        file = tmp_path / "run.toml"
        file.write_text(text)
        return str(file)

    return write


# ---------------------------------------------------------------------------------------------- the command line


def test_defaults():
    config = from_arguments([])
    assert config == resolve(RunConfig())
    assert (config.model.dim, config.model.layers, config.model.heads, config.model.kv_heads) == (128, 4, 4, 4)
    assert (config.train.batch, config.data.seq_len, config.model.max_seq, config.train.lr) == (16, 128, 128, 3e-3)
    assert config.dist.axes == {"pp": 2, "tp": 2} and config.dist.ranks == 4
    assert (config.train.micro_batches, config.dist.schedule) == (4, "1F1B")


def test_micro_batches_are_for_pipelines_unless_asked_for():
    assert from_arguments(["--mesh", "dp=2,tp=2"]).train.micro_batches == 1
    assert from_arguments(["--mesh", "dp=2,pp=2"]).train.micro_batches == 4
    assert from_arguments(["--mesh", "dp=2,tp=2", "--micro_batches", "2"]).train.micro_batches == 2
    assert from_arguments(["--micro_batches", "1"]).train.micro_batches == 1


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (["--train.lr", "1e-3"], "train.lr", 1e-3),
        (["--lr", "1e-3"], "train.lr", 1e-3),
        (["--lr=1"], "train.lr", 1.0),
        (["--mesh", "pp=4"], "dist.mesh", "pp=4"),
        (["--steps", "200"], "train.steps", 200),
        (["--eager"], "dist.eager", True),
        (["--no-tie_embeddings"], "model.tie_embeddings", False),
        (["--no-model.tie-embeddings"], "model.tie_embeddings", False),
        (["--comm", "sim"], "dist.comm", "sim"),
        (["--weight-decay", "0"], "train.weight_decay", 0.0),
        (["--prompt", "100% sure"], "sample.prompt", "100% sure"),
        (["--out", "elsewhere"], "out", "elsewhere"),
        (["--steps", "1", "--steps", "2"], "train.steps", 2),
    ],
)
def test_an_option(arguments, key, value):
    config = from_arguments(arguments)
    assert get(config, key) == value and type(get(config, key)) is type(value)
    # and nothing else has changed
    assert with_values(config, {key: get(RunConfig(), key)}, "a test") == from_arguments([])


def test_every_value_is_an_option_with_an_explanation(capsys):
    for name in KEYS:
        # What the parser rejects here is its missing value, not its name; a switch needs none.
        if KEYS[name].kind is not bool:
            assert "expected one argument" in message(from_arguments, [f"--{name}"])
    with pytest.raises(SystemExit) as caught:
        from_arguments(["--help"])
    assert caught.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    for name, key in KEYS.items():
        assert f"--{name}" in printed and key.about in printed


def test_precedence(toml):
    file = toml('seed = 3\n[train]\nlr = 1\nsteps = 7\n[dist]\nmesh = "dp=1"\n')
    config = from_arguments(["--config", file, "--steps", "9"])
    assert (config.seed, config.train.lr, config.train.steps, config.dist.mesh) == (3, 1.0, 9, "dp=1")
    assert config.train.batch == RunConfig().train.batch


def test_a_resumed_run_starts_from_its_own_configuration(tmp_path, toml):
    run, other = tmp_path / "0001", toml("[train]\nlr = 0.5")
    checkpoint = run / "checkpoint" / "step-10"
    checkpoint.mkdir(parents=True)
    save(from_arguments(["--lr", "0.25", "--steps", "10"]), run / "config.toml")
    for path in (run, checkpoint):
        resumed = from_arguments(["--resume", str(path), "--steps", "20"])
        assert (resumed.train.lr, resumed.train.steps, resumed.resume) == (0.25, 20, str(path))
    assert from_arguments(["--resume", str(run), "--config", other]).train.lr == 0.5


def test_resume_from_nowhere(tmp_path):
    assert "which does not exist" in message(from_arguments, ["--resume", str(tmp_path / "none")])
    deep = tmp_path / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    assert "(with its config.toml)" in message(from_arguments, ["--resume", str(deep)])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--learning_rate", "1"], "an option, got --learning_rate in the command line: did you mean --lr or "),
        (["--stepz=3"], "got --stepz in the command line: did you mean --steps?"),
        (["--optimizer.beta-1", "0"], "did you mean --beta1 or --beta2?"),
        (["--zzzz"], "got --zzzz in the command line: `minipd train --help` lists the options"),
        (["--step", "3"], "an option, got --step in"),  # no abbreviations: they would change meaning with a new value
        (["file"], "expected options only, got 'file' in the command line"),
        (["--lr", "fast"], "train.lr to be a number, got 'fast' in the command line"),
        (["--steps", "1.5"], "train.steps to be a whole number, got '1.5'"),
        (["--eager=3"], "--dist.eager/--eager: ignored explicit argument '3'"),
        (["--out", "\udcff"], "expected out to be a text"),
    ],
)
def test_bad_arguments(arguments, text):
    assert text in message(from_arguments, arguments)


# ------------------------------------------------------------------------------------------------------- files


def test_save_and_load(tmp_path):
    config = from_arguments(["--lr", "1e-7", "--eager", "--out", 'a "b" \\ \t\x7f é 🙂'])
    save(config, tmp_path / "config.toml")
    assert load(tmp_path / "config.toml") == config


ANY_VALUE = {
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    str: st.text(),
}


@given(st.fixed_dictionaries({name: ANY_VALUE[key.kind] for name, key in KEYS.items()}))
def test_any_configuration_survives_its_file(tmp_path_factory, values):
    config = with_values(RunConfig(), values, "a test")
    file = tmp_path_factory.mktemp("config") / "config.toml"
    save(config, file)
    assert load(file) == config


def test_the_file_explains_every_value():
    text = to_toml(RunConfig())
    assert all(f"{key.name} = " in text and f"# {key.about}\n" in text for key in KEYS.values())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[train]\nlearning_rate = 1", "got train.learning_rate in {file}: did you mean train.lr or "),
        ("lr = 1", "got lr in {file}: did you mean train.lr?"),
        ("[optimizer]\nlr = 1", "got optimizer.lr in {file}: did you mean train.lr?"),
        ("[optimizer]", "got optimizer in {file}"),
        ("train = 3", "got train in {file}"),
        ("[train.lr]\npeak = 1", "train.lr to be a number, got {{'peak': 1}} in {file}"),
        ("[train]\nlr = '1e-3'", "train.lr to be a number, got '1e-3' in {file}"),
        ("[train]\nsteps = 1.0", "train.steps to be a whole number, got 1.0 in {file}"),
        ("[train]\nsteps = true", "train.steps to be a whole number, got True in {file}"),
        ("[dist]\neager = 1", "dist.eager to be true or false, got 1 in {file}"),
        ("[train\nlr = 1", "a configuration file in TOML, got {file} (Expected ']'"),
    ],
)
def test_bad_files(toml, text, part):
    file = toml(text)
    assert part.format(file=file) in message(load, file)


def test_a_section_without_values_leaves_them_as_they_are(toml):
    """As where somebody has commented out all its lines."""
    assert load(toml("[train]\n# lr = 1e-3\n[dist]\neager = true\n")).dist.eager


def test_a_file_that_cannot_be_read(tmp_path):
    assert "none.toml (No such file or directory)" in message(load, tmp_path / "none.toml")
    (tmp_path / "latin1.toml").write_bytes("# café".encode("latin-1"))
    assert "latin1.toml" in message(load, tmp_path / "latin1.toml")


def test_nearest_keys_prefer_the_section():
    assert nearest_keys("model.head") == ["model.heads", "model.kv_heads"]
    assert nearest_keys("trian.steps") == ["train.steps"]


# ------------------------------------------------------------------------------------------------------ checks


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--mesh", "dp=2,dp=2"], "a mesh of different axes with sizes, such as pp=2,tp=2, got 'dp=2,dp=2'"),
        (["--mesh", "4"], "a mesh of different axes"),
        (["--mesh", "dp=0"], "a mesh of different axes"),
        (["--mesh", ""], "a mesh of different axes"),
        (["--mesh", "dp=2,xp=2"], "mesh axes from dp, tp, pp, got 'xp' in dp=2,xp=2"),
        (["--mesh", "pp=5"], "one layer on each of pp = 5 stages, got model.layers = 4: raise"),
        (["--schedule", "2F2B"], "dist.schedule to be FThenB or 1F1B, got '2F2B'"),
        (["--mesh", "tp=3"], "model.heads that tp = 3 divides, got 4: change model.heads or dist.mesh"),
        (["--mesh", "tp=4", "--kv_heads", "2"], "model.kv_heads that tp = 4 divides, got 2"),
        (["--heads", "3"], "model.dim that model.heads = 3 divides, got 128: change model.dim or model.heads"),
        (["--heads", "128"], "an even head width model.dim / model.heads"),
        (["--kv_heads", "3"], "model.heads that model.kv_heads = 3 divides, got 4"),
        (["--batch", "6", "--micro_batches", "2", "--mesh", "dp=2,tp=2"],
         "train.batch that dp times train.micro_batches = 4 divides, got 6"),
        (["--max_seq", "64"], "data.seq_len of at most model.max_seq = 64, got 128"),
        (["--min_lr", "1"], "train.min_lr of at most train.lr = 0.003, got 1.0"),
        (["--batch", "0"], "train.batch to be at least 1, got 0"),
        (["--lr", "0"], "train.lr to be above 0, got 0.0"),
        (["--lr", "nan"], "train.lr to be above 0, got nan"),
        (["--weight_decay", "inf"], "train.weight_decay to be at least 0, got inf"),
        (["--beta2", "1"], "train.beta2 to be at least 0 and below 1, got 1.0"),
        (["--vocab_size", "255"], "model.vocab_size to be at least 256, got 255"),
        (["--seed", "-1"], "seed to be at least 0"),
        (["--dtype", "int8"], "train.dtype to be float32 or float64, got 'int8': choose one of them"),
        (["--comm", "tcp"], "dist.comm to be mpi or sim, got 'tcp'"),
        (["--prompt", ""], "a sample.prompt to go on from"),
    ],
)
def test_values_that_do_not_fit(arguments, text):
    assert text in message(from_arguments, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--mesh", "dp=1"],
        ["--mesh", "tp=4"],
        ["--mesh", "dp=8", "--batch", "8"],
        ["--mesh", "pp=2,dp=1,tp=2"],
        ["--mesh", "pp=4", "--micro_batches", "1"],  # fewer micro-batches than stages
        ["--vocab_size", "1021"],  # uneven shards are padded
        ["--ffn_dim", "341"],
        ["--prompt", "", "--tokens", "0"],
        ["--mesh", " dp = 2 , tp = 2 "],
    ],
)
def test_values_that_fit(arguments):
    from_arguments(arguments)


def test_the_number_of_ranks():
    config = resolve(RunConfig())
    validate(config, world_size=4)
    assert "a mesh of 3 ranks, as many as were started, got pp=2,tp=2, which is 4: start 4" in message(
        validate, config, 3
    )
    assert "a mesh of 1 rank, as" in message(validate, config, 1)


def test_mesh_keeps_the_order_of_its_axes():
    assert list(parse_mesh("tp=2,dp=3").items()) == [("tp", 2), ("dp", 3)]


def test_configurations_are_values():
    config = RunConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 1
    assert hash(config) == hash(RunConfig())
