"""A dialect of your own: the operations, types and attributes of a darkroom, declared in thirty lines.

Run it with `python examples/photo_dialect.py`.  What stands below `What came of it` only looks at what is declared.

`Dialect.op` has two kinds of classes.  One with `infer_meta` is a *tensor operator*: its keyword-only parameters are
the attributes, `kernel` computes it, `vjp_image` is its gradient with respect to `image`.  From then on it can do what
any operator of the library can: be called eagerly and under the tape, traced, compiled, differentiated as a program.
What else it can do is asked for by interface: `decompose` is the column of the interface Decomp, where passes find it.

One without is an *operation of the program*.  It means nothing until a pass rewrites it into operators, but it prints,
parses, is copied and verified.  `operands`, `results` and `attributes` say what stands there and of what type; `verify`
adds what no type can say.  Traits say what passes may assume, and some bring a check of their own.

A type or an attribute names its parts, and needs nothing else: two that say the same are one object.
"""

import minipd as paddle
from minipd.ir import (
    Attribute,
    Builder,
    DenseTensorType,
    Dialect,
    IrTrait,
    Program,
    TensorType,
    Trait,
    Type,
    register_dialect,
)
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError, verify
from minipd.static import InputSpec

# ------------------------------------------------------------------------------------------------- The dialect
photo = register_dialect(Dialect("photo"), replace=True)


@photo.type("film")
class FilmType(Type):
    """An exposed film: `photo.film<"Ektar", i64(100)>`."""
    __slots__ = ("brand", "iso")


@photo.attribute("bath")
class BathAttribute(Attribute):
    """The chemistry of a bath: `photo.bath("C-41")`."""
    __slots__ = ()


@photo.op("gamma", Trait.ELEMENTWISE, IrTrait.SAME_OPERANDS_AND_RESULT_TYPE)
class Gamma:
    """image ** power, which makes the middle of the range darker (power > 1) or lighter."""
    def infer_meta(image, *, power: float = 2.2): return image
    def kernel(xp, image, *, power): return image ** power
    def vjp_image(g, image, power): return g * power * image ** (power - 1)
    def decompose(image, *, power): return paddle.exp(paddle.log(image) * power)


@photo.op("develop", IrTrait.ONE_RESULT)
class Develop:
    """The image on a film."""
    operands = {"film": FilmType}
    results = {"image": TensorType}
    attributes = {"bath": BathAttribute, "minutes": float}

    def verify(op):
        if op.attributes["minutes"].value <= 0:
            raise ValueError(f"minutes: expected a time above zero, got {op.attributes['minutes'].value}")


@photo.op("expose", Trait.SIDE_EFFECT)
class Expose:
    """A film that was in the camera."""
    results = {"film": FilmType}


# ---------------------------------------------------------------------------------------------- What came of it
def operator() -> None:
    """Gamma, called, differentiated, traced, compiled, and asked what it can do."""
    x = paddle.to_tensor([0.25, 0.5, 1.0], stop_gradient=False)
    y = Gamma(x, power=2.0)
    y.sum().backward()
    print("eager:   ", y.numpy().tolist(), "gradient:", x.grad.numpy().tolist())

    @paddle.jit.to_static(input_spec=[InputSpec([None], "float32")])
    def brighter(image):
        return Gamma(image, power=2.0) + 1.0
    print("compiled:", brighter(x.detach()).numpy().tolist())

    program = trace(lambda image: Gamma(image, power=2.0), x.detach()).program
    print(program.to_string("exact"))
    call = next(op for op in program.walk() if op.name() == "photo.gamma")
    print("can it   ", {name: call.has_interface(name) for name in ("InferMeta", "Vjp", "Decomp", "SPMD")})


def darkroom() -> None:
    """A program of the dialect's own operations: printed, parsed, verified; what the verifier says of a wrong one."""
    program = Program()
    build = Builder(program.global_block())
    film = build.build("photo.expose", result_types=[FilmType("Ektar", 100)]).result(0)
    develop = build.build("photo.develop", [film], {"bath": BathAttribute("C-41"), "minutes": 3.25},
                          [DenseTensorType((24, 36), "float32")])
    print(program.to_string("exact"))
    assert parse(program.to_string("exact")) == verify(program)

    develop.set_attr("minutes", -1.0)
    try:
        verify(program)
    except VerifyError as error:
        print(error)


if __name__ == "__main__":
    operator()
    darkroom()
