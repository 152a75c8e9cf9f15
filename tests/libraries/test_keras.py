"""Keras on its JAX backend: layers, fit, evaluate, predict, save and load, custom training, operations, random numbers."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import tempfile

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
from keras import layers, ops
from outcomes import Programs

rng = np.random.RandomState(0)
X = rng.randn(64, 8).astype("float32")
Y = (X @ rng.randn(8, 1)).astype("float32")
IMAGES = rng.rand(8, 12, 12, 3).astype("float32")
SEQUENCES = rng.randn(4, 6, 5).astype("float32")
TOKENS = rng.randint(0, 20, (4, 6))


def mlp(*more):
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((8,)), layers.Dense(16, activation="relu"), *more, layers.Dense(1)])


def fitted(optimizer="adam", epochs=2, loss="mse", more=(), **k):
    model = mlp(*more)
    model.compile(optimizer, loss, metrics=["mae"], **k)
    history = model.fit(X, Y, batch_size=16, epochs=epochs, verbose=0, shuffle=False)
    return model, history


def applied(layer, x, **k):
    keras.utils.set_random_seed(0)
    return layer()(x, **k)


def programs(t):
    for name, layer, x in [
        ("dense", lambda: layers.Dense(3, activation="gelu"), X),
        ("conv2d", lambda: layers.Conv2D(4, 3, padding="same", strides=2), IMAGES),
        ("conv1d causal", lambda: layers.Conv1D(4, 3, padding="causal", dilation_rate=2), SEQUENCES),
        ("depthwise", lambda: layers.DepthwiseConv2D(3), IMAGES),
        ("separable", lambda: layers.SeparableConv2D(4, 3), IMAGES),
        ("transpose", lambda: layers.Conv2DTranspose(4, 3, strides=2, padding="same"), IMAGES),
        ("max pool", lambda: layers.MaxPooling2D(2), IMAGES),
        ("average pool", lambda: layers.AveragePooling2D(3, padding="same"), IMAGES),
        ("global pool", lambda: layers.GlobalMaxPooling2D(), IMAGES),
        ("lstm", lambda: layers.LSTM(4, return_sequences=True), SEQUENCES),
        ("gru", lambda: layers.GRU(4, go_backwards=True), SEQUENCES),
        ("bidirectional", lambda: layers.Bidirectional(layers.SimpleRNN(3)), SEQUENCES),
        ("embedding", lambda: layers.Embedding(20, 4), TOKENS),
        ("layer norm", lambda: layers.LayerNormalization(), SEQUENCES),
        ("group norm", lambda: layers.GroupNormalization(3), IMAGES),
        ("batch norm", lambda: layers.BatchNormalization(), X),
        ("attention", lambda: layers.Attention(), [SEQUENCES, SEQUENCES]),
        ("resizing", lambda: layers.Resizing(6, 9), IMAGES),
        ("up", lambda: layers.UpSampling2D(2, interpolation="bilinear"), IMAGES),
        ("einsum dense", lambda: layers.EinsumDense("abc,cd->abd", output_shape=(None, 7), bias_axes="d"), SEQUENCES),
        ("rescaling", lambda: layers.Rescaling(2.0, offset=1), X),
        ("discretization", lambda: layers.Discretization(bin_boundaries=[-1.0, 0.0, 1.0]), X),
    ]:
        t(name, lambda layer=layer, x=x: applied(layer, x))
    t("multi-head", lambda: (keras.utils.set_random_seed(0), layers.MultiHeadAttention(2, 3)(SEQUENCES, SEQUENCES, use_causal_mask=True))[1])
    t("dropout", lambda: applied(lambda: layers.Dropout(0.5, seed=1), X, training=True))
    t("batch norm training", lambda: applied(lambda: layers.BatchNormalization(), X, training=True))

    for optimizer in "sgd adam adamw rmsprop adagrad adadelta adamax nadam ftrl lion".split():
        t("fit " + optimizer, lambda optimizer=optimizer: list(fitted(optimizer)[1].history["loss"]))
    for loss in ("mae", "huber", "log_cosh", "mean_squared_logarithmic_error"):
        t("loss " + loss, lambda loss=loss: fitted(loss=loss, epochs=1)[1].history["loss"])
    t("fit dropout", lambda: fitted(more=(layers.Dropout(0.3, seed=0), layers.BatchNormalization()))[1].history["loss"])
    t("fit eagerly", lambda: fitted(epochs=1, run_eagerly=True)[1].history["loss"])
    t("steps per execution", lambda: fitted(epochs=1, steps_per_execution=2)[1].history["loss"])
    t("schedule", lambda: fitted(keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 10)))[1].history["loss"])
    t("clipping", lambda: fitted(keras.optimizers.Adam(0.01, clipnorm=0.1, ema_momentum=0.9, use_ema=True))[1].history["loss"])
    t("accumulation", lambda: fitted(keras.optimizers.SGD(0.01, gradient_accumulation_steps=2))[1].history["loss"])
    t("evaluate", lambda: fitted()[0].evaluate(X, Y, verbose=0))
    t("predict", lambda: fitted()[0].predict(X, verbose=0))
    t("validation", lambda: (lambda m: (m.compile("sgd", "mse"), m.fit(X, Y, validation_split=0.25, verbose=0).history)[1])(mlp()))
    t(
        "early stopping",
        lambda: (
            lambda m: (m.compile("sgd", "mse"), m.fit(X, Y, epochs=20, verbose=0, callbacks=[keras.callbacks.EarlyStopping("loss", min_delta=10.0)]).epoch)[1]
        )(mlp()),
    )
    t("train on batch", lambda: (lambda m: (m.compile("sgd", "mse"), m.train_on_batch(X, Y))[1])(mlp()))
    t(
        "class weights",
        lambda: (
            lambda m: (
                m.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"]),
                m.fit(X, Y > 0, class_weight={0: 1.0, 1: 3.0}, verbose=0).history,
            )[1]
        )(mlp()),
    )

    def saved(suffix):
        model = fitted()[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m" + suffix)
            if suffix == ".weights.h5":
                model.save_weights(path)
                other = mlp()
                other.load_weights(path)
            else:
                model.save(path)
                other = keras.models.load_model(path)
        return other.predict(X, verbose=0), np.abs(other.predict(X, verbose=0) - model.predict(X, verbose=0)).max() < 1e-6

    for suffix in (".keras", ".h5", ".weights.h5"):
        wrong = dict(raises=ValueError, why="Keras does not read the metric mse of the old format") if suffix == ".h5" else {}
        t("save " + suffix, lambda suffix=suffix: saved(suffix), **wrong)
    t("config", lambda: keras.Sequential.from_config(mlp().get_config()).count_params())
    t("clone", lambda: keras.models.clone_model(mlp()).count_params())

    def functional():
        keras.utils.set_random_seed(0)
        a, b = keras.Input((8,)), keras.Input((8,))
        shared = layers.Dense(4, activation="tanh")
        out = layers.Concatenate()([shared(a), layers.Multiply()([shared(b), shared(a)])])
        model = keras.Model([a, b], {"y": layers.Dense(1, name="y")(out), "z": layers.Dense(3, activation="softmax", name="z")(out)})
        model.compile("adam", {"y": "mse", "z": "sparse_categorical_crossentropy"})
        return model.fit([X, -X], {"y": Y, "z": rng.randint(0, 3, 64) * 0}, verbose=0).history

    t("functional", functional)

    class Custom(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], 3), initializer="glorot_uniform", regularizer="l2")
            self.n = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def call(self, x):
            self.n.assign_add(1.0)
            self.add_loss(0.1 * ops.mean(x))
            return ops.matmul(x, self.w)

    t("custom layer", lambda: (lambda l: (l(X), l(X), l.n.value, l.losses))((keras.utils.set_random_seed(0), Custom())[1]))
    t("custom fit", lambda: fitted(more=(Custom(),))[1].history["loss"])

    def stateless():
        model = mlp(layers.BatchNormalization())
        optimizer = keras.optimizers.Adam(0.01)
        optimizer.build(model.trainable_variables)

        def loss(tv, ntv, x, y):
            out, ntv = model.stateless_call(tv, ntv, x, training=True)
            return jnp.mean((out - y) ** 2), ntv

        @jax.jit
        def step(state, x, y):
            tv, ntv, ov = state
            (value, ntv), grads = jax.value_and_grad(loss, has_aux=True)(tv, ntv, x, y)
            tv, ov = optimizer.stateless_apply(ov, grads, tv)
            return value, (tv, ntv, ov)

        state = ([v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables], [v.value for v in optimizer.variables])
        values = []
        for _ in range(3):
            value, state = step(state, X, Y)
            values.append(value)
        return values

    t("stateless", stateless)

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = layers.Dense(4), layers.Dense(1)

        def call(self, x, training=False):
            return self.b(ops.relu(self.a(x)))

    def subclassed():
        keras.utils.set_random_seed(0)
        model = Net()
        model.compile("adam", "mse", jit_compile=True)
        return model.fit(X, Y, verbose=0).history["loss"]

    t("subclassed", subclassed)
    for name, f in {
        "scan": lambda: ops.scan(lambda c, x: (c + x, c * x), 0.0, np.arange(4.0, dtype="float32")),
        "while": lambda: ops.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (0, 0)),
        "cond": lambda: ops.cond(True, lambda: ops.ones(2), lambda: ops.zeros(2)),
        "associative scan": lambda: ops.associative_scan(lambda a, b: a + b, np.arange(5.0, dtype="float32")),
        "vectorized map": lambda: ops.vectorized_map(lambda x: ops.sum(x**2), X[:3]),
        "segment sum": lambda: ops.segment_sum(X[:4], np.array([0, 0, 1, 2]), num_segments=3),
        "top k": lambda: ops.top_k(X[0], 3),
        "in top k": lambda: ops.in_top_k(np.array([1, 2]), X[:2], 3),
        "logsumexp": lambda: ops.logsumexp(X, axis=1),
        "qr": lambda: [abs(a) for a in map(ops.convert_to_numpy, ops.qr(X[:4, :4]))],
        "svd": lambda: ops.svd(X[:4, :4], compute_uv=False),
        "solve": lambda: ops.solve(X[:4, :4], X[:4, :1]),
        "fft": lambda: ops.fft((X, X)),
        "stft": lambda: ops.stft(np.sin(np.arange(64, dtype="float32"))[None], 16, 8, 16),
        "ctc": lambda: ops.ctc_loss(np.array([[1, 2, 3]]), SEQUENCES[:1], np.array([3]), np.array([6])),
        "scatter": lambda: ops.scatter(np.array([[0], [2]]), np.array([1.0, 2.0], "float32"), (4,)),
        "slice update": lambda: ops.slice_update(np.zeros((3, 3), "float32"), (1, 1), np.ones((2, 2), "float32")),
        "affine": lambda: ops.image.affine_transform(IMAGES[:1], np.array([[1, 0.1, 0, 0, 1, 0.5, 0, 0]], "float32")),
        "map coordinates": lambda: ops.image.map_coordinates(X[:4, :4], np.array([[0.5, 1.5], [1.0, 2.0]], "float32"), 1),
        "resize bicubic": lambda: ops.image.resize(IMAGES[:1], (5, 7), interpolation="bicubic"),
        "rgb": lambda: ops.image.rgb_to_hsv(IMAGES[:1, :2, :2]),
        "erfinv": lambda: ops.erfinv(np.array([0.1, -0.5], "float32")),
        "histogram": lambda: ops.histogram(X[0], bins=4),
        "custom gradient": lambda: jax.grad(ops.custom_gradient(lambda x: (x**2, lambda upstream: upstream * 10.0)))(3.0),
        "moments": lambda: ops.moments(X, axes=[0]),
        "normal": lambda: keras.random.normal((3,), seed=1),
        "categorical": lambda: keras.random.categorical(np.log(np.ones((1, 4), "float32")), 6, seed=3),
        "truncated": lambda: keras.random.truncated_normal((4,), seed=3),
        "gamma": lambda: keras.random.gamma((3,), 2.0, seed=3),
        "shuffle": lambda: keras.random.shuffle(np.arange(6), seed=keras.random.SeedGenerator(5)),
        "mixed": lambda: (keras.utils.set_random_seed(0), layers.Dense(2, dtype="mixed_float16")(X[:2]))[1],
        "metrics": lambda: [
            m.result()
            for m in [keras.metrics.AUC(), keras.metrics.F1Score(), keras.metrics.MeanIoU(2)]
            if m.update_state(np.array([[0, 1], [1, 0]], "float32"), np.array([[0.2, 0.8], [0.6, 0.4]], "float32")) is None
        ],
        "shape error": lambda: mlp()(X[:, :3]),
        "autocontrast": lambda: applied(lambda: layers.RandomFlip("horizontal", seed=1), IMAGES, training=True),
        "rotation": lambda: applied(lambda: layers.RandomRotation(0.2, seed=1), IMAGES, training=True),
        "symbolic": lambda: str(ops.mean(keras.KerasTensor((None, 3)), axis=1).shape),
    }.items():
        wrong = dict(raises=ValueError, why="the layer has other inputs") if name == "shape error" else {}
        t(name, f, **wrong)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_keras(name):
    PROGRAMS.check(name)
