"""Routes a batch of NumPy numbers through a layer that `study export --replace gate-logistic` wrote.

The C library comes by ctypes, nothing is compiled. Usage: host_numpy.py LIBRARY FOLDER LAYER
"""

import ctypes
import sys

import numpy

ABI = 1  # WANAMAKER_C_ABI of the wanamaker.h that this was written for
TYPES = {"float32": 1, "float64": 2, "float16": 3}


class Wanamaker:
    """The functions of wanamaker.h; a status other than 0 becomes an exception."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.wanamaker_last_error.restype = ctypes.c_char_p
        if self.library.wanamaker_c_abi() != ABI:
            raise RuntimeError("another version of the C library")

    def call(self, name, *arguments):
        if getattr(self.library, "wanamaker_" + name)(*arguments) != 0:
            raise RuntimeError(self.library.wanamaker_last_error().decode())


class Layer:
    """A gated layer and a session; for one thread."""

    def __init__(self, library, folder, number):
        self.library = library
        self.handle, self.session = ctypes.c_uint64(), ctypes.c_uint64()
        library.call("layer_open", str(folder).encode(), ctypes.c_int64(number),
                     ctypes.byref(self.handle))
        library.call("session_open", None, ctypes.byref(self.session))

    def matrix(self, x):
        """Arguments: type, rows, columns, address, stride in elements."""
        if x.ndim != 2 or x.strides[1] != x.itemsize or x.dtype.name not in TYPES:
            raise ValueError("a matrix of floats whose rows are contiguous is needed")
        return (ctypes.c_int32(TYPES[x.dtype.name]), ctypes.c_int64(x.shape[0]),
                ctypes.c_int64(x.shape[1]), ctypes.c_void_p(x.ctypes.data),
                ctypes.c_int64(x.strides[0] // x.itemsize))

    def __call__(self, x):
        y = numpy.empty(x.shape, x.dtype)
        self.library.call("forward", self.handle, self.session, *self.matrix(x),
                          *self.matrix(y)[3:])
        return y

    def scores(self, x):
        scores = numpy.empty(len(x), "float64")
        self.library.call("scores", self.handle, self.session, *self.matrix(x),
                          ctypes.c_void_p(scores.ctypes.data))
        return scores


def main(library, folder, number):
    wanamaker = Wanamaker(library)
    layer = Layer(wanamaker, folder, int(number))
    width = ctypes.c_int64()
    wanamaker.call("layer_width", layer.handle, ctypes.byref(width))
    x = numpy.random.default_rng(1).standard_normal((64, 2 * width.value))
    x = x.astype("float32")[:, :width.value]  # rows that lie apart
    y, to_map = layer(x), layer.scores(x) > 0
    in_half = layer(x.astype("float16"))
    difference = abs(in_half - y).max() / abs(y).max()
    print(f"{to_map.sum()} of {len(x)} rows to the map; in float16 the largest relative "
          f"difference is {difference:.1e}")
    try:
        layer(x[:, 1:])
    except RuntimeError as error:
        print(f"refused: {error}")
        return 0 if numpy.isfinite(y).all() else 1
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
