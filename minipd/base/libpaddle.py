"""`paddle.base.libpaddle`, Paddle's C++, as far as scripts reach into it: `pir` comes with `minipd.passes`."""

__all__: list[str] = []
