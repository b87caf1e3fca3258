"""One rank of a training run: from the configuration to the report at its end.

Every rank runs the same loop.  Rank 0 also writes the run folder and shows progress.  The ranks agree on the loss, and
on whether somebody asked to stop, in one collective per step.
"""

from __future__ import annotations

import dataclasses
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minipd.framework.context import RankContext
from minipd.framework.dtype import set_default_dtype
from minipd.framework.errors import InputError
from minipd.framework.rank import enter, leave
from minipd.models import records
from minipd.models.batches import Batches, validation_batches
from minipd.models.build import build
from minipd.models.config import RunConfig, save, validate
from minipd.models.corpus import Corpus, load_corpus
from minipd.models.entropy import bigram_entropy, unigram_entropy
from minipd.models.generate import generate
from minipd.models.progress import TrainingProgress, peak_memory
from minipd.models.report import report_at_the_end
from minipd.models.run_folder import CONFIG, METRICS, RunFolder, read_metrics
from minipd.parallel.checkpoint import load_checkpoint, save_checkpoint

__all__ = ["run_rank"]

CHECKPOINTS = "checkpoints"


def run_rank(comm: Any, config: RunConfig) -> Path | None:
    """Train as one rank of `comm` (None: alone).  Returns the run folder on rank 0, None elsewhere.

    Raises: InputError on every rank if the ranks, the corpus or the checkpoint do not fit the configuration.
    """
    ctx = RankContext(0, 1) if comm is None else RankContext(comm.rank, comm.size, comm)
    token = enter(ctx)
    try:
        with np.errstate(over="ignore", invalid="ignore"):      # a step that overflows is skipped, and said so
            return Trainer(ctx, config).run()
    finally:
        leave(token)


class Trainer:
    """The state of a run on one rank."""

    def __init__(self, ctx: RankContext, config: RunConfig):
        validate(config, ctx.world_size)
        self.ctx, self.config, self.comm = ctx, config, ctx.comm
        self.first = ctx.rank == 0
        self.corpus = self._load_corpus()
        set_default_dtype(config.train.dtype)
        ctx.rng.seed(config.seed)
        self.model, self.whole, self.rate, self.optimizer, self.step = build(config)
        t = config.train
        self.batches = Batches(self.corpus.train, t.batch, config.data.seq_len, config.seed)
        self.held_out = validation_batches(self.corpus.held_out, t.batch, config.data.seq_len, t.eval_batches)
        self.stop_asked = False
        self.start = self._resume() if config.resume else 0

    # ---------------------------------------------------------------------------------------------- preparation
    def _load_corpus(self) -> Corpus:
        """Rank 0 first: it learns the tokenizer if nobody has, the others then find it in the cache."""
        d, v = self.config.data, self.config.model.vocab_size
        corpus = self._on_first(lambda: load_corpus(d.corpus, v))
        return load_corpus(d.corpus, v) if corpus is None else corpus

    def _on_first(self, function: Callable[[], Any]) -> Any:
        """`function()` on rank 0, None elsewhere; an InputError there is raised on every rank."""
        result, problem = None, None
        if self.first:
            try:
                result = function()
            except InputError as e:
                problem = e
        if self.comm is not None:
            problem = self.comm.all_gather_object(problem)[0]
        if problem is not None:
            raise problem
        return result

    def _resume(self) -> int:
        """Fill the state from the checkpoint; returns the steps it has behind it."""
        folder = latest_checkpoint(Path(self.config.resume))
        index = load_checkpoint(folder, self.step.state(), self.comm)
        for _ in range(index["step"]):
            self.rate.step()
        must_go_on(self.config, index["step"])
        return index["step"]

    # -------------------------------------------------------------------------------------------------- the run
    def run(self) -> Path | None:
        """Train to the last step, or until somebody asks to stop."""
        config, steps = self.config, self.config.train.steps
        folder = self._on_first(lambda: RunFolder.create(config.out))
        unigram, bigram = self._entropies() if self.first else (np.nan, np.nan)      # the first rank alone shows them
        texts = records.at_the_beginning(self.comm, self.model, self.step, {"unigram": unigram, "bigram": bigram})
        if folder is not None:
            save(config, folder.path / CONFIG)
            self._copy_metrics(folder)
            for name, text in texts.items():
                folder.write(name, text)
        path = self._shared_path(folder)
        self.progress = TrainingProgress(steps, self.start, shown=self.first)
        n = sum(int(np.prod(p.shape)) for p in self.model.parameters())
        self.progress.note(
            f"{n:,} parameters, mesh {config.dist.mesh}, {self._way()}, run {path}\n"
            f"held-out text: unigram entropy {unigram:.3f}, bigram {bigram:.3f} nats/token")
        try:
            finished = self._loop(folder, path)
            self._finish(folder, path, sample=finished)    # who asked to stop waits for no sample
        finally:                                        # after an error too: the bar has hidden the terminal's cursor
            self.progress.finish()
            if folder is not None:
                folder.close()
        return path if self.first else None

    def _way(self) -> str:
        d = self.config.dist
        return "eager" if d.eager else "compiled" if d.cinn else "static"

    def _entropies(self) -> tuple[float, float]:
        c, v = self.corpus, self.config.model.vocab_size
        return unigram_entropy(c.train, c.held_out, v), bigram_entropy(c.train, c.held_out, v)

    def _shared_path(self, folder: RunFolder | None) -> Path:
        path: Any = None if folder is None else str(folder.path)     # rank 0 has it, and tells the others
        return Path(path if self.comm is None else self.comm.all_gather_object(path)[0])

    def _copy_metrics(self, folder: RunFolder) -> None:
        """A resumed run's metrics begin with those of the run it goes on from; a checkpoint that was copied out of its
        run has none."""
        if self.start:
            run = latest_checkpoint(Path(self.config.resume)).resolve().parent.parent
            for row in read_metrics(run) if (run / METRICS).is_file() else ():
                if row["step"] <= self.start:
                    folder.log(**row)

    def _loop(self, folder: RunFolder | None, path: Path) -> bool:
        """Train; returns whether the last step was reached."""
        t = self.config.train
        tokens = t.batch * self.config.data.seq_len
        handlers = self._catch_signals()
        try:
            for step in range(self.start + 1, t.steps + 1):
                began = time.perf_counter()
                self.ctx.rng.set_step(step)
                ids, labels = self.batches(step - 1)
                taken = int(self.optimizer.scalars()[1])
                loss, stop = self._agree(self.step(ids, labels))
                row = {"step": step, "loss": loss, "lr": float(self.optimizer.get_lr()),
                       "seconds": time.perf_counter() - began, "tokens": tokens, "memory": peak_memory()}
                self.rate.step()
                self.progress.update(step, loss, tokens)
                if int(self.optimizer.scalars()[1]) == taken:
                    row["skipped"] = True
                    self.progress.note(f"step {step}: the gradient is not finite; nothing was updated")
                last = stop or step == t.steps
                if last or step % t.eval_every == 0:
                    row["val_loss"] = self.validate()
                    self.progress.note(f"step {step}: validation loss {row['val_loss']:.4f}")
                if folder is not None:
                    folder.log(**row)
                if last or t.checkpoint_every and step % t.checkpoint_every == 0:
                    self._save(path, step)
                if stop:
                    self.progress.note(f"stopped after step {step}; go on with --resume {path}")
                if last:
                    return not stop
            return True
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _catch_signals(self) -> dict:
        """Ctrl-C asks to stop; a second one stops at once.

        Only the main thread of a process can listen, and of ranks that share it only the first does.
        """
        if threading.current_thread() is not threading.main_thread() or isinstance(
                signal.getsignal(signal.SIGINT), _Ask):
            return {}
        return {number: signal.signal(number, _Ask(self)) for number in (signal.SIGINT, signal.SIGTERM)}

    def _agree(self, loss: Any) -> tuple[float, bool]:
        """The global loss, and whether any rank was asked to stop: one all_reduce of two numbers.

        Without it a rank that saw Ctrl-C would leave the others waiting in the next step's collectives.
        """
        mine = np.array([self.step.share(loss), float(self.stop_asked)])
        if self.comm is not None:
            mine = self.comm.all_reduce(mine, tuple(range(self.comm.size)))
        return float(mine[0]), bool(mine[1] > 0)

    def validate(self) -> float:
        """The mean loss over the validation batches."""
        total = sum(self.step.share(self.step.evaluate(ids, labels)) for ids, labels in self.held_out)
        value = np.array([total / len(self.held_out)])
        if self.comm is not None:
            value = self.comm.all_reduce(value, tuple(range(self.comm.size)))
        return float(value[0])

    def _save(self, path: Path, step: int) -> None:
        extra = {"step": step, "model": dataclasses.asdict(self.config.model), "mesh": self.config.dist.mesh,
                 "dtype": self.config.train.dtype}
        save_checkpoint(path / CHECKPOINTS / f"step-{step:06d}", self.step.state(), extra, self.comm)

    def _finish(self, folder: RunFolder | None, path: Path, sample: bool) -> None:
        s = self.config.sample
        text = ""
        if s.tokens and sample:
            tokenizer = self.corpus.tokenizer
            prompt = tokenizer.encode(s.prompt)
            text = tokenizer.decode(generate(self.whole, prompt, s.tokens, s.temperature, self.config.seed,
                                             known=tokenizer.vocab_size))
        texts = records.at_the_end(self.comm, self.step)
        if folder is not None:
            for name, record in texts.items():
                folder.write(name, record)
            if text:
                folder.write("sample.txt", text + "\n")
                self.progress.note(f"\n{text}\n")
            self.progress.note(f"checkpoint{' and sample' if text else ''}: {path}")
            self.progress.note(report_at_the_end(path))


class _Ask:
    """A signal handler that notes the wish to stop."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer

    def __call__(self, number: int, frame: Any) -> None:
        if self.trainer.stop_asked:
            raise KeyboardInterrupt
        self.trainer.stop_asked = True


def latest_checkpoint(given: Path) -> Path:
    """The checkpoint that `given` is, or the last one of the run folder that it is.

    Raises: InputError if there is none.
    """
    if (given / "index.json").is_file():
        return given
    # step-N only: an interrupted save has left a step-N.tmp
    found = [f for f in (given / CHECKPOINTS).glob("step-*") if f.name[5:].isdecimal() and (f / "index.json").is_file()]
    if not found:
        raise InputError("a checkpoint, or a run folder with one", str(given), "name another path")
    return max(found, key=lambda f: int(f.name[5:]))


def must_go_on(config: RunConfig, step: int) -> None:
    """Raise InputError if a run has nothing left to do after this step of a checkpoint."""
    if step >= config.train.steps:
        raise InputError(f"train.steps above {step}, the step of the checkpoint", str(config.train.steps),
                         "raise --steps to train on")
