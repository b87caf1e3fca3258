"""Paddle's own documentation examples as a test suite for minipd.

    # once, in an environment that has the real Paddle (pip install paddlepaddle==3.3.1 "numpy<2.4"):
    python doc_examples.py extract examples.jsonl
    # in minipd's environment:
    python doc_examples.py check examples.jsonl [--namespace paddle.nn] [--failures N]

`extract` takes every ``>>>`` block from the docstrings of public names, runs it with the real Paddle in a forked
child, and records what it printed. `check` runs the blocks that passed there with ``import paddle`` meaning minipd
(through ``minipd.install_as_paddle()``) and compares with what Paddle printed: numbers to rtol 1e-4, the rest exactly
up to white space. The examples themselves are Paddle's text: keep the file out of the repository.
"""
from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import doctest
import importlib
import inspect
import io
import json
import math
import os
import re
import select
import signal
import sys
import tempfile
import time

NAMESPACES = """paddle paddle.Tensor paddle.nn paddle.nn.functional paddle.nn.initializer paddle.nn.utils
paddle.optimizer paddle.optimizer.lr paddle.regularizer paddle.autograd paddle.jit paddle.static paddle.static.nn
paddle.distributed paddle.incubate.autograd paddle.io paddle.amp paddle.pir paddle.linalg paddle.fft paddle.metric
paddle.framework paddle.utils""".split()
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|\bnan\b|[-+]?\binf\b")
CHECKER, FLAGS = doctest.OutputChecker(), doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def public_docstrings(paddle):
    """Yield (namespace, qualified name, docstring), each docstring once."""
    seen = set()

    def once(ns, name, obj):
        doc = getattr(obj, "__doc__", None)
        if not (isinstance(doc, str) and ">>>" in doc):
            with contextlib.suppress(Exception):
                doc = inspect.unwrap(obj).__doc__
        if isinstance(doc, str) and ">>>" in doc and doc not in seen:
            seen.add(doc)
            yield ns, name, inspect.cleandoc(doc)

    for ns in NAMESPACES:
        module = paddle.Tensor if ns == "paddle.Tensor" else importlib.import_module(ns)
        names = sorted(set(getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]))
        for n in names:
            obj = getattr(module, n, None)
            if obj is None or inspect.ismodule(obj):
                continue
            yield from once(ns, f"{ns}.{n}", obj)
            if inspect.isclass(obj) and obj is not paddle.Tensor and ns != "paddle.Tensor":
                for m in sorted(k for k in dir(obj) if k[0] != "_" or k == "__call__"):
                    with contextlib.suppress(Exception):
                        member = inspect.getattr_static(obj, m)
                        member = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
                        yield from once(ns, f"{ns}.{n}.{m}", member)


def blocks(doc):
    """The independent code blocks of a docstring, as lists of {source, want}."""
    parts = re.split(r"(?m)^\s*\.\.\s+code-block::.*$", doc)
    for part in parts[1:] or parts:
        if ">>>" not in part:
            continue
        text = re.sub(r"#\s*x?doctest:.*|(?m:^\s*:name:.*$)", "", part)
        text = re.sub(r"(?m)^(\s*)(>>>|\.\.\.)(?=\S)", r"\1\2 ", text)
        text = "\n".join(line.rstrip() if line.strip() not in (">>>", "...") else line.rstrip() + " "
                         for line in text.split("\n"))
        try:
            yield [dict(source=e.source, want=e.want) for e in doctest.DocTestParser().get_examples(text)]
        except ValueError:
            continue


def same(want, got):
    """Equal up to white space and, for numbers, to rtol 1e-4."""
    if CHECKER.check_output(want, got, FLAGS):
        return True
    w, g = " ".join(want.split()), " ".join(got.split())
    if NUMBER.sub("#", w).replace(" ", "") != NUMBER.sub("#", g).replace(" ", ""):
        return False
    pairs = [(float(a), float(b)) for a, b in zip(NUMBER.findall(w), NUMBER.findall(g), strict=False)]
    return all(a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-5 + 1e-4 * abs(a) for a, b in pairs)


def run(examples, name):
    """Run one block; return what each step printed, or where it stopped."""
    import linecache

    source = "".join(e["source"] for e in examples)
    file = f"<{name}>.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)   # so that inspect.getsource works
    env, printed, line = {"__name__": "__main__"}, [], 0
    sys.displayhook = lambda v: print(repr(v)) if v is not None else None
    for e in examples:
        out = io.StringIO()
        try:
            tree = ast.parse(e["source"], file)
            mode = "single" if len(tree.body) == 1 else "exec"
            tree = ast.Interactive(body=tree.body) if mode == "single" else tree
            ast.increment_lineno(tree, line)
            line += e["source"].count("\n")
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                exec(compile(tree, file, mode, dont_inherit=True), env)
        except BaseException as error:  # noqa: BLE001 - any failure of the example is a result
            if "Traceback" in e["want"] and type(error).__name__ in e["want"]:
                printed.append(None)
                continue
            return dict(ok=False, error=f"{type(error).__name__}: {error}"[:400], printed=printed)
        printed.append(out.getvalue()[-3000:])
    return dict(ok=True, error=None, printed=printed)


def in_child(examples, name, limit=30):
    """`run` in a forked child, so that a crash or a hang costs one block."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        with os.fdopen(w, "wb") as pipe:
            pipe.write(json.dumps(run(examples, name)).encode())
        os._exit(0)
    os.close(w)
    data, end = b"", time.time() + limit
    while (left := end - time.time()) > 0 and select.select([r], [], [], left)[0]:
        chunk = os.read(r, 1 << 16)
        if not chunk:
            break
        data += chunk
    os.close(r)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    try:
        return json.loads(data)
    except ValueError:
        return dict(ok=False, error="crash or time-out", printed=[])


def extract(path):
    import paddle

    kept = total = 0
    with open(path, "w") as out:
        for ns, name, doc in public_docstrings(paddle):
            for i, examples in enumerate(blocks(doc)):
                total += 1
                first, second = in_child(examples, name), in_child(examples, name)
                if not (first["ok"] and second["ok"]):
                    continue
                for e, a, b in zip(examples, first["printed"], second["printed"], strict=False):
                    e["got"] = a if a is None or (e["want"] and same(a, b)) else ""      # random output is not compared
                kept += 1
                out.write(json.dumps(dict(namespace=ns, name=name, block=i, examples=examples)) + "\n")
    print(f"{kept} of {total} blocks run with the real Paddle")


def check(path, namespace=None, failures=0):
    import minipd

    minipd.install_as_paddle()
    os.chdir(tempfile.mkdtemp())
    passed, count, shown = collections.Counter(), collections.Counter(), 0
    for record in map(json.loads, open(path)):
        ns = record["namespace"]
        if namespace and ns != namespace:
            continue
        count[ns] += 1
        result = in_child(record["examples"], record["name"])
        bad = None if result["ok"] else result["error"]
        if not bad:
            bad = next((f"printed {got!r}, Paddle prints {e['got']!r}"
                        for e, got in zip(record["examples"], result["printed"], strict=True)
                        if e["got"] and not same(e["got"], got or "")), None)
        passed[ns] += not bad
        if bad and shown < failures:
            shown += 1
            print(f"{record['name']}[{record['block']}]: {bad[:300]}")
    for ns in count:
        print(f"{ns:28} {passed[ns]:4} / {count[ns]}")
    print(f"{'all':28} {sum(passed.values()):4} / {sum(count.values())}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="command", required=True)
    sub.add_parser("extract").add_argument("path")
    c = sub.add_parser("check")
    c.add_argument("path"), c.add_argument("--namespace"), c.add_argument("--failures", type=int, default=0)
    a = parser.parse_args()
    extract(a.path) if a.command == "extract" else check(os.path.abspath(a.path), a.namespace, a.failures)
