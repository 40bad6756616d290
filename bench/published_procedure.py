#!/usr/bin/env python3
"""Times the published procedure, written anew with PyTorch and scikit-learn, on one layer of a GPT-2
model, beside `study sweep --protocol paper-rows` on the same rows, with as many threads.

    python bench/published_procedure.py MODEL_FOLDER ROWS.txt [--layer 3] [--threads 2]
        [--study build/native/examples/study/study] [--all-layers] [--ladder] [--gpt2-shape] [--every 1]

--all-layers: the program measures all layers, and its time is divided by their number.
--ladder: then also all layers with the whole ladder, twenty stand-ins in the place of the
    procedure's five, by the rigorous protocol: rows are documents, as many tokens to fit, to gate and
    to report on, and a third as many more to select on.
--gpt2-shape: a model of GPT-2's shape (124 million parameters) with random weights; MODEL_FOLDER
    gives only the tokenizer.
--every N: of the rows only each N-th is kept, the others are blank, for both sides.

Needs torch, transformers, scikit-learn. It follows the procedure's figures: fit on 10,000 tokens of
rows 0-499, gates on 25,000 tokens of rows 1000-2999, evaluation on 12,000 tokens of rows 2000-2499,
row by row, lambda 0.01, four gates in three trials each. Prints seconds by stage, and the ratio.
"""
import argparse
import json
import math
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel


def rows_until(rows, first, last, cut, ignored, enough):
    """Token rows of a range until `enough` tokens are counted."""
    chosen, counted = [], 0
    for row in rows[first:last]:
        ids = row[:cut]
        if len(ids) < 2:
            continue
        chosen.append(torch.tensor([ids]))
        counted += len(ids) - ignored
        if counted >= enough:
            break
    return chosen


class ReplacedMlp(torch.nn.Module):
    """The MLP, its linear map, or a gated mixture of rows; remembers what it saw."""

    def __init__(self, mlp):
        super().__init__()
        self.mlp, self.mode, self.gate = mlp, "full", None
        self.weight = self.bias = None
        self.inputs = self.outputs = None

    def forward(self, x):
        if self.mode == "linear":
            return x @ self.weight + self.bias
        y = self.mlp(x)
        if self.mode == "observe":
            self.inputs, self.outputs = x[0], y[0]
        if self.mode == "gated":
            linear = x @ self.weight + self.bias
            routed = torch.from_numpy(self.gate(x[0].numpy())).view(1, -1, 1)
            y = torch.where(routed, linear, y)
        return y


def token_losses(model, ids):
    logits = model(ids).logits[0, :-1].double()
    return torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none")


def perplexity(model, rows, limit):
    losses = []
    counted = 0
    for ids in rows:
        own = token_losses(model, ids)
        losses.append(own.sum().item())
        counted += len(own)
        if counted >= limit:
            break
    return math.exp(sum(losses) / counted)


def ridge_by_svd(x, y, penalty):
    mean_x, mean_y = x.mean(0), y.mean(0)
    u, s, v = np.linalg.svd(x - mean_x, full_matrices=False)
    weight = v.T @ ((s / (s * s + penalty))[:, None] * (u.T @ (y - mean_y)))
    return weight, mean_y - mean_x @ weight


def fit_gate(inputs, labels, components, seed):
    scaler = StandardScaler().fit(inputs)
    features = scaler.transform(inputs)
    pca = PCA(components, random_state=seed).fit(features) if components else None
    if pca:
        features = pca.transform(features)
    fit = LogisticRegression(C=1.0, max_iter=1000, random_state=seed).fit(features, labels)

    def gate(x):
        z = scaler.transform(x)
        return fit.predict_proba(pca.transform(z) if pca else z)[:, 1] > 0.5

    return gate


def parts_of(model, rows):
    """The rows to fit on, to gate on, to evaluate on."""
    cut = min(512, model.config.n_positions)
    return (rows_until(rows, 0, 500, cut, 0, 10000), rows_until(rows, 1000, 3000, min(256, cut), 1, 25000),
            rows_until(rows, 2000, 2500, cut, 1, 12000))


def procedure(model, parts, layer):
    """Seconds by stage for one layer, and the perplexities."""
    fit_rows, gate_rows, eval_rows = parts
    seconds, found = {}, {}

    def timed(stage, f):
        start = time.perf_counter()
        result = f()
        seconds[stage] = seconds.get(stage, 0) + time.perf_counter() - start
        return result

    found["baseline"] = perplexity(model, eval_rows, 12000)
    site = ReplacedMlp(model.transformer.h[layer].mlp)
    model.transformer.h[layer].mlp = site

    def observe(chosen):
        site.mode = "observe"
        pairs = []
        for ids in chosen:
            model(ids)
            pairs.append((site.inputs, site.outputs))
        site.mode = "full"
        return [torch.cat(p).double().numpy() for p in zip(*pairs)]

    def fit():
        x, y = observe(fit_rows)
        weight, bias = ridge_by_svd(x[:10000], y[:10000], 0.01)
        site.weight, site.bias = torch.from_numpy(weight).float(), torch.from_numpy(bias).float()

    def collect():
        inputs, delta = [], []
        for ids in gate_rows:
            site.mode = "observe"
            full = token_losses(model, ids)
            inputs.append(site.inputs[:-1])
            site.mode = "linear"
            delta.append(token_losses(model, ids) - full)
        site.mode = "full"
        return torch.cat(inputs)[:25000].numpy(), torch.cat(delta)[:25000].numpy()

    def evaluate(mode):
        site.mode = mode
        return perplexity(model, eval_rows, 12000)

    timed("fit", fit)
    found["all_linear"] = timed("evaluate", lambda: evaluate("linear"))
    inputs, delta = timed("collect", collect)
    labels = delta <= np.median(delta)
    if (delta < 0).mean() < 0.05:
        labels = delta <= np.quantile(delta, 0.25)
    for components in (None, 2, 6, 12):
        for trial in range(3):
            site.gate = timed("gates", lambda: fit_gate(inputs, labels, components, trial))
            value = timed("evaluate", lambda: evaluate("gated"))
            name = f"b={components // 2}" if components else "linear"
            found[name] = min(value, found.get(name, math.inf))
    model.transformer.h[layer].mlp = site.mlp
    return seconds, found


def study(program, model, text, layer, threads, layers):
    """Seconds for one layer and its perplexities; `layers`: how many share the run, 1 or all."""
    chosen = ["--layers", str(layer)] if layers == 1 else []
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([program, "sweep", "--protocol", "paper-rows", "--format", "plain", "--model",
                        model, "--text", text, "--threads", str(threads), "--out", out, "--quiet",
                        *chosen], check=True, stdout=subprocess.DEVNULL)
        result = json.loads(Path(out, "sweep.json").read_text())
        times = json.loads(Path(out, "sweep.times.json").read_text())
    paper = next(l for l in result["layers"] if l["layer"] == layer)["paper"]
    found = {"baseline": result["baseline"]["perplexity"], "all_linear": paper["all_linear_ppl"]}
    found.update({g["name"]: g["ppl"] for g in paper["gates"]})
    return times["seconds"] / layers, found


def tera_flops(config, parts):
    """FLOPs of one layer by the procedure, and by the program on average over layers, in 10^12: two for
    each weight and token; norms and attention's scores are left out on both sides."""
    fit, gate, report = (sum(ids.numel() for ids in part) for part in parts)
    block, head = 24 * config.n_embd**2, 2 * config.n_embd * config.vocab_size
    whole = config.n_layer * block + head
    above = (config.n_layer - 1) / 2 * block + head
    theirs = (14 * report + 2 * gate + fit) * whole
    ours = (5 * report + gate) * above + (report + gate + fit) * block + (report + gate) * whole / config.n_layer
    return theirs / 1e12, ours / 1e12


def ladder(program, model, lines, parts, threads):
    """Seconds a layer of the whole ladder on all layers; what tokens and stand-ins there were."""
    fit, gate, report = (sum(ids.numel() for ids in part) for part in parts)
    tokens = {"fit": fit, "gate": gate, "select": report // 3, "report": report}
    counts = [v for k, n in tokens.items() for v in (f"--{k}-tokens", str(n))]
    with tempfile.TemporaryDirectory() as out:
        text = Path(out, "rows.jsonl")
        text.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines if line.strip()),
                        encoding="utf-8")
        subprocess.run([program, "sweep", "--model", model, "--text", text, "--threads",
                        str(threads), "--out", out, "--quiet", *counts], check=True,
                       stdout=subprocess.DEVNULL)
        result = json.loads(Path(out, "sweep.json").read_text())
        times = json.loads(Path(out, "sweep.times.json").read_text())
    layers = result["layers"]
    return times["seconds"] / len(layers), {
        "fit": result["fit"]["tokens"], "gate": result["gate"]["tokens"],
        "report": result["baseline"]["tokens"], "stand-ins": len(layers[0]["variants"])}


def gpt2_shape(tokenizer_folder, folder):
    """Writes a model of GPT-2's shape with random weights beside the tokenizer's files."""
    weights = shutil.ignore_patterns("*.safetensors", "config.json")
    shutil.copytree(tokenizer_folder, folder, ignore=weights)
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config()).save_pretrained(folder)
    return str(folder)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--layer", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--study")
    parser.add_argument("--all-layers", action="store_true")
    parser.add_argument("--ladder", action="store_true")
    parser.add_argument("--gpt2-shape", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    with tempfile.TemporaryDirectory() as folder:
        if a.gpt2_shape:
            a.model = gpt2_shape(a.model, Path(folder, "model"))
        lines = Path(a.text).read_text(encoding="utf-8").split("\n")[:3000]
        lines = [line if i % a.every == 0 else "" for i, line in enumerate(lines)]
        a.text = str(Path(folder, "rows.txt"))
        Path(a.text).write_text("\n".join(lines) + "\n", encoding="utf-8")
        compare(a, lines)


def compare(a, lines):
    tokenizer = AutoTokenizer.from_pretrained(a.model)
    model = GPT2LMHeadModel.from_pretrained(a.model, dtype=torch.float32).eval()
    rows = [tokenizer(line + "\n")["input_ids"] if line.strip() else [] for line in lines]
    parts = parts_of(model, rows)
    seconds, theirs = procedure(model, parts, a.layer)
    total = sum(seconds.values())
    print("procedure:", ", ".join(f"{k} {v:.1f} s" for k, v in seconds.items()), f"= {total:.1f} s")
    work = tera_flops(model.config, parts)
    print(f"  {work[0]:.2f} TFLOP; of paper-rows on all layers {work[1]:.2f}, {work[0] / work[1]:.2f} times less")
    if a.study:
        layers = model.config.n_layer if a.all_layers else 1
        own, ours = study(a.study, a.model, a.text, a.layer, a.threads, layers)
        print(f"study: {own:.2f} s a layer, {layers} in one run; ratio {total / own:.1f}")
        for name, value in theirs.items():
            print(f"  {name}: perplexity {value:.4f}, study {ours[name]:.4f}")
    if a.study and a.ladder:
        own, what = ladder(a.study, a.model, lines, parts, a.threads)
        print(f"whole ladder: {own:.2f} s a layer; ratio {total / own:.1f}; {what}")


if __name__ == "__main__":
    main()
