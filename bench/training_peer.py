"""Times training steps beside PyTorch's on the CPU, alternating: the shape and batch of training_bench.cpp.

Run: python3 bench/training_peer.py [--programs build/native/bench] [--threads 2] [--repetitions 5]
Used with Python 3.11, torch 2.15.0, transformers 5.24.0.
"""

import argparse
import json
import resource
import statistics
import subprocess
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

STEPS = 5


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Peer:
    """GPT-2 with fused attention; loss, gradients, clipping by norm and AdamW, as in our steps."""

    def __init__(self):
        torch.manual_seed(1)
        settings = GPT2Config(vocab_size=4096, n_positions=256, n_embd=256, n_layer=6, n_head=4, use_cache=False,
                              resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        self.model = GPT2LMHeadModel._from_config(settings, attn_implementation="sdpa").train()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.ids = torch.randint(4096, (8, 256))

    def step(self):
        self.optimiser.zero_grad(set_to_none=False)
        loss = self.model(input_ids=self.ids, labels=self.ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        return loss.item()

    def seconds(self):
        """Of a step, on the wall and of processor."""
        start = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            self.step()
        return (time.perf_counter() - start[0]) / STEPS, (time.process_time() - start[1]) / STEPS


def ours(options):
    command = [f"{options.programs}/training_bench", f"--benchmark_filter=^training/threads:{options.threads}/recompute:0/",
               "--benchmark_format=json", f"--benchmark_min_time={options.seconds}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(output)["benchmarks"][0]
    return (result["real_time"] / 1e3, result["cpu_time"] / 1e3), result["peak MB"]


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--programs", default="build/native/bench")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--repetitions", type=int, default=5)
parser.add_argument("--seconds", type=float, default=3.0)
arguments = parser.parse_args()
torch.set_num_threads(arguments.threads)
before = megabytes()
peer = Peer()
peer.step()
theirs, own = [], []
for _ in range(arguments.repetitions):
    theirs.append(peer.seconds())
    seconds, peak = ours(arguments)
    own.append(seconds)
# Processor time, which other load disturbs less, where all of it is one thread's.
for clock, name in enumerate(("wall", "processor")[: 2 if arguments.threads == 1 else 1]):
    ratios = [a[clock] / b[clock] for a, b in zip(theirs, own)]
    speeds = [2048 / statistics.median(v[clock] for v in values) for values in (theirs, own)]
    print(f"{name} time, {arguments.threads} threads, medians of {arguments.repetitions} alternations: PyTorch {speeds[0]:.0f} tokens/s, ours "
          f"{speeds[1]:.0f}; ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
print(f"peak memory: PyTorch {megabytes():.0f} MB, {megabytes() - before:.0f} MB beyond its libraries; ours {peak:.0f} MB in all")
