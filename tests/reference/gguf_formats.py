"""Records what the Python package gguf gives, for tests/io/gguf_test.cpp.

Usage: python gguf_formats.py > gguf_formats.json
Per type: random blocks as hexadecimal bytes (scales kept finite), and what they dequantise to, as
CRC-32 of the float32 bytes and the first values; 128 floats, and their bytes as Q8_0; a whole file
that GGUFWriter writes. Recorded with gguf 0.19.0, numpy 2.4.6.
"""

import json
import pathlib
import tempfile
import zlib

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

BLOCKS = 5
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208], "F16": [0], "BF16": [], "F32": []}


def random_blocks(generator, name):
    elements, size = GGML_QUANT_SIZES[Type[name]]
    count = BLOCKS if elements > 1 else 64
    if name in ("F32", "BF16"):
        values = generator.standard_normal(count).astype(np.float32)
        return quantize(values.reshape(1, -1), Type[name]).view(np.uint8).reshape(-1)
    blocks = generator.integers(0, 256, (count, size), dtype=np.uint8)
    for at in HALVES[name]:
        scales = generator.standard_normal(count) * 10.0 ** generator.integers(-7, 4, count)
        blocks[:, at:at + 2] = scales.astype(np.float16).view(np.uint8).reshape(count, 2)
    return blocks.reshape(-1)


def recorded_type(generator, name):
    blocks = random_blocks(generator, name)
    values = dequantize(blocks.reshape(1, -1), Type[name]).reshape(-1).astype(np.float32)
    return {"bytes": blocks.tobytes().hex(), "crc32": zlib.crc32(values.tobytes()),
            "first": [float(v) for v in values[:4]]}


def recorded_quantization(generator):
    values = (generator.standard_normal((4, 32)) * [[1.0], [1e-3], [0.0], [300.0]]).astype(np.float32)
    values[0, :3] = [0.0, -0.0, 127.0]
    return {"values": [float(v) for v in values.reshape(-1)],
            "bytes": quantize(values, Type.Q8_0).tobytes().hex()}


def recorded_file(generator):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_uint32("llama.block_count", 3)
        writer.add_float32("x.float", 0.1)
        writer.add_bool("x.flag", True)
        writer.add_int32("x.negative", -5)
        writer.add_array("x.texts", ["a", "", "é"])
        writer.add_array("x.integers", [1, -2, 3])
        values = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
        writer.add_tensor("b.weight", values)
        writer.add_tensor("a.weight", values.astype(np.float16))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes().hex()


def main():
    generator = np.random.default_rng(11)
    print(json.dumps({
        "types": {name: recorded_type(generator, name) for name in HALVES},
        "q8_0": recorded_quantization(generator),
        "file": recorded_file(generator)}, indent=1))


main()
