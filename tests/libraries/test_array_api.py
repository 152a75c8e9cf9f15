"""Libraries that take arrays by the Array API standard: SciPy, scikit-learn, array-api-compat.

SciPy reads `SCIPY_ARRAY_API` when it is imported, so the programs run in a process of their own.
"""

import array_api_compat
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.cluster.vq
import scipy.constants
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.optimize.elementwise
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
import sklearn.decomposition
import sklearn.discriminant_analysis
import sklearn.gaussian_process
import sklearn.kernel_ridge
import sklearn.linear_model
import sklearn.metrics
import sklearn.mixture
import sklearn.model_selection
import sklearn.naive_bayes
import sklearn.preprocessing
from outcomes import Programs
from scipy.spatial.transform import Rotation

rng = np.random.RandomState(0)
x = jnp.asarray(rng.randn(20, 4), jnp.float32)
y = jnp.asarray(rng.randn(20, 4), jnp.float32)
v = jnp.asarray(rng.rand(12) + 0.1, jnp.float32)
labels = jnp.asarray(rng.randint(0, 3, 20))
target = x @ jnp.arange(4.0) + 1.0

# SciPy and scikit-learn assign to elements in these functions, which arrays of JAX refuse.
WRITES = dict(raises=TypeError, why="the function assigns to elements of an array")


def namespaces(t):
    t("namespace", lambda: (array_api_compat.array_namespace(x) is jnp, array_api_compat.is_jax_array(x), array_api_compat.is_numpy_array(x)))
    t("device", lambda: (str(array_api_compat.device(x).platform), array_api_compat.to_device(x, jax.devices()[0])))
    t("size", lambda: (array_api_compat.size(x), array_api_compat.is_writeable_array(x), array_api_compat.is_lazy_array(x)))
    t("in jit", lambda: jax.jit(lambda a: array_api_compat.array_namespace(a).sum(a))(x))
    info = jnp.__array_namespace_info__()
    t("capabilities", lambda: [str(k) for k in sorted(info.capabilities())])
    t("dtypes", lambda: sorted(info.dtypes(kind="real floating")))
    t("defaults", lambda: [str(d) for d in info.default_dtypes().values()])
    t("mixed", lambda: array_api_compat.array_namespace(x, np.ones(2)), raises=TypeError, why="the arrays are of two libraries")


def of_scipy(t):
    for name in ("expit", "logit", "gammaln", "digamma", "erf", "erfc", "i0", "i0e", "i1", "log_ndtr", "ndtr", "ndtri", "entr"):
        t(f"special {name}", lambda: getattr(scipy.special, name)(v / 3))
    for name in ("betainc", "gammainc", "gammaincc", "rel_entr", "xlogy", "xlog1py", "zeta", "chdtrc"):
        args = (v, v + 1, v / 3) if name == "betainc" else (v + 1, v + 2)
        t(f"special {name}", lambda: getattr(scipy.special, name)(*args))
    t("logsumexp", lambda: (scipy.special.logsumexp(x, axis=1), scipy.special.softmax(x, axis=0)[0], scipy.special.log_softmax(x, axis=1)[0]))
    for name in ("zscore", "skew", "kurtosis", "gmean", "hmean", "variation", "moment", "sem", "tmean", "circmean", "entropy", "describe"):
        t(f"stats {name}", lambda: getattr(scipy.stats, name)(jnp.abs(x)))
    for name in ("pearsonr", "ttest_rel", "ttest_ind", "ks_2samp", "spearmanr"):
        t(f"stats {name}", lambda: tuple(float(p) for p in getattr(scipy.stats, name)(x[:, 0], y[:, 0])))
    t("ttest of one", lambda: scipy.stats.ttest_1samp(x, 0.0).pvalue)
    t("chi square", lambda: scipy.stats.chisquare(v * 10, jnp.full(12, (v * 10).mean())).statistic)
    t("fft", lambda: (scipy.fft.fft(v), scipy.fft.rfft(x, axis=0)[1], scipy.fft.fftfreq(4, xp=jnp)))
    t("convolve", lambda: scipy.signal.convolve(v, v[:3], mode="same"))
    t("fftconvolve", lambda: scipy.signal.fftconvolve(x, y, mode="same")[0])
    t("correlate", lambda: scipy.signal.correlate(v, v[:4]))
    t("detrend", lambda: scipy.signal.detrend(v))
    t("welch", lambda: scipy.signal.welch(jnp.tile(v, 4), nperseg=16)[1])
    t("window", lambda: scipy.signal.windows.hann(8, xp=jnp))
    t("map coordinates", lambda: scipy.ndimage.map_coordinates(x, jnp.array([[0.5, 1.5], [1.0, 2.5]]), order=1))
    t("quantization", lambda: scipy.cluster.vq.vq(x, x[:3]))
    t("whitened", lambda: scipy.cluster.vq.whiten(x)[0])
    t("temperature", lambda: scipy.constants.convert_temperature(v, "Celsius", "Kelvin"))
    t("derivative", lambda: scipy.differentiate.derivative(jnp.sin, v).df)
    t("root", lambda: scipy.optimize.elementwise.find_root(lambda a: a**2 - 2, (jnp.zeros(2), jnp.full(2, 3.0))).x, **WRITES)
    t("minimum", lambda: scipy.optimize.elementwise.find_minimum(lambda a: (a - 1) ** 2, (jnp.array(-1.0), jnp.array(0.5), jnp.array(3.0))).success, **WRITES)
    # The relative error that SciPy asks for by itself, 1e-8, is never reached in single precision.
    t("cubature", lambda: scipy.integrate.cubature(lambda p: jnp.exp(-(p**2).sum(-1)), jnp.zeros(2), jnp.ones(2), rtol=1e-5).estimate)
    t("trapezoid", lambda: (scipy.integrate.trapezoid(v), scipy.integrate.simpson(v), scipy.integrate.cumulative_trapezoid(v)))
    t("rotation", lambda: Rotation.from_rotvec(jnp.array([0.1, 0.2, 0.3])).apply(jnp.eye(3)))
    t(
        "rotations",
        lambda: (Rotation.from_euler("xyz", jnp.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])) * Rotation.from_quat(jnp.array([0.0, 0, 0, 1]))).as_quat(),
    )
    t("jitted expit", lambda: jax.jit(scipy.special.expit)(v))
    t("gradient of logsumexp", lambda: jax.grad(lambda a: scipy.special.logsumexp(a))(v))
    t("jitted variation", lambda: jax.jit(lambda a: scipy.stats.variation(a, axis=0))(x))


def dispatched(f):
    """What a function gives while scikit-learn takes arrays of other namespaces as they are."""

    def run():
        with sklearn.config_context(array_api_dispatch=True):
            return f()

    return run


def of_sklearn(t):
    for scaler in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "Binarizer", "PolynomialFeatures"):
        t(scaler, dispatched(lambda: getattr(sklearn.preprocessing, scaler)().fit_transform(x)), **WRITES)
    t("kernel center", dispatched(lambda: sklearn.preprocessing.KernelCenterer().fit_transform(x @ x.T)[0]))
    t("labels", dispatched(lambda: sklearn.preprocessing.LabelEncoder().fit_transform(labels)))
    t("pca", dispatched(lambda: jnp.abs(sklearn.decomposition.PCA(2, svd_solver="full").fit(x).components_)))
    t("pca variance", dispatched(lambda: sklearn.decomposition.PCA(2, svd_solver="covariance_eigh").fit(x).explained_variance_), **WRITES)
    t("ridge", dispatched(lambda: sklearn.linear_model.Ridge(0.1, solver="svd").fit(x, target).coef_), **WRITES)
    t("ridge by cv", dispatched(lambda: sklearn.linear_model.RidgeCV([0.1, 1.0]).fit(x, target).coef_))
    t("logistic", dispatched(lambda: sklearn.linear_model.LogisticRegression().fit(x, labels).coef_), **WRITES)
    t("lda", dispatched(lambda: sklearn.discriminant_analysis.LinearDiscriminantAnalysis().fit(x, labels).predict(x)), **WRITES)
    t("bayes", dispatched(lambda: sklearn.naive_bayes.GaussianNB().fit(x, labels).predict_proba(x)[0]), **WRITES)
    t("mixture", dispatched(lambda: sklearn.mixture.GaussianMixture(2, init_params="random_from_data", random_state=0).fit(x).weights_), **WRITES)
    t("split", dispatched(lambda: sklearn.model_selection.train_test_split(x, labels, random_state=0)[2].shape))
    of_labels = ("accuracy_score", "zero_one_loss", "hamming_loss", "confusion_matrix")
    for name in of_labels:
        t(name, dispatched(lambda: getattr(sklearn.metrics, name)(labels, labels[::-1])))
    for name in ("f1_score", "precision_score", "recall_score", "jaccard_score"):
        t(name, dispatched(lambda: getattr(sklearn.metrics, name)(labels, labels[::-1], average="macro")), **WRITES)
    for name in (
        "mean_squared_error",
        "mean_absolute_error",
        "r2_score",
        "explained_variance_score",
        "max_error",
        "d2_tweedie_score",
        "mean_squared_log_error",
    ):
        t(
            name,
            dispatched(lambda: getattr(sklearn.metrics, name)(jnp.abs(x[:, 0]), jnp.abs(y[:, 0]))),
            **(WRITES if name in ("r2_score", "explained_variance_score") else {}),
        )
    for name in ("euclidean_distances", "cosine_similarity", "linear_kernel", "rbf_kernel", "polynomial_kernel", "manhattan_distances", "additive_chi2_kernel"):
        t(
            name,
            dispatched(lambda: getattr(sklearn.metrics.pairwise, name)(jnp.abs(x[:3]), jnp.abs(y[:3]))),
            **({} if name in ("linear_kernel", "polynomial_kernel", "additive_chi2_kernel") else WRITES),
        )
    t("not dispatched", lambda: sklearn.preprocessing.StandardScaler().fit_transform(x))
    t("of other lengths", dispatched(lambda: sklearn.metrics.mean_squared_error(v, v[1:])), raises=ValueError, why="the lengths differ")


def programs(t):
    namespaces(t)
    of_scipy(t)
    of_sklearn(t)


PROGRAMS = Programs(programs, SCIPY_ARRAY_API="1")

if __name__ == "__main__":
    PROGRAMS.print_all()
else:

    @pytest.mark.parametrize("name", PROGRAMS.cases())
    def test_array_api(name):
        PROGRAMS.check(name)
