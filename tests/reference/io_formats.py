"""Records what the Python packages safetensors and numpy read and write, for tests/io.

Usage: python io_formats.py SHARED_DATA > io_formats.json
Recorded with safetensors 0.8.0, numpy 2.4.6.
"""

import io
import json
import pathlib
import sys
import zlib

import numpy
import safetensors
from safetensors.numpy import load_file


def as_doubles(array):
    return numpy.ascontiguousarray(array.astype("<f8"))


def summary_of_file(path):
    """Number of tensors, CRC-32 of all values as doubles in the order of the names, and samples."""
    tensors = load_file(path)
    crc = 0
    samples = []
    for name in sorted(tensors):
        values = as_doubles(tensors[name]).ravel()
        crc = zlib.crc32(values.tobytes(), crc)
        if values.size and len(samples) < 2:
            samples.append({"name": name, "shape": list(tensors[name].shape),
                            "element": values.size // 2, "value": values[values.size // 2]})
    return {"tensors": len(tensors), "crc32": crc, "samples": samples}


def halves():
    """CRC-32 of all 65,536 binary16 values as doubles, NaN replaced by 0."""
    values = as_doubles(numpy.arange(65536, dtype=numpy.uint16).view(numpy.float16))
    return zlib.crc32(numpy.where(numpy.isnan(values), 0.0, values).tobytes())


def written_by_safetensors():
    """A file of every type, with a name that JSON must escape, a scalar, and an empty tensor."""
    arrays = {
        "b": ("float32", numpy.array([[1.5, -2.0, 3.25]], "<f4")),
        "a": ("float32", numpy.array([0.1], "<f4")),
        'quote " and é': ("float64", numpy.array([0.1, -1e300], "<f8")),
        "half": ("float16", numpy.array([1.0, -0.5, 65504.0], "<f2")),
        "bfloat": ("bfloat16", numpy.array([0x3F80, 0xC2F7], "<u2")),
        "ids": ("int64", numpy.array([-1, 2**62], "<i8")),
        "counts": ("uint64", numpy.array([7], "<u8")),
        "i32": ("int32", numpy.array([-70000], "<i4")),
        "u32": ("uint32", numpy.array([4000000000], "<u4")),
        "i16": ("int16", numpy.array([-300], "<i2")),
        "u16": ("uint16", numpy.array([60000], "<u2")),
        "i8": ("int8", numpy.array([-5, 6, 7], "i1")),
        "u8": ("uint8", numpy.array([200], "u1")),
        "flags": ("bool", numpy.array([True, False, True], "?")),
        "scalar": ("float32", numpy.array(4.0, "<f4")),
        "empty": ("float32", numpy.zeros((0, 3), "<f4")),
    }
    specs = {name: safetensors.TensorSpec(dtype=dtype, shape=array.shape,
                                          data_ptr=array.ctypes.data, data_len=array.nbytes)
             for name, (dtype, array) in arrays.items()}
    return bytes(safetensors.serialize(specs, {"format": "pt"})).hex()


def written_by_numpy(array, version=None):
    out = io.BytesIO()
    numpy.lib.format.write_array(out, array, version)
    return out.getvalue().hex()


def npy_cases():
    cases = []
    for descr in ["<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1"]:
        array = numpy.arange(6).reshape(2, 3).astype(descr)
        cases.append({"descr": descr, "shape": [2, 3], "hex": written_by_numpy(array)})
    for shape in [(), (6,), (0,), (1, 2, 3), (2, 0, 3)]:
        array = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype("<f4")
        cases.append({"descr": "<f4", "shape": list(shape), "hex": written_by_numpy(array)})
    return cases


def main():
    shared = pathlib.Path(sys.argv[1])
    files = sorted(shared.glob("**/*.safetensors"))
    result = {
        "safetensors": safetensors.__version__,
        "numpy": numpy.__version__,
        "halves_crc32": halves(),
        "files": {str(f.relative_to(shared)): summary_of_file(f) for f in files},
        "written_by_safetensors": written_by_safetensors(),
        "npy": npy_cases(),
        "npy_version_2": written_by_numpy(numpy.arange(3, dtype="<i4"), (2, 0)),
        "npy_version_3": written_by_numpy(numpy.arange(3, dtype="<i4"), (3, 0)),
        "npy_fortran": written_by_numpy(numpy.asfortranarray(numpy.ones((2, 3), "<f4"))),
        "npy_big_endian": written_by_numpy(numpy.ones(2, ">f4")),
        "npy_structured": written_by_numpy(numpy.zeros(2, [("x", "<f4")])),
    }
    json.dump(result, sys.stdout, indent=1)
    print()


main()
