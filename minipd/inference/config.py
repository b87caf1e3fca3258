"""Which model a predictor runs, and which passes it takes it through first."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minipd.framework.errors import InputError
from minipd.framework.place import check_device
from minipd.inference.kinds import PrecisionType
from minipd.inference.pass_builder import PassBuilder
from minipd.ir.serialize import read_program
from minipd.static.saved_model import Model, parse_parameters, read_model

__all__ = ["Config"]

#: settings of Paddle's that choose what there is one of here: accepted, remembered, without effect
REMEMBERED = {
    "memory_optim": True,               # the executor plans its memory anyhow
    "onednn": False, "new_ir": True, "new_executor": True, "log": True, "profile": False,
    "use_feed_fetch_ops": False, "specify_input_names": False,
}


class Config:
    """What `create_predictor` is given.

        Config("net.json", "net.pdiparams")     the two files of `jit.save` or `static.save_inference_model`
        Config("folder")                        the only model in a folder
        Config("folder", "net")                 a model of a folder
        Config(config)                          a copy

    >>> config = Config("net.json", "net.pdiparams")
    >>> config.delete_pass("constant_folding_pass")
    >>> config.switch_ir_optim(False)
    >>> config.prog_file(), config.ir_optim(), "constant_folding_pass" in config.pass_builder().all_passes()
    ('net.json', False, False)

    Settings of engines that minipd does not have (TensorRT, OpenVINO, XPU, ...) are no attributes of it.
    """

    Precision = PrecisionType

    def __init__(self, model: str | Config = "", params: str = ""):
        if isinstance(model, Config):
            self.__dict__.update(copy.deepcopy(vars(model)))
            return
        _require_names("Config", model, params)
        self._builder = PassBuilder()
        self._bytes: tuple[bytes, bytes] | None = None
        self._optimise, self._debug, self._cinn = True, False, False
        self._threads, self._level = 1, 2
        self._remembered = dict(REMEMBERED)
        self.set_model(model, params)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"minipd has no Config.{name}: it runs on the CPU, by library kernels and those that "
                             "floor 4 generates, and has no engines beside them")

    # ---------------------------------------------------------------------------------------------------- the model
    def set_model(self, model: str, params: str = "") -> None:
        """Name the files, as when a Config is made.   Raises: TypeError for what is no name."""
        _require_names("set_model", model, params)
        folder = Path(model).is_dir() if model else False
        self._folder = model if folder or not params else ""
        self._model, self._params = ("", "") if self._folder else (model, params)
        self._prefix = params if folder else ""

    def set_prog_file(self, path: str) -> None:
        """Name the file of the program; that of the parameters must be named too, also where a folder was.

        Raises: TypeError for what is no name.
        """
        _require_names("set_prog_file", path)
        self._model, self._folder = path, ""

    def set_params_file(self, path: str) -> None:
        """Name the file of the parameters.   Raises: TypeError for what is no name."""
        _require_names("set_params_file", path)
        self._params = path

    def set_model_buffer(self, prog_buffer: bytes, prog_buffer_size: int, params_buffer: bytes,
                         params_buffer_size: int) -> None:
        """Take the contents of the files instead of the files."""
        self._bytes = bytes(prog_buffer[:prog_buffer_size]), bytes(params_buffer[:params_buffer_size])

    def model_from_memory(self) -> bool:
        return self._bytes is not None

    def model_dir(self) -> str:
        return self._folder

    def prog_file(self) -> str:
        return self._model

    def params_file(self) -> str:
        return self._params

    def read(self) -> Model:
        """The model itself.

        Raises: InputError for files that are not there or are damaged, or do not belong together.
        """
        if self._bytes is not None:
            saved = read_program(self._bytes[0])
            return Model(saved, parse_parameters(saved.program, self._bytes[1]))
        if self._folder:
            return read_model(self._in_folder())
        if not self._model or not self._params:
            got = f"{self._model} without the file of its parameters" if self._model else "a Config without one"
            raise InputError("a model", got, "name its files: Config('net.json', 'net.pdiparams')")
        return read_model(Path(self._model), Path(self._model), Path(self._params))

    def _in_folder(self) -> Path:
        """The files of a folder, without their suffixes."""
        folder = Path(self._folder)
        if self._prefix:
            return folder / self._prefix
        found = sorted(folder.glob("*.json"))
        if len(found) != 1:
            raise InputError("a folder with one model", f"{folder} with {len(found)} files *.json",
                             "name the files: Config('net.json', 'net.pdiparams')")
        return found[0].with_suffix("")

    # --------------------------------------------------------------------------------------------------- the passes
    def switch_ir_optim(self, x: bool = True) -> None:
        """Whether passes run at all; without them the program runs as it is in the file."""
        self._optimise = bool(x)

    def ir_optim(self) -> bool:
        return self._optimise

    def pass_builder(self) -> PassBuilder:
        """The list of passes, to change."""
        return self._builder

    def delete_pass(self, name: str) -> None:
        """`pass_builder().delete_pass(name)`."""
        self._builder.delete_pass(name)

    def enable_custom_passes(self, passes: Sequence[str] = (), custom_pass_only: bool = False) -> None:
        """Run these passes before the others; custom_pass_only: instead of them."""
        self._builder.set_passes([*passes, *([] if custom_pass_only else self._builder.all_passes())])

    def set_optimization_level(self, opt_level: int = 2) -> None:
        """Leave out passes above this level (see `PassManager`)."""
        self._level = opt_level

    def optimization_level(self) -> int:
        return self._level

    def switch_ir_debug(self, x: bool = True, passes: Sequence[str] = ()) -> None:
        """Print the program before and after every pass, and verify it.  passes: if given, they run instead of the
        builder's."""
        self._debug = bool(x)
        if passes:
            self._builder.set_passes(passes)

    def ir_debug(self) -> bool:
        return self._debug

    def enable_cinn(self) -> None:
        """Compile all of the program that can be kernels (floor 4), behind the passes."""
        self._cinn = True

    def cinn_enabled(self) -> bool:
        return self._cinn

    # ------------------------------------------------------------------------------------------------- the machine
    def disable_gpu(self) -> None:
        """Run on the CPU, as always."""

    def enable_use_gpu(self, memory_pool_init_size_mb: int, device_id: int = 0,
                       precision_mode: PrecisionType = PrecisionType.Float32) -> None:
        """Raises: ValueError: models run on the CPU."""
        check_device("Config.enable_use_gpu", f"gpu:{device_id}")

    def use_gpu(self) -> bool:
        return False

    def use_xpu(self) -> bool:
        return False

    def set_cpu_math_library_num_threads(self, number: int) -> None:
        """Remembered; how many threads there are is said before Python starts: OPENBLAS_NUM_THREADS and
        NUMBA_NUM_THREADS."""
        self._threads = number

    def cpu_math_library_num_threads(self) -> int:
        return self._threads

    # ------------------------------------------------------------------ settings that choose what there is one of here
    def enable_memory_optim(self, x: bool = True) -> None:
        self._remembered["memory_optim"] = bool(x)

    def enable_onednn(self) -> None:
        self._remembered["onednn"] = True

    def disable_onednn(self) -> None:
        self._remembered["onednn"] = False

    def onednn_enabled(self) -> bool:
        return self._remembered["onednn"]

    enable_mkldnn, disable_mkldnn, mkldnn_enabled = enable_onednn, disable_onednn, onednn_enabled

    def set_onednn_cache_capacity(self, capacity: int = 0) -> None:
        """Accepted as in Paddle, without effect."""

    set_mkldnn_cache_capacity = set_onednn_cache_capacity

    def enable_new_ir(self, x: bool = True) -> None:
        self._remembered["new_ir"] = bool(x)

    def new_ir_enabled(self) -> bool:
        return self._remembered["new_ir"]

    def enable_new_executor(self, x: bool = True) -> None:
        self._remembered["new_executor"] = bool(x)

    def enable_profile(self) -> None:
        self._remembered["profile"] = True

    def disable_glog_info(self) -> None:
        self._remembered["log"] = False

    def glog_info_disabled(self) -> bool:
        return not self._remembered["log"]

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        self._remembered["use_feed_fetch_ops"] = bool(x)

    def use_feed_fetch_ops_enabled(self) -> bool:
        return self._remembered["use_feed_fetch_ops"]

    def switch_specify_input_names(self, x: bool = True) -> None:
        self._remembered["specify_input_names"] = bool(x)

    def specify_input_name(self) -> bool:
        return self._remembered["specify_input_names"]

    def summary(self) -> str:
        """The settings, as a table."""
        lines = [("model_dir", self._folder), ("model_file", self._model), ("params_file", self._params),
                 ("model_from_memory", self.model_from_memory()), ("cpu_math_thread", self._threads),
                 ("ir_optim", self._optimise), ("ir_debug", self._debug), ("optimization_level", self._level),
                 ("use_cinn_compiler", self._cinn), *self._remembered.items()]
        cells = [("Option", "Value"), *((name, str(value).lower() if isinstance(value, bool) else str(value))
                                        for name, value in lines if value != "")]
        left, right = (max(map(len, column)) for column in zip(*cells, strict=True))
        rule = f"+-{'-' * left}-+-{'-' * right}-+"
        rows = [f"| {name:<{left}} | {value:<{right}} |" for name, value in cells]
        return "\n".join([rule, rows[0], rule, *rows[1:], rule])


def _require_names(who: str, *names: Any) -> None:
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{who}: expected the names of files{', or another Config' * (who == 'Config')}, got "
                        + " and ".join(type(name).__name__ for name in names))
