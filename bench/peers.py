"""Times ridge and gate fits beside NumPy's and scikit-learn's on the same numbers, alternating.

Run: python3 bench/peers.py ridge|gate [--programs build/native/bench] [--threads 1] [--repetitions 5]
Used with Python 3.11, numpy 2.4.6, scikit-learn 1.9.1, threadpoolctl 3.8.
"""

import argparse
import json
import statistics
import subprocess
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

LOW = np.uint64(0xFFFFFFFF)


def uniform(seed, first, count):
    """RandomStream(seed).uniform() of include/wanamaker/core/random.hpp at these positions."""
    n = np.arange(first, first + count, dtype=np.uint64)
    c = [n & LOW, n >> np.uint64(32), np.zeros_like(n), np.zeros_like(n)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        k0, k1 = np.uint64(key[0]), np.uint64(key[1])
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k0, p1 & LOW, (p0 >> np.uint64(32)) ^ c[3] ^ k1, p0 & LOW]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return ((c[1] << np.uint64(32) | c[0]) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def mixed_rows(rows, width, extra):
    """bench/mixed_rows.hpp: x [rows × width] and further draws [rows × extra]."""
    block = 500 * (width + extra)
    u = np.concatenate([uniform(1, i * block, block) for i in range(rows // 500)]).reshape(rows, width + extra) - 0.5
    x = np.empty((rows, width), np.float32)
    before = np.zeros(rows, np.float32)
    for j in range(width):
        before = np.float32(0.9) * before + (1 / np.sqrt(1 + 0.05 * j) * u[:, j]).astype(np.float32)
        x[:, j] = before
    return x, u[:, width:]


def clocks():
    """Seconds on the wall, and of processor."""
    return np.array([time.perf_counter(), time.process_time()])


def program(options, name, benchmark):
    """Seconds, on the wall and of the main thread's processor, and counters of one run of one benchmark."""
    command = [f"{options.programs}/{name}", f"--benchmark_filter=^{benchmark}/real_time$", "--benchmark_format=json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(output)["benchmarks"][0]
    return np.array([result["real_time"], result["cpu_time"]]) / 1e3, result


def ridge_data():
    x, draws = mixed_rows(10_000, 768, 768)
    before = np.hstack([np.zeros((len(x), 1), np.float32), x[:, :-1]])
    y = np.maximum(x, 0) - np.float32(0.5) * before + (0.1 * draws).astype(np.float32)
    return x, y


def svd_ridge(x, y, penalty=0.01):
    """The published procedure's fit: W = V diag(s / (s² + λ)) Uᵀ Y in double."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    x_mean, y_mean = x.mean(0), y.mean(0)
    u, s, vt = np.linalg.svd(x - x_mean, full_matrices=False)
    w = vt.T @ ((s / (s**2 + penalty))[:, None] * (u.T @ (y - y_mean)))
    return w, y_mean - x_mean @ w


def compare_ridge(options):
    x, y = ridge_data()
    times = {"NumPy SVD": [], "exact": [], "blocked": []}
    for _ in range(options.repetitions):
        start = clocks()
        w, b = svd_ridge(x, y)
        times["NumPy SVD"].append(clocks() - start)
        for blocked, label in ((0, "exact"), (1, "blocked")):
            seconds, result = program(options, "ridge_bench", f"ridge/threads:{options.threads}/blocked:{blocked}")
            times[label].append(seconds)
            print(f"{label}: {seconds[0]:.3f} s, R2 {result['r2']:.12f}, predictions shifted by {result['shift']:.1e}")
    truth = y.astype(np.float64)
    error = truth - x.astype(np.float64) @ w - b
    print(f"NumPy SVD: R2 {1 - (error**2).sum() / ((truth - truth.mean(0)) ** 2).sum():.12f}")
    report(times, "NumPy SVD", options)


def gate_data():
    x, draws = mixed_rows(25_000, 768, 1)
    z = x.astype(np.float64) @ np.where(np.arange(768) % 3 == 0, 1, -0.5)
    delta = -0.02 * z + 0.2 * draws[:, 0]
    return x, (delta <= np.median(delta)).astype(int)


def objective(x, y, model):
    coefficients = model.coef_[0].astype(np.float64)
    z = x.astype(np.float64) @ coefficients + float(model.intercept_[0])
    return np.logaddexp(0, np.where(y == 1, -z, z)).sum() + coefficients @ coefficients / 2


def compare_gate(options):
    x, y = gate_data()
    ours = {"gradient 1e-5": 5, "gradient 1e-8": 8}
    times = {label: [] for label in ("scikit-learn", *ours)}
    for _ in range(options.repetitions):
        start = clocks()
        scaled = StandardScaler().fit_transform(x)
        model = LogisticRegression(C=1.0, max_iter=20_000).fit(scaled, y)
        times["scikit-learn"].append(clocks() - start)
        print(f"scikit-learn: {times['scikit-learn'][-1][0]:.3f} s, objective {objective(scaled, y, model):.6f}, {model.n_iter_[0]} iterations")
        for label, digits in ours.items():
            seconds, result = program(options, "gate_bench", f"logistic/threads:{options.threads}/tolerance:{digits}")
            times[label].append(seconds)
            print(f"{label}: {seconds[0]:.3f} s, objective {result['objective']:.6f}, {result['steps']:.0f} steps")
    report(times, "scikit-learn", options)


def report(times, peer, options):
    """Medians, and medians of the ratios; processor time, which load disturbs less, only where all of it is one thread's."""
    for clock, name in enumerate(("wall", "processor")[: 2 if options.threads == 1 else 1]):
        print(f"{name} time, {options.threads} threads, medians of {options.repetitions} alternations; in brackets the range")
        for label, values in times.items():
            ratios = [a[clock] / b[clock] for a, b in zip(times[peer], values)]
            print(f"  {label}: {statistics.median(v[clock] for v in values):.3f} s, {peer} takes {statistics.median(ratios):.1f} times as long ({min(ratios):.1f} to {max(ratios):.1f})")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("what", choices=["ridge", "gate"])
parser.add_argument("--programs", default="build/native/bench")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--repetitions", type=int, default=5)
arguments = parser.parse_args()
with threadpool_limits(arguments.threads):
    {"ridge": compare_ridge, "gate": compare_gate}[arguments.what](arguments)
