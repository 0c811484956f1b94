"""Directions of matrices, against their definitions by singular values and loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skextra.optim import _directions as directions
from tests.optim import reference

SHAPES = [(6, 9), (9, 6), (7, 7), (8, 40), (40, 8), (4, 4)]
FORMS = [directions.direct_form, directions.coupled_form]
KINDS = ["swan", "whiten", "rownorm", "sinkhorn"]


def gaussian(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def direct(G, kind="swan", steps=10, beta=0.8, dtype=torch.float32, rescale=True):
    return directions.direction(G, kind, steps, beta, dtype, rescale)


def iterate(form, X, steps, beta):
    """One form of the iteration on one matrix; both take batches of wide ones."""
    tall = X.shape[0] > X.shape[1]
    D = form((X.mT if tall else X)[None], steps, beta)[0]
    return D.mT if tall else D


def relative(A, B):
    A, B = torch.as_tensor(A).double(), torch.as_tensor(B).double()
    return float((A - B).norm() / B.norm())


# --------------------------------------------------------------------- definitions


@pytest.mark.parametrize("shape", SHAPES)
def test_grad_norm(shape):
    G = 3 + gaussian(*shape)
    X = directions.grad_norm(G)
    np.testing.assert_allclose(X, reference.grad_norm(G), atol=1e-12)
    assert X.mean(dim=1).abs().max() < 1e-12
    np.testing.assert_allclose(X.square().mean(dim=1), 1, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("form", "atol"), list(zip(FORMS, [2e-14, 1e-9])))
def test_converges_to_polar_factor(shape, form, atol):
    X = torch.as_tensor(np.linalg.qr(gaussian(40, 40))[0][: shape[0], : shape[1]])
    X = X + 0.5 * torch.eye(*shape, dtype=torch.float64)
    D = iterate(form, X, 40, 0.5)
    np.testing.assert_allclose(D, reference.polar(X), atol=atol)


@pytest.mark.parametrize("shape", [(6, 9), (8, 40), (5, 30)])
def test_centred_rows_converge_to_polar_factor(shape):
    X = directions.grad_norm(gaussian(*shape))
    D = iterate(directions.direct_form, X, 30, 0.5)
    np.testing.assert_allclose(D, reference.polar(X), atol=5e-15)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("steps", "beta"), [(1, 0.5), (2, 0.8), (5, 0.8), (10, 0.8)])
def test_follows_the_map_of_singular_values(shape, form, steps, beta):
    X = gaussian(*shape)
    D = iterate(form, X, steps, beta)
    np.testing.assert_allclose(
        D, reference.newton_schulz(X, steps, beta), atol=1e-10, rtol=0
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_forms_agree_on_centred_rows(shape, form):
    X = directions.grad_norm(gaussian(*shape))
    D = iterate(form, X, 10, 0.8)
    np.testing.assert_allclose(D, reference.newton_schulz(X, 10, 0.8), atol=1e-10)


def with_singular_values(s, shape, dtype):
    U, V = (torch.linalg.qr(gaussian(n, len(s), seed=n))[0] for n in shape)
    return ((U * torch.as_tensor(s)) @ V.T).to(dtype)


SPECTRA = {
    "one large": [1] + [1e-4] * 63,
    "one large, others less small": [1] + [4.3e-4] * 63,
    "half large": [1] * 32 + [2.4e-4] * 32,
    "all but one large": [1] * 63 + [2.9e-4],
    "all alike": [1] * 64,
    "decaying": np.geomspace(1, 2e-4, 64),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("shape", [(64, 64), (64, 256), (256, 64)])
@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(torch.float64, 0.56, 1.601), (torch.float32, 0.4, 2.2)]
)
def test_range_of_singular_values(spectrum, shape, dtype, low, high):
    s = np.array(SPECTRA[spectrum], dtype=float)
    assert s.min() > 0.9999e-4 * np.sum(s**4) ** 0.25
    D = direct(with_singular_values(s, shape, dtype), "whiten", rescale=False)
    values = torch.linalg.svdvals(D)
    assert values.min() > low
    assert values.max() < high


@pytest.mark.parametrize("shape", [(64, 64), (64, 256), (256, 64)])
def test_smaller_singular_values_end_lower(shape):
    s = np.repeat([1, 1e-4], 32)
    X = with_singular_values(s, shape, torch.float64)
    values = torch.linalg.svdvals(direct(X, "whiten", rescale=False))
    np.testing.assert_allclose(values[32:], 2.4**10 * 1e-4 / 32**0.25, rtol=0.05)


@pytest.mark.parametrize("shape", SHAPES)
def test_swan_has_the_singular_vectors_of_its_normalised_gradient(shape):
    G = gaussian(*shape)
    D = direct(G)
    np.testing.assert_allclose(D, reference.swan(G), atol=1e-9)
    X = directions.grad_norm(G).numpy()
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    kept = s > 1e-10 * s[0]
    core = U.T @ D.numpy() @ Vt.T
    np.testing.assert_allclose(core, np.diag(np.diag(core)), atol=1e-9)
    values = np.diag(core)[kept]
    assert values.max() / values.min() <= 1.6 / 0.563
    assert kept.sum() == min(shape[0], shape[1] - 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_sinkhorn(shape):
    G = gaussian(*shape)
    X = directions.sinkhorn(G)
    np.testing.assert_allclose(X, reference.sinkhorn(G), atol=1e-12)
    np.testing.assert_allclose(X.square().mean(dim=0), 1, rtol=1e-12)


def test_rownorm_is_grad_norm():
    G = gaussian(6, 9)
    np.testing.assert_allclose(
        direct(G, "rownorm"), directions.grad_norm(G), rtol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_root_mean_square_is_one(kind, shape):
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        D = direct(gaussian(*shape, dtype=dtype), kind)
        expected = torch.float64 if dtype == torch.float64 else torch.float32
        assert D.dtype == expected
        assert float(D.square().mean()) == pytest.approx(1, abs=1e-5)


def test_without_rescaling():
    G = gaussian(6, 9)
    D = direct(G, rescale=False)
    X = reference.grad_norm(G)
    np.testing.assert_allclose(D, reference.newton_schulz(X, 10, 0.8), atol=1e-10)


# ------------------------------------------------------------- precision and batches


@pytest.mark.parametrize("shape", [(96, 96), (96, 256), (256, 96), (32, 400)])
@pytest.mark.parametrize("seed", [0, 1])
def test_float32_is_close_to_float64_and_keeps_rows_centred(shape, seed):
    G = gaussian(*shape, seed=seed, dtype=torch.float32)
    D = direct(G)
    assert relative(D, direct(G.double())) < 1e-4
    assert D.sum(dim=1).norm() / D.norm() < 1e-5


@pytest.mark.parametrize("steps", [20, 30])
@pytest.mark.parametrize("shape", [(96, 96), (32, 96), (96, 32)])
def test_many_steps_do_not_amplify_rounding(shape, steps):
    D = direct(gaussian(*shape, dtype=torch.float32), steps=steps)
    assert torch.isfinite(D).all()
    assert D.sum(dim=1).norm() / D.norm() < 1e-5
    values = torch.linalg.svdvals(D)[: min(shape[0], shape[1] - 1)]
    assert values.max() / values.min() < 2.9


@pytest.mark.parametrize("shape", [(48, 96), (96, 48), (48, 48)])
def test_gradients_of_low_rank(shape):
    G = gaussian(shape[0], 5) @ gaussian(5, shape[1], seed=1)
    D = direct(G.float())
    values = torch.linalg.svdvals(D)
    assert values[5] < 1e-2 * values[4]
    assert relative(D, reference.swan(G)) < 1e-2


@pytest.mark.parametrize("kind", ["swan", "whiten"])
def test_bfloat16_whitening_is_close(kind):
    G = gaussian(24, 64, dtype=torch.float32)
    half = direct(G, kind, steps=5, dtype=torch.bfloat16)
    assert half.dtype == torch.float32
    assert relative(half, direct(G, kind, steps=5)) < 0.05
    assert half.sum(dim=1).norm() / half.norm() < 1e-2 or kind == "whiten"


def test_float64_whitening_of_float32_gradients():
    G = gaussian(12, 30, dtype=torch.float32)
    assert direct(G, dtype=torch.float64).dtype == torch.float64


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(6, 9), (9, 6), (8, 40)])
def test_batch_is_one_matrix_at_a_time(kind, shape):
    G = gaussian(2, 3, *shape)
    D = direct(G, kind)
    assert D.shape == G.shape
    for i in range(2):
        for j in range(3):
            np.testing.assert_allclose(D[i, j], direct(G[i, j], kind), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_is_not_overwritten(kind):
    G = gaussian(6, 9, dtype=torch.float32)
    before = G.clone()
    direct(G, kind).mul_(0)
    assert torch.equal(G, before)


@pytest.mark.parametrize("kind", KINDS)
def test_compiles_into_one_graph(kind):
    G = gaussian(2, 6, 9, dtype=torch.float32)
    compiled = torch.compile(directions.direction, fullgraph=True, backend="eager")
    D = compiled(G, kind, 10, 0.8, torch.float32, True)
    torch.testing.assert_close(D, direct(G, kind))


# --------------------------------------------------------------------------- borders


def test_constant_and_zero_rows_stay_zero():
    G = gaussian(6, 9)
    G[1], G[4] = 0, 7.3
    X = directions.grad_norm(G)
    assert not X[1].any() and not X[4].any()
    D = direct(G)
    np.testing.assert_allclose(D, reference.swan(G), atol=1e-9)
    # The others' root mean square stays 1: fewer rows do not make larger steps.
    live = D[[0, 2, 3, 5]]
    assert float(live.square().mean()) == pytest.approx(1)
    assert D[[1, 4]].abs().max() < 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("value", [1e-30, 0.1, 3e7])
def test_row_that_is_constant_up_to_rounding_is_zero(dtype, value):
    G = torch.full((5, 33), value, dtype=torch.float64)
    eps = torch.finfo(dtype).eps
    G[:, ::2] *= 1 + 2 * eps
    assert not directions.grad_norm(G.to(dtype)).any()
    G[:, ::2] *= 1 + 60 * eps
    assert directions.grad_norm(G.to(dtype)).any(dim=1).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(6, 9), (9, 6), (8, 40), (5, 5)])
def test_zero_gradient_is_zero(kind, shape):
    assert torch.equal(direct(torch.zeros(shape), kind), torch.zeros(shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(6, 9), (9, 6), (8, 40)])
def test_nan_and_inf_become_nan(kind, bad, shape):
    G = gaussian(2, *shape, dtype=torch.float32)
    G[0, 2, 3] = bad
    D = direct(G, kind)
    assert torch.isnan(D[0, 2]).any()
    assert torch.isfinite(D[1]).all()


def test_rows_of_very_different_scale():
    G = gaussian(6, 9, dtype=torch.float32)
    scale = torch.tensor([1e-35, 1e-20, 1.0, 1e10, 1e30, 1e37])[:, None]
    torch.testing.assert_close(direct(G * scale), direct(G), atol=1e-4, rtol=0)


def test_row_with_a_large_mean():
    G = (1000 + gaussian(6, 9)).float()
    X = directions.grad_norm(G)
    np.testing.assert_allclose(X, reference.grad_norm(G.double()), atol=1e-4)
    assert X.mean(dim=1).abs().max() < 1e-6


def test_narrow_matrices():
    assert not direct(gaussian(5, 1)).any()
    np.testing.assert_allclose(directions.grad_norm(gaussian(5, 2)).abs(), 1)
    D = direct(gaussian(1, 30), beta=0.5)
    np.testing.assert_allclose(D, reference.swan(gaussian(1, 30)), atol=1e-9)


# ------------------------------------------------------------------------ properties

numbers = st.integers(0, 2**31)
sides = st.integers(4, 24)
quick = settings(derandomize=True, deadline=None, max_examples=25)


@quick
@given(numbers, sides, sides, st.sampled_from(KINDS), st.floats(-30, 30))
def test_scale_of_the_gradient_does_not_matter(seed, m, n, kind, exponent):
    G = gaussian(m, n, seed=seed, dtype=torch.float32)
    torch.testing.assert_close(
        direct(G * 10**exponent, kind), direct(G, kind), atol=2e-3, rtol=0
    )


@quick
@given(numbers, sides, sides, st.sampled_from(KINDS), st.integers(-90, 90))
def test_powers_of_two_change_nothing_at_all(seed, m, n, kind, exponent):
    G = gaussian(m, n, seed=seed, dtype=torch.float32)
    assert torch.equal(direct(G * 2.0**exponent, kind), direct(G, kind))


@quick
@given(numbers, sides, sides, st.sampled_from(KINDS), st.integers(-20, 13))
def test_scale_of_half_precision_gradients(seed, m, n, kind, exponent):
    G = gaussian(m, n, seed=seed, dtype=torch.bfloat16)
    assert torch.equal(direct(G * 2.0**exponent, kind), direct(G, kind))


@quick
@given(numbers, sides, sides, st.sampled_from(KINDS))
def test_order_of_rows_and_columns_goes_through(seed, m, n, kind):
    G = gaussian(m, n, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(m), rng.permutation(n)
    D = direct(G[rows][:, columns], kind)
    torch.testing.assert_close(D, direct(G, kind)[rows][:, columns], atol=1e-8, rtol=0)


@quick
@given(numbers, sides, sides)
def test_whitening_the_transpose(seed, m, n):
    X = gaussian(m, n, seed=seed)
    D = directions.whiten(X, 10, 0.8)
    torch.testing.assert_close(
        directions.whiten(X.mT, 10, 0.8), D.mT, atol=1e-9, rtol=0
    )


@quick
@given(numbers, sides, sides, st.sampled_from(["swan", "whiten", "rownorm"]))
def test_sign_goes_through(seed, m, n, kind):
    G = gaussian(m, n, seed=seed)
    torch.testing.assert_close(direct(-G, kind), -direct(G, kind), atol=1e-9, rtol=0)


@quick
@given(numbers, st.integers(4, 40), st.integers(4, 40))
def test_either_form_is_the_same(seed, m, n):
    X = directions.grad_norm(gaussian(m, n, seed=seed))
    direct_, coupled = (iterate(form, X, 10, 0.8) for form in FORMS)
    torch.testing.assert_close(coupled, direct_, atol=1e-8, rtol=0)
