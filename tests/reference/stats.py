"""Values that tests/stats compares with, from peer libraries.

Run: python3 tests/reference/stats.py > tests/reference/stats.json
Made with Python 3.11, numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1, statsmodels 0.15.0.
"""

import json
import sys

import numpy as np
import scipy
import sklearn
import statsmodels
import statsmodels.api
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score
from statsmodels.stats.multitest import multipletests


def distributions():
    z = [-37.0, -20.0, -8.0, -3.0, -1.0, -1e-8, 0.0, 1e-3, 0.5, 1.959963984540054, 4.0, 8.0]
    p = [1e-300, 1e-100, 1e-20, 1e-5, 0.001, 0.025, 0.1, 0.3, 0.4999999, 0.5, 0.5000001, 0.8, 0.975, 0.999999]
    t = [-60.0, -12.0, -4.0, -1.5, -0.3, -0.02, 0.0, 0.7, 2.5, 9.0]
    degrees = [1.0, 1.5, 2.0, 3.0, 9.0, 38.0, 500.0, 1e5, 1e7]
    tp = [1e-12, 1e-5, 0.0005, 0.025, 0.2, 0.45, 0.6, 0.95, 0.995]
    td = [(x, d) for d in degrees for x in t]
    tq = [(x, d) for d in degrees for x in tp]
    binomial = [(0, 1, 0.5), (3, 10, 0.5), (9, 10, 0.5), (17, 50, 0.5), (460, 1000, 0.5), (49000, 100000, 0.5),
                (0, 30, 0.01), (2, 30, 0.01), (29, 30, 0.9), (120, 400, 0.37), (5, 5000, 0.004)]
    return {
        "normal": {"z": z, "cdf": stats.norm.cdf(z), "p": p, "quantile": stats.norm.ppf(p)},
        "student_t": {
            "t": [x for x, _ in td], "degrees": [d for _, d in td], "cdf": [stats.t.cdf(x, d) for x, d in td],
            "p": [x for x, _ in tq], "p_degrees": [d for _, d in tq],
            "quantile": [stats.t.ppf(x, d) for x, d in tq],
        },
        "binomial": {
            "k": [k for k, _, _ in binomial], "n": [n for _, n, _ in binomial], "p": [p for _, _, p in binomial],
            "cdf": [stats.binom.cdf(*b) for b in binomial],
            "upper_tail": [stats.binom.sf(k - 1, n, p) for k, n, p in binomial],
        },
        "sign_test": {
            "worse": [7, 12, 0, 31, 5], "better": [3, 12, 6, 9, 0],
            "p_value": [stats.binomtest(a, a + b, 0.5).pvalue for a, b in [(7, 3), (12, 12), (0, 6), (31, 9), (5, 0)]],
        },
    }


def paired():
    """60 documents of unequal length with a long upper tail, where BCa and percentile part ways."""
    rng = np.random.default_rng(4)
    tokens = np.round(np.exp(rng.normal(5, 0.6, 60))).astype(int)
    difference = np.round(tokens * (0.02 + 0.05 * (rng.exponential(1, 60) ** 1.5 - 1)), 4)

    def ratio(d, n, axis=-1):
        return d.sum(axis=axis) / n.sum(axis=axis)

    def interval(method):
        result = stats.bootstrap((difference, tokens), ratio, paired=True, vectorized=True, n_resamples=1_000_000,
                                 batch=20_000, method=method, random_state=np.random.default_rng(1))
        return list(result.confidence_interval), float(result.standard_error)

    bca, standard_error = interval("BCa")
    rates = np.repeat(difference / tokens, tokens)
    groups = np.repeat(np.arange(60), tokens)
    fit = statsmodels.api.OLS(rates, np.ones_like(rates)).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    return {
        "tokens": tokens, "difference_nats": difference, "delta_nats": ratio(difference, tokens),
        "bca": bca, "percentile": interval("percentile")[0], "bootstrap_standard_error": standard_error,
        "resamples": 1_000_000,
        "cluster_standard_error": fit.bse[0], "cluster_t": fit.conf_int(0.05)[0], "cluster_t_p_value": fit.pvalues[0],
    }


def adjusted():
    rng = np.random.default_rng(5)
    p = np.round(rng.uniform(0, 1, 24) ** 3, 6)
    p[7] = p[3]
    return {"p": p, "holm": multipletests(p, method="holm")[1], "bh": multipletests(p, method="fdr_bh")[1]}


def scores():
    rng = np.random.default_rng(6)
    labels = (rng.uniform(size=300) < 0.35).astype(int)
    tied = np.round(rng.normal(size=300) + 0.6 * labels, 1)
    probability = np.round(1 / (1 + np.exp(-1.3 * rng.normal(size=300) - labels)), 6)
    share, mean = calibration_curve(labels, probability, n_bins=10)
    return {"labels": labels, "tied": tied, "auc": roc_auc_score(labels, tied), "probability": probability,
            "brier": brier_score_loss(labels, probability), "share_positive": share, "mean_predicted": mean}


def pairs():
    rng = np.random.default_rng(7)
    x = np.round(rng.standard_t(3, 80), 2)
    y = np.round(0.4 * x + rng.normal(size=80), 1)
    p = [0.0, 0.01, 0.137, 0.25, 0.5, 0.9, 0.99, 1.0]
    return {"x": x, "y": y, "pearson": stats.pearsonr(x, y)[0], "spearman": stats.spearmanr(x, y)[0],
            "ranks_y": stats.rankdata(y), "p": p, "quantiles_x": np.quantile(x, p), "mean_x": x.mean(),
            "variance_x": x.var(ddof=1)}


def plain(value):
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


versions = {m.__name__: m.__version__ for m in (np, scipy, sklearn, statsmodels)}
versions["python"] = sys.version.split()[0]
json.dump({"versions": versions, **distributions(), "paired": paired(), "adjusted": adjusted(), "scores": scores(),
           "pairs": pairs()}, sys.stdout, default=plain, separators=(",", ":"))
print()
