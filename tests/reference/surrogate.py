"""Records what scikit-learn and NumPy give for the fits of the surrogate layer.

    python3 surrogate.py > surrogate.json        (scikit-learn 1.9.1, NumPy 2.4.6)

Ridge: sklearn.linear_model.Ridge with its unpenalised intercept, plain and with sample weights.
Generalised cross-validation: n·RSS/(n − tr H)², with the hat matrix H taken from Ridge itself by
fitting the unit vectors (RidgeCV's default is leave-one-out, another criterion). Reduced rank: the
fitted values of least squares projected on their first right singular vectors, in the metric M.
"""
import json

import numpy as np
from sklearn.linear_model import LinearRegression, Ridge

rng = np.random.default_rng(7)
n, d, e = 40, 5, 3
X = np.round(rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d), 3)
Y = np.round(X @ rng.normal(size=(d, e)) + 2 * rng.normal(size=(n, e)) + 1, 3)
weights = np.round(rng.uniform(0.1, 2.0, size=n), 3)
root = rng.normal(size=(e, e))
M = np.round(root @ root.T + np.eye(e), 3)


def fit(alpha, w=None):
    r = Ridge(alpha=alpha, solver="svd").fit(X, Y, sample_weight=w)
    return {"alpha": alpha, "weight": r.coef_.T.tolist(), "bias": r.intercept_.tolist(),
            "r2": float(r.score(X, Y, sample_weight=w)) if w is None else None}


def gcv(alpha):
    r = Ridge(alpha=alpha, solver="svd").fit(X, Y)
    residual = Y - r.predict(X)
    hat = np.stack([Ridge(alpha=alpha, solver="svd").fit(X, unit).predict(X) for unit in np.eye(n)])
    return n * float((residual**2).sum()) / (n - np.trace(hat)) ** 2


def reduced_rank(k, metric):
    ols = LinearRegression().fit(X, Y)
    fitted = ols.predict(X) - Y.mean(axis=0)
    values, vectors = np.linalg.eigh(metric)
    half = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    v = np.linalg.svd(fitted @ half)[2][:k].T
    projection = half @ v @ v.T @ np.linalg.inv(half)
    return {"rank": k, "weight": (ols.coef_.T @ projection).tolist()}


grid = [10.0**p for p in range(-4, 5)]
print(json.dumps({
    "x": X.tolist(), "y": Y.tolist(), "sample_weight": weights.tolist(), "metric": M.tolist(),
    "ridge": [fit(a) for a in (0.01, 1.0, 100.0)],
    "weighted_ridge": fit(0.5, weights),
    "gcv": [{"alpha": a, "score": gcv(a)} for a in grid],
    "reduced_rank": [reduced_rank(k, np.eye(e)) for k in (1, 2, 3)],
    "reduced_rank_metric": [reduced_rank(k, M) for k in (1, 2)],
}))
