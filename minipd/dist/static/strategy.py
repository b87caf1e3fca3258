"""Paddle's `dist.Strategy`: what `to_static` is to do to a program besides distributing it.

Every sub-config of Paddle is here, with Paddle's defaults.  Enabling one that minipd does not do raises, by name, where
the strategy is used.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

__all__ = ["Strategy"]

#: category -> option -> default; "base" are options of the strategy itself
DEFAULTS: dict[str, dict[str, Any]] = {
    "base": {"auto_mode": "semi", "gradient_scale": True, "gradient_scale_using_allreduce_avg": False,
             "use_cache": True, "return_numpy": True, "all_ranks": False, "split_data": True, "seed": None,
             "reinit": False},
    "amp": {"enable": False, "dtype": "float16", "level": "o1", "init_loss_scaling": 32768.0,
            "incr_every_n_steps": 1000, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0, "decr_ratio": 0.8,
            "use_dynamic_loss_scaling": True, "custom_white_list": [], "custom_black_list": [],
            "custom_black_varnames": [], "use_fp16_guard": False, "use_bf16_guard": False, "use_master_grad": False,
            "use_promote": True},
    "dataset": {"enable": False, "num_shards": 1},
    "dp_optimization": {"enable": False, "fuse_all_reduce_ops": True, "fuse_grad_size_in_MB": 32,
                        "overlap_comm_cacl": True, "gradient_sync_after_accumulate": False},
    "fused_linear_promotion": {"enable": False},
    "fused_passes": {"enable": False, "fused_passes_list": [], "gemm_epilogue": False, "dropout_add": False},
    "gradient_merge": {"enable": False, "k_steps": 1, "avg": True},
    "mp_optimization": {"allreduce_matmul_grad_overlapping": False, "replace_with_c_embedding": False,
                        "replace_with_parallel_cross_entropy": False},
    "pipeline": {"enable": False, "schedule_mode": "1F1B", "pp_degree": 1, "vpp_degree": 1, "vpp_seg_method": "",
                 "micro_batch_size": 1, "accumulate_steps": 1, "generation_batch_size": 1,
                 "enable_send_recv_overlap": False, "job_schedule_profiler_start": -1,
                 "job_schedule_profiler_stop": -1, "program_runtimes": [61, 72, 71, 34, 3],
                 "memory_limit_times": -1, "split_backward": False, "auto_parallel_sync_shared_params": False},
    "qat": {"enable": False, "channel_wise_abs_max": True, "weight_bits": 8, "activation_bits": 8,
            "not_quant_pattern": ["skip_quant"], "algo": None, "onnx_format": True},
    "recompute": {"enable": False, "checkpoints": [], "no_recompute_segments": [], "sr": 0, "refined_ops_patterns": [],
                  "enable_tuning": False},
    "sharding": {"enable": False, "stage": 1, "degree": 8, "enable_overlap": False, "param_comm_stream_num": 1,
                 "grad_comm_stream_num": 1, "param_bucket_size_numel": 1, "grad_bucket_size_numel": 1,
                 "enable_hierarchical_comm": False, "partition_algor": "greedy_even", "enable_tuning": False,
                 "tuning_range": [], "release_gradients": False, "comm_buffer_size_MB": 256,
                 "enable_tensor_fusion": False, "save_unbalanced_param": True},
    "sp_optimization": {"enable": True},
    "tuning": {"enable": False, "profile_start_step": 1, "profile_end_step": 1, "run_after_tuning": True,
               "debug": False},
}

#: what is done when it is enabled, or means nothing when it is not asked for
DONE = ("base", "amp", "fused_passes", "gradient_merge", "sp_optimization")
INSTEAD = {
    "dataset": "give shard_dataloader the data that this rank has (is_dataset_splitted=True)",
    "dp_optimization": "gradients are reduced one by one",
    "fused_linear_promotion": "leave it off",
    "pipeline": "cut the layer with reshard from mesh to mesh, or train with minipd.parallel's Pipeline",
    "qat": "leave it off",
    "recompute": "wrap layers in paddle.distributed.fleet.utils.recompute",
    "sharding": "leave it off: parameters may be sharded with shard_tensor",
    "tuning": "leave it off",
    "mp_optimization": "leave it off",
}


class Config:
    """The options of one category, as attributes.

    Raises: ValueError for what is no dict, or an option that there is not (Paddle ignores it).
    """

    def __init__(self, category: str, config_dict: dict[str, Any] | None = None):
        self._category = category
        for name, default in DEFAULTS[category].items():
            setattr(self, name, copy.deepcopy(default))
        self.from_dict({} if config_dict is None else config_dict)

    def from_dict(self, config_dict: dict[str, Any]) -> None:
        """Set the options that a dict has; the others stay as they are."""
        if not isinstance(config_dict, dict):
            raise ValueError(f"Strategy: expected the options of {self._category} as a dict, got {config_dict!r}")
        for name, value in config_dict.items():
            if name not in DEFAULTS[self._category]:
                raise ValueError(f"Strategy: expected options of {self._category} among "
                                 f"{', '.join(DEFAULTS[self._category])}, got {name!r}")
            setattr(self, name, copy.deepcopy(value))

    def to_dict(self) -> dict[str, Any]:
        """All options, by name."""
        return {name: getattr(self, name) for name in DEFAULTS[self._category]}

    def get(self, k: str, d: Any = None) -> Any:
        """An option by name; d if there is none."""
        return self.to_dict().get(k, d)

    def __repr__(self) -> str:
        return "{" + "".join(f'"{k}":"{v}",' for k, v in self.to_dict().items()) + "}"


def _category(name: str, doc: str) -> Any:
    def get(self: Strategy) -> Config:
        return self._configs[name]
    get.__doc__ = doc
    return property(get)


class Strategy:
    """What `dist.to_static` is to do (Paddle: `paddle.distributed.Strategy`).

    config: category -> option -> value; what it does not name has Paddle's default.

    Raises: ValueError for a config that is no dict, or a category or option that there is not.

    >>> strategy = Strategy({"amp": {"enable": True, "dtype": "bfloat16"}})
    >>> strategy.amp.enable, strategy.amp.level, strategy.pipeline.schedule_mode, strategy.sharding.stage
    (True, 'o1', '1F1B', 1)
    >>> strategy.gradient_merge.k_steps = 4
    >>> strategy.gradient_merge.to_dict()
    {'enable': False, 'k_steps': 4, 'avg': True}
    """

    auto_mode: str
    return_numpy: bool
    amp = _category("amp", "Lower precision: `enable`, `dtype`, `level`, lists of operators, loss scaling.")
    sharding = _category("sharding", "Optimizer state in parts: `enable`, `stage`, `degree`.")
    fused_passes = _category("fused_passes", "Fusions of the ranks' programs: `enable`, `gemm_epilogue`, "
                             "`dropout_add`, and names of passes in `fused_passes_list`.")
    gradient_merge = _category("gradient_merge", "A batch computed in `k_steps` parts, whose gradients are added up or "
                               "averaged (`avg`): `enable`.")
    pipeline = _category("pipeline", "Stages and micro-batches: `enable`, `schedule_mode`, `micro_batch_size`, "
                         "`accumulate_steps`.")
    recompute = _recompute = _category("recompute", "Activations computed twice: `enable`, `refined_ops_patterns`.")
    mp_optimization = _mp_optimization = _category("mp_optimization", "Rewritings for tensor parallelism.")
    dp_optimization = _dp_optimization = _category("dp_optimization", "Rewritings for data parallelism.")
    sp_optimization = _sp_optimization = _category("sp_optimization", "Rewritings for sequence parallelism.")
    qat = _category("qat", "Training for quantization.")
    tuning = _category("tuning", "Trial runs.")
    dataset = _category("dataset", "How many parts the dataset has.")
    fused_linear_promotion = _category("fused_linear_promotion", "All-reduces moved behind a bias.")

    def __init__(self, config: dict[str, Any] | None = None):
        if config is not None and not isinstance(config, dict):
            raise ValueError(f"Strategy: expected a dict of categories and their options, got {config!r}")
        config = dict(config or {})
        self._full_graph = bool(config.pop("full_graph", True))
        self._configs = {name: Config(name, config.pop(name, None)) for name in DEFAULTS if name != "base"}
        for name, default in DEFAULTS["base"].items():
            setattr(self, name, config.pop(name, default))
        self._check_names(config)

    @property
    def full_graph(self) -> bool:
        """Whether the layer is traced as a whole."""
        return self._full_graph

    def from_dict(self, config_dict: dict[str, Any]) -> None:
        """Set what a dict has, as the constructor does; the rest stays as it is.

        Raises: ValueError for a category or option that there is not.
        """
        self._check_names(config_dict)
        for name, value in config_dict.items():
            if name in self._configs:
                self._configs[name].from_dict(value)
            else:
                setattr(self, name, value)

    def _check_names(self, config: Iterable[str]) -> None:
        unknown = [name for name in config if name not in self._configs and name not in DEFAULTS["base"]]
        if unknown:
            raise ValueError(f"Strategy: expected categories among {', '.join(self._configs)}, and options among "
                             f"{', '.join(DEFAULTS['base'])}, got {unknown[0]!r}")

    def to_dict(self) -> dict[str, Any]:
        """Everything, by name."""
        return {**{name: getattr(self, name) for name in DEFAULTS["base"]},
                **{name: config.to_dict() for name, config in self._configs.items()}}

    def get(self, k: str, d: Any = None) -> Any:
        """A category (as a dict) or an option by name; d if there is none."""
        return self.to_dict().get(k, d)

    def __repr__(self) -> str:
        return "{" + "".join(f'"{k}":"{v}",' for k, v in self.to_dict().items()) + "}"


def refuse_undone(strategy: Strategy) -> None:
    """Raise NotImplementedError for what is enabled and would not be done."""
    for name, config in strategy._configs.items():
        on = config.enable if hasattr(config, "enable") else any(v is True for v in config.to_dict().values())
        if on and name not in DONE:
            raise NotImplementedError(f"to_static: expected a strategy without {name}, which is not done in "
                                      f"distributed programs, got {name}={config!r}; {INSTEAD[name]}")
    if strategy.auto_mode != "semi":
        raise NotImplementedError(f"to_static: expected auto_mode='semi', where the user places parameters, got "
                                  f"{strategy.auto_mode!r}; place them with shard_tensor or shard_layer")
    if not strategy.full_graph:
        raise NotImplementedError("to_static: expected full_graph=True, got False: a program of many ranks is traced "
                                  "as a whole; let the layer be one graph, or train it eagerly")
    amp = strategy.amp
    if amp.enable and (amp.dtype, str(amp.level).lower()) != ("bfloat16", "o1"):
        raise NotImplementedError(f"to_static: expected amp with dtype='bfloat16' and level='o1', got {amp.dtype!r} "
                                  f"and {amp.level!r}: a program scales no loss and keeps no second copy of "
                                  "parameters; use those, or train eagerly with auto_cast and shard_scaler")
