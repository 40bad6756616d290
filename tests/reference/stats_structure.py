"""Values that tests/stats compares with for clusters, variance components and regressions, from peer libraries.

Run: python3 tests/reference/stats_structure.py > tests/reference/stats_structure.json
Made with Python 3.11, numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1, statsmodels 0.15.0, pandas 3.1.1.
"""

import json
import sys

import numpy as np
import pandas
import scipy
import sklearn
import statsmodels
import statsmodels.formula.api as formula
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, silhouette_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.stats.anova import anova_lm


def clusters():
    """Overlapping clouds from given centres, and separate ones from k-means++ with many restarts."""
    rng = np.random.default_rng(11)
    x = np.round(rng.normal(size=(90, 3)) + 1.5 * rng.integers(-1, 2, size=(90, 3)), 3)
    lloyd = KMeans(4, init=x[:4], n_init=1, algorithm="lloyd", tol=0).fit(x)
    label = rng.integers(0, 3, 90)
    y = np.round(rng.normal(size=90) + 0.4 * (lloyd.labels_ == 2), 4)
    fit = formula.ols("y ~ C(g)", pandas.DataFrame({"y": y, "g": lloyd.labels_})).fit()
    clouds = np.round(rng.normal(size=(150, 2)) + 9 * np.stack([np.arange(150) % 5, (np.arange(150) % 5) ** 2], 1), 3)
    best = KMeans(5, n_init=50, random_state=0, algorithm="lloyd", tol=0).fit(clouds)
    return {
        "x": x.ravel(), "labels": lloyd.labels_, "centres": lloyd.cluster_centers_.ravel(), "inertia": lloyd.inertia_,
        "silhouette": silhouette_score(x, lloyd.labels_), "other_labels": label,
        "purity": contingency_matrix(lloyd.labels_, label).max(axis=1).sum() / 90,
        "y": y, "r2": fit.rsquared, "r2_adjusted": fit.rsquared_adj,
        "clouds": clouds.ravel(), "clouds_inertia": best.inertia_,
        "clouds_silhouette": silhouette_score(clouds, best.labels_),
    }


def components():
    rng = np.random.default_rng(12)
    unequal = np.repeat(np.arange(14), rng.integers(1, 9, 14))
    y = np.round(0.8 * rng.normal(size=14)[unequal] + rng.normal(size=unequal.size), 4)
    table = anova_lm(formula.ols("y ~ C(g)", pandas.DataFrame({"y": y, "g": unequal})).fit())
    equal = np.repeat(np.arange(12), 5)
    z = np.round(0.9 * rng.normal(size=12)[equal] + rng.normal(size=60), 4)
    frame = pandas.DataFrame({"y": z, "g": equal})
    mixed = formula.mixedlm("y ~ 1", frame, groups=frame["g"]).fit(reml=True, method=["bfgs"], gtol=1e-12)
    f = [0.1, 0.7, 1.0, 2.5, 9.0, 60.0]
    degrees = [(1, 5), (3, 40), (13, 51), (200, 3000)]
    return {
        "types": unequal, "y": y, "mean_square_between": table["mean_sq"].iloc[0],
        "mean_square_within": table["mean_sq"].iloc[1], "f": table["F"].iloc[0], "p_value": table["PR(>F)"].iloc[0],
        "equal_types": equal, "equal_y": z, "reml_between": mixed.cov_re.iloc[0, 0], "reml_within": mixed.scale,
        "tail_f": [x for _ in degrees for x in f], "tail_d1": [a for a, _ in degrees for _ in f],
        "tail_d2": [b for _, b in degrees for _ in f], "tail": [stats.f.sf(x, *d) for d in degrees for x in f],
    }


def regressions():
    """Features in 64ths, which are exact in the single precision that scikit-learn's trees have."""
    rng = np.random.default_rng(13)
    x = np.round(64 * rng.normal(size=(150, 4)) * [1, 3, 0.5, 2]) / 64
    y = np.round(np.sin(2 * x[:, 0]) + 0.2 * x[:, 1] + (x[:, 2] > 0.1) * x[:, 3] + 0.3 * rng.normal(size=150), 4)
    fold = np.arange(150) // 3 % 5
    ridge = make_pipeline(StandardScaler(), Ridge(alpha=3.0)).fit(x, y)
    scale, line = ridge[0], ridge[1]
    weights = line.coef_ / scale.scale_
    held_out = cross_val_predict(make_pipeline(StandardScaler(), Ridge(alpha=3.0)), x, y, cv=PredefinedSplit(fold))
    trees = GradientBoostingRegressor(n_estimators=25, max_depth=3, learning_rate=0.1, min_samples_leaf=5,
                                      random_state=0).fit(x, y)
    return {
        "x": x.ravel(), "y": y, "fold": fold, "weights": weights, "intercept": line.intercept_ - weights @ scale.mean_,
        "held_out": held_out, "held_out_r2": r2_score(y, held_out), "held_out_spearman": stats.spearmanr(y, held_out)[0],
        "boosted": trees.predict(x), "boosted_first": next(trees.staged_predict(x)),
    }


def plain(value):
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


versions = {m.__name__: m.__version__ for m in (np, scipy, sklearn, statsmodels, pandas)}
versions["python"] = sys.version.split()[0]
json.dump({"versions": versions, "clusters": clusters(), "components": components(), "regressions": regressions()},
          sys.stdout, default=plain, separators=(",", ":"))
print()
