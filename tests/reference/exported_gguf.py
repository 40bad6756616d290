#!/usr/bin/env python3
"""What llama.cpp makes of the GGUF file that `study export --gguf` wrote: its losses on the check vectors.

Usage: exported_gguf.py FOLDER [TOLERANCE], with xllamacpp (2026.10 was seen to work), which has
llama.cpp in it. Each prefix of the ids is a prompt, of whose one following token all probabilities
are asked for. Prints the largest difference in nats from wanamaker_check.json; exit code 1 where it
is above the tolerance: 2e-3, since llama.cpp looks GELU up in a table of 16-bit values, and 1e-2 for
a model with the exact GELU, since the table has the tanh form, which is up to 5e-4 off at each unit.
"""

import json
import sys
from pathlib import Path

import xllamacpp


def server(model: Path, tokens: int) -> xllamacpp.Server:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.n_ctx = max(256, tokens)
    parameters.n_parallel = 1
    parameters.warmup = False
    return xllamacpp.Server(parameters)


def loss(runtime: xllamacpp.Server, ids: list[int], following: int) -> float:
    answer = runtime.handle_completions(
        {"prompt": ids, "max_tokens": 1, "temperature": 0, "samplers": [], "logprobs": 1 << 20}
    )
    for token in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
        if token["id"] == following:
            return -token["logprob"]
    raise SystemExit(f"llama.cpp gives token {following} no probability")


def main() -> int:
    folder = Path(sys.argv[1])
    exact = json.loads((folder / "config.json").read_text()).get("hidden_act") == "gelu"
    tolerance = float(sys.argv[2]) if len(sys.argv) > 2 else (1e-2 if exact else 2e-3)
    check = json.loads((folder / "wanamaker_check.json").read_text())
    ids, nats = check["ids"], check["nats"]
    runtime = server(folder / "model.gguf", len(ids) + 1)
    found = [loss(runtime, ids[:i], ids[i]) for i in range(1, len(ids))]
    difference = max(abs(a - b) for a, b in zip(found, nats))
    mean, own = sum(found) / len(found), sum(nats) / len(nats)
    print(f"{len(found)} losses, mean {mean:.6f} and ours {own:.6f}, largest difference {difference:.3g} nats")
    return 0 if difference <= tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
