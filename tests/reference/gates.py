"""Values that tests/gate compares with, from scikit-learn.

Run: python3 tests/reference/gates.py > tests/reference/gates.json
Made with Python 3.11, numpy 2.4.6, scikit-learn 1.9.1.
"""

import json
import sys

import numpy as np
import sklearn
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler


def objective(x, y, model, c, weights):
    z = x @ model.coef_[0] + model.intercept_[0]
    return float((weights * np.logaddexp(0, np.where(y == 1, -z, z))).sum() + model.coef_[0] @ model.coef_[0] / (2 * c))


def logistic(x, y, c, weights=None, solver="newton-cholesky"):
    scaler = StandardScaler().fit(x)
    scaled = scaler.transform(x)
    w = np.ones(len(y)) if weights is None else weights
    model = LogisticRegression(C=c, tol=1e-10, max_iter=100_000, solver=solver).fit(scaled, y, sample_weight=w)
    return {
        "n": len(y), "x": x.ravel(), "labels": y, "C": c, "weights": [] if weights is None else weights,
        "mean": scaler.mean_, "scale": scaler.scale_, "coefficients": model.coef_[0], "intercept": model.intercept_[0],
        "probability": model.predict_proba(scaled)[:, 1], "objective": objective(scaled, y, model, c, w),
    }


def features(rng, n, d):
    """Correlated, of unequal scale and far from the origin."""
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * np.exp(rng.normal(size=d)) + 3 * rng.normal(size=d)
    return np.round(x, 3)


def noisy_labels(rng, x):
    z = (x - x.mean(0)) / x.std(0) @ rng.normal(size=x.shape[1])
    return (z / z.std() + rng.logistic(size=len(x)) > 0.3).astype(int)


def logistic_cases():
    rng = np.random.default_rng(11)
    x = features(rng, 60, 5)
    y = noisy_labels(rng, x)
    weights = np.round(rng.exponential(size=60) ** 2, 4)
    constant = features(rng, 30, 3)
    constant[:, 1] = 0.7
    wide = features(rng, 8, 12)
    separable = np.round(np.vstack([rng.normal(size=(12, 2)), rng.normal(size=(9, 2)) + [9, 4]]), 3)
    return {
        "plain": logistic(x, y, 1.0),
        "strong_penalty": logistic(x, y, 0.01),
        "weak_penalty": logistic(x, y, 1e4),
        "weighted": logistic(x, y, 1.0, weights),
        "constant_feature": logistic(constant, noisy_labels(rng, constant[:, [0, 2]]), 1.0),
        "fewer_rows_than_features": logistic(wide, np.array([0, 1, 1, 0, 1, 0, 0, 1]), 1.0),
        "separable": logistic(separable, np.repeat([0, 1], [12, 9]), 1.0),
        "separable_weak_penalty": logistic(separable, np.repeat([0, 1], [12, 9]), 1e6),
    }


def pca_gates():
    rng = np.random.default_rng(12)
    x = features(rng, 80, 6)
    y = noisy_labels(rng, x)
    scaled = StandardScaler().fit_transform(x)
    result = {"n": 80, "x": x.ravel(), "labels": y}
    for k in (1, 2, 4):
        pca = PCA(n_components=k, svd_solver="full").fit(scaled)
        model = LogisticRegression(C=1.0, tol=1e-10, max_iter=100_000, solver="newton-cholesky")
        model.fit(pca.transform(scaled), y)
        result[f"probability_{k}"] = model.predict_proba(pca.transform(scaled))[:, 1]
        result[f"explained_{k}"] = pca.explained_variance_ratio_.sum()
    pca = PCA(n_components=4, svd_solver="full").fit(scaled)
    result["components"] = pca.components_.ravel()
    result["variances"] = pca.explained_variance_ * 79 / 80  # of divisor n
    return result


def delta_regression():
    rng = np.random.default_rng(13)
    x = features(rng, 50, 4)
    delta = np.round(rng.standard_t(3, 50) * 0.05 + 0.01 * x[:, 0], 5)
    model = Ridge(alpha=2.5).fit(x, delta)
    return {"n": 50, "x": x.ravel(), "delta": delta, "lambda": 2.5, "predicted": model.predict(x)}


def labels():
    rng = np.random.default_rng(14)
    delta = np.round(rng.standard_t(3, 41) * 0.05, 4)
    harmful = np.round(np.abs(delta), 4)
    harmful[5] = -0.001  # under 5 % negative
    return {"delta": delta, "median": np.median(delta), "by_median": (delta <= np.median(delta)).astype(int),
            "harmful": harmful, "quartile": np.percentile(harmful, 25),
            "by_quartile": (harmful <= np.percentile(harmful, 25)).astype(int)}


def plain(value):
    return value.tolist()


json.dump({"versions": {"numpy": np.__version__, "sklearn": sklearn.__version__, "python": sys.version.split()[0]},
           "logistic": logistic_cases(), "pca": pca_gates(), "delta_regression": delta_regression(),
           "labels": labels()}, sys.stdout, default=plain, separators=(",", ":"))
print()
