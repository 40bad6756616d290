#!/usr/bin/env python3
"""What transformers makes of a model that `study export` wrote: its losses on the check vectors.

Usage: exported_model.py FOLDER [TOLERANCE], with transformers and torch. Prints the largest
difference in nats from wanamaker_check.json; exit code 1 where it is above the tolerance (1e-3).
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM


def losses(folder: Path, ids: list[int]) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(folder).float().eval()
    tokens = torch.tensor([ids])
    with torch.no_grad():
        log_p = torch.log_softmax(model(tokens).logits[0, :-1].double(), dim=-1)
    return -log_p[torch.arange(len(ids) - 1), tokens[0, 1:]]


def main() -> int:
    folder = Path(sys.argv[1])
    tolerance = float(sys.argv[2]) if len(sys.argv) > 2 else 1e-3
    check = json.loads((folder / "wanamaker_check.json").read_text())
    own = torch.tensor(check["nats"], dtype=torch.float64)
    difference = (losses(folder, check["ids"]) - own).abs().max().item()
    print(f"{len(own)} losses, largest difference {difference:.3g} nats")
    return 0 if difference <= tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
