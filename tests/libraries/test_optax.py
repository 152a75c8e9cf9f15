"""Optax: optimizers, losses, schedules, projections, trees."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
X = jnp.asarray(rng.randn(20, 3), jnp.float32)
w = jnp.array([1.0, -2.0, 3.0])
Y = X @ w
p0 = {"w": jnp.array([0.1, 0.2, 0.3]), "b": jnp.zeros(())}
l = jnp.asarray(rng.randn(4, 5), jnp.float32)
lab = jnp.array([0, 2, 4, 1])


def loss(p):
    return jnp.mean((X @ p["w"] + p["b"] - Y) ** 2)


def programs(t):
    opts = dict(
        sgd=lambda: optax.sgd(0.1),
        mom=lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
        adam=lambda: optax.adam(0.1),
        adamw=lambda: optax.adamw(0.1),
        adagrad=lambda: optax.adagrad(0.1),
        rmsprop=lambda: optax.rmsprop(0.1),
        lamb=lambda: optax.lamb(0.1),
        lars=lambda: optax.lars(0.1),
        lion=lambda: optax.lion(0.1),
        adafactor=lambda: optax.adafactor(0.1),
        adabelief=lambda: optax.adabelief(0.1),
        yogi=lambda: optax.yogi(0.1),
        radam=lambda: optax.radam(0.1),
        nadam=lambda: optax.nadam(0.1),
        adamax=lambda: optax.adamax(0.1),
        sm3=lambda: optax.sm3(0.1),
        novograd=lambda: optax.novograd(0.1),
        fromage=lambda: optax.fromage(0.1),
        amsgrad=lambda: optax.amsgrad(0.1),
        adadelta=lambda: optax.adadelta(0.1),
        adan=lambda: optax.adan(0.1),
        polyak=lambda: optax.polyak_sgd(1.0),
        lbfgs=lambda: optax.lbfgs(),
        noisy=lambda: optax.noisy_sgd(0.1, seed=0),
        chain=lambda: optax.chain(
            optax.clip_by_global_norm(1.0),
            optax.add_decayed_weights(1e-2),
            optax.scale_by_adam(),
            optax.scale_by_schedule(optax.warmup_cosine_decay_schedule(0.0, 1.0, 3, 10)),
            optax.scale(-0.1),
        ),
        inject=lambda: optax.inject_hyperparams(optax.adam)(learning_rate=optax.exponential_decay(0.1, 2, 0.9)),
        multi=lambda: optax.multi_transform({"a": optax.adam(0.1), "b": optax.sgd(0.1)}, {"w": "a", "b": "b"}),
        masked=lambda: optax.masked(optax.sgd(0.1), {"w": True, "b": False}),
        ms=lambda: optax.MultiSteps(optax.adam(0.1), 2),
        look=lambda: optax.apply_if_finite(optax.adam(0.1), 2),
        sam=lambda: optax.contrib.sam(optax.sgd(0.1), optax.sgd(0.05)),
        sf=lambda: optax.contrib.schedule_free_adamw(0.1),
        prodigy=lambda: optax.contrib.prodigy(),
        muon=lambda: optax.contrib.muon(0.1),
        dadapt=lambda: optax.contrib.dadapt_adamw(),
        cocob=lambda: optax.contrib.cocob(),
        dog=lambda: optax.contrib.dog(),
        momo=lambda: optax.contrib.momo(0.1),
        sophia=lambda: optax.contrib.sophia(0.1),
        mech=lambda: optax.contrib.mechanize(optax.sgd(0.1)),
        ademamix=lambda: optax.contrib.ademamix(0.1),
        acprop=lambda: optax.contrib.acprop(0.1),
    )
    for n, mk in opts.items():

        def run(n=n, mk=mk):
            # SM3 takes no scalars.
            opt, p = mk(), {**p0, "b": jnp.zeros(1)} if n == "sm3" else p0
            s = opt.init(p)

            @jax.jit
            def step(p, s):
                v, g = jax.value_and_grad(loss)(p)
                kw = {"polyak": dict(value=v), "momo": dict(value=v), "lbfgs": dict(value=v, grad=g, value_fn=loss), "sophia": dict(obj_fn=loss)}.get(n, {})
                u, s = opt.update(g, s, p, **kw)
                return optax.apply_updates(p, u), s, v

            for _ in range(6):
                p, s, v = step(p, s)
            return p["w"], p["b"], v

        t(n, run)
    t("ce", lambda: optax.softmax_cross_entropy(l, jax.nn.one_hot(lab, 5)))
    t("cei", lambda: optax.softmax_cross_entropy_with_integer_labels(l, lab))
    t("huber", lambda: optax.huber_loss(l, l * 2))
    t("l2", lambda: optax.l2_loss(l))
    t("cos", lambda: optax.cosine_similarity(l, l + 1))
    t("sig", lambda: optax.sigmoid_binary_cross_entropy(l, l > 0))
    t("hinge", lambda: optax.hinge_loss(l, jnp.sign(l)))
    t("ctc", lambda: optax.ctc_loss(jnp.asarray(rng.randn(2, 8, 5), jnp.float32), jnp.zeros((2, 8)), jnp.array([[1, 2, 3], [2, 2, 1]]), jnp.zeros((2, 3))))
    t("kl", lambda: optax.kl_divergence(jax.nn.log_softmax(l), jax.nn.softmax(l + 1 * lab[:, None] * l)))
    t("focal", lambda: optax.sigmoid_focal_loss(l, (l > 0).astype(float)))
    t("ntxent", lambda: optax.ntxent(l, jnp.array([0, 0, 1, 1])))
    t("sparsemax", lambda: optax.losses.sparsemax_loss(l, l > 0))
    t("logcosh", lambda: optax.log_cosh(l))
    t("triplet", lambda: optax.losses.triplet_margin_loss(l, l + 1, l - 1))
    t("poly", lambda: optax.losses.poly_loss_cross_entropy(l, jax.nn.one_hot(lab, 5)))
    t("dice", lambda: optax.losses.dice_loss(l, jax.nn.one_hot(lab, 5)))
    for s in (
        "constant_schedule(.1)",
        "linear_schedule(1.,.1,5)",
        "cosine_decay_schedule(1.,5)",
        "polynomial_schedule(1.,.1,2,5)",
        "piecewise_constant_schedule(1.,{2:.5,4:.1})",
        "cosine_onecycle_schedule(10,1.)",
        "linear_onecycle_schedule(10,1.)",
        "sgdr_schedule([dict(init_value=0.,peak_value=1.,decay_steps=4,warmup_steps=2,end_value=0.)]*2)",
        "warmup_constant_schedule(0.,1.,3)",
        "warmup_exponential_decay_schedule(0.,1.,3,2,.5)",
    ):
        t(s, lambda: [jax.jit(eval("optax." + s))(i) for i in range(6)])
    t("gn", lambda: optax.global_norm(p0))
    t("proj", lambda: optax.projections.projection_simplex(l[0]))
    t("projl1", lambda: optax.projections.projection_l1_ball(l[0], 0.5))
    t("projhyper", lambda: optax.projections.projection_hypercube(l[0]))
    t("per_ex", lambda: optax.per_example_global_norm_clip([l], 1.0))
    t("incr", lambda: optax.incremental_update({"a": l}, {"a": l * 0}, 0.1))
    t("periodic", lambda: optax.periodic_update({"a": l}, {"a": l * 0}, jnp.array(2), 2))
    t("hvp", lambda: optax.second_order.hvp(lambda p, x, y: ((x @ p - y) ** 2).mean(), jnp.ones(3), w, X, Y))
    t("hdiag", lambda: optax.second_order.hessian_diag(lambda p, x, y: ((x @ p - y) ** 2).mean(), w, X, Y))
    t("fisher", lambda: optax.second_order.fisher_diag(lambda p, x, y: ((x @ p - y) ** 2).mean(), w, X, Y))
    t("treeutils", lambda: optax.tree_utils.tree_l2_norm(p0))
    t("tree_get", lambda: optax.tree_utils.tree_get(optax.adam(0.1).init(p0), "count"))

    def searched():
        opt = optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(max_backtracking_steps=5))
        p, state = p0, opt.init(p0)
        for _ in range(3):
            value, grad = jax.value_and_grad(loss)(p)
            updates, state = opt.update(grad, state, p, value=value, grad=grad, value_fn=loss)
            p = optax.apply_updates(p, updates)
        return p, state[-1].learning_rate

    t("linesearch", searched)
    t("powerit", lambda: optax.power_iteration(jnp.array([[2.0, 1], [1, 3]]), num_iters=50))
    t("ot", lambda: optax.assignment.hungarian_algorithm(jnp.asarray(rng.rand(4, 4), jnp.float32)))
    t("sinkhorn", lambda: optax.perturbations.make_perturbed_fun(lambda x: jax.nn.one_hot(jnp.argmax(x), 5), 50)(jax.random.key(0), l[0]))
    t("ema", lambda: optax.ema(0.9).update({"a": l}, optax.ema(0.9).init({"a": l}))[0])
    t("zero_nans", lambda: optax.zero_nans().update({"a": l * jnp.nan}, optax.zero_nans().init({"a": l}))[0]["a"])


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_optax(name):
    PROGRAMS.check(name)
