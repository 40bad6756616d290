"""Records stretched rotary frequencies for tests/nn/rope_scaling_test.cpp.

Usage: python rope_scaling.py TRANSFORMERS > rope_scaling.json
TRANSFORMERS: an unpacked wheel of transformers (5.24.0). Its own functions are run, with numpy's
float64 in place of torch.
"""

import ast
import json
import math
import pathlib
import sys
import types

import numpy as np


class Array(np.ndarray):
    def to(self, *_, **__):
        return self


def array(values):
    return np.asarray(values, dtype=np.float64).view(Array)


torch = types.SimpleNamespace(
    float=None, float32=None, int64=None, Tensor=None, device=None,
    arange=lambda *bounds, **_: array(np.arange(*bounds)),
    clamp=lambda x, low, high: array(np.clip(x, low, high)),
    where=lambda condition, a, b: array(np.where(condition, a, b)))

NAMES = {"linear": "_compute_linear_scaling_rope_parameters", "yarn": "_compute_yarn_parameters",
         "llama3": "_compute_llama3_parameters"}

CASES = [
    (64, 64, 10000.0, {"rope_type": "linear", "factor": 2.5}),
    (64, 64, 500000.0, {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
    (128, 128, 500000.0, {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
    (128, 128, 1000000.0, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}),
    (64, 64, 10000.0, {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 4096,
                       "beta_fast": 20, "beta_slow": 2, "truncate": False}),
    (64, 64, 10000.0, {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096,
                       "mscale": 0.707, "mscale_all_dim": 1.0}),
    (64, 64, 10000.0, {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64,
                       "attention_factor": 1.25}),
]


def functions(folder):
    source = (pathlib.Path(folder) / "transformers/modeling_rope_utils.py").read_text(encoding="utf-8")
    chosen = [node for node in ast.parse(source).body
              if isinstance(node, ast.FunctionDef) and node.name in NAMES.values()]
    for node in chosen:
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
    space = {"torch": torch, "math": math}
    exec(compile(ast.Module(chosen, []), "rope", "exec"), space)
    return space


def main():
    space = functions(sys.argv[1])
    cases = []
    for head_width, width, theta, settings in CASES:
        config = types.SimpleNamespace(
            head_dim=head_width, hidden_size=head_width, num_attention_heads=1, per_layer_config={},
            max_position_embeddings=0, rope_parameters=settings | {"rope_theta": theta},
            standardize_rope_params=lambda: None)
        frequencies, magnitude = space[NAMES[settings["rope_type"]]](config)
        cases.append({"width": width, "theta": theta, "settings": settings, "magnitude": magnitude,
                      "frequencies": [float(f) for f in frequencies]})
    print(json.dumps(cases, indent=1))


main()
