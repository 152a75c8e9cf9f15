"""PennyLane's JAX interface: circuits, their derivatives by each method, measurements, matrices."""

import jax
import jax.numpy as jnp
import optax
import pennylane as qml
import pytest
from outcomes import Programs


def programs(t):
    dev = qml.device("default.qubit", wires=2)

    @qml.qnode(dev, interface="jax")
    def circuit(x):
        qml.RX(x[0], wires=0)
        qml.RY(x[1], wires=1)
        qml.CNOT(wires=[0, 1])
        qml.RZ(x[2], wires=1)
        return qml.expval(qml.PauliZ(0) @ qml.PauliX(1))

    x = jnp.array([0.1, 0.2, 0.3])
    t("circuit", lambda: circuit(x))
    t("circuit grad", lambda: jax.grad(circuit)(x))
    t("circuit hessian", lambda: jax.hessian(circuit)(x))
    t("circuit jit", lambda: jax.jit(circuit)(x))
    t("circuit jit grad", lambda: jax.jit(jax.grad(circuit))(x))
    t("circuit vmap", lambda: jax.vmap(circuit)(jnp.stack([x, 2 * x])))
    for method in ("backprop", "parameter-shift", "adjoint", "finite-diff", "hadamard"):

        def program(method=method):
            d = qml.device("default.qubit", wires=3)

            @qml.qnode(d, interface="jax", diff_method=method)
            def f(x):
                qml.RX(x[0], wires=0)
                qml.CRY(x[1], wires=[0, 1])
                return qml.expval(qml.PauliZ(1))

            return jax.jacobian(f)(x[:2]), jax.jit(jax.grad(f))(x[:2])

        t("differentiate " + method, program)

    def measured(make):
        @qml.qnode(dev, interface="jax")
        def f(x):
            qml.RX(x[0], wires=0)
            qml.CNOT(wires=[0, 1])
            return make()

        return f(x)

    t("state", lambda: measured(qml.state))
    t("probs", lambda: measured(lambda: qml.probs(wires=[0, 1])))
    t("density", lambda: measured(lambda: qml.density_matrix(0)))
    t("variance", lambda: measured(lambda: qml.var(qml.PauliX(0))))
    t("entropy", lambda: measured(lambda: qml.vn_entropy(wires=[0])))
    t("hamiltonian", lambda: measured(lambda: qml.expval(qml.Hamiltonian([0.5, 1.0], [qml.PauliZ(0), qml.PauliX(1) @ qml.PauliX(0)]))))
    t("matrix", lambda: qml.matrix(qml.Rot)(x[0], x[1], x[2], wires=0))
    t("evolve", lambda: qml.matrix(qml.evolve(qml.PauliX(0), x[0])))
    t("math", lambda: (qml.math.sqrt_matrix(jnp.eye(2) * 4), qml.math.fidelity(jnp.eye(2) / 2, jnp.eye(2) / 2), qml.math.expand_matrix(jnp.eye(2), 0, [0, 1])))

    def trained():
        opt = optax.adam(0.1)
        p, state = x, opt.init(x)
        for _ in range(3):
            g = jax.grad(circuit)(p)
            u, state = opt.update(g, state)
            p = optax.apply_updates(p, u)
        return p

    t("trained", trained)
    t("dot", lambda: qml.math.dot(x, x))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_pennylane(name):
    PROGRAMS.check(name)
