"""Directions of the update of a weight matrix, from its gradient alone.

Each takes tensors (..., m, n): rows are output units, columns are inputs. All are
invariant to the positive scale of the gradient, pass NaN on, and never look at
values to decide what to do, so that they compile into one graph.
"""

import torch

SINKHORN_ROUNDS = 5
# The coupled form multiplies rounding by its gain on the smallest singular values; it
# is not used where that gives more than this.
LARGEST_ROUNDING = 1e-3


def direction(G, kind, steps, beta, dtype, rescale):
    """Compute the direction of the update of matrices with these gradients.

    Parameters
    ----------
    G : tensor of shape (..., m, n)
        Gradients.
    kind : {"swan", "whiten", "rownorm", "sinkhorn"}
        Name of the direction.
    steps : int
        Newton-Schulz iterations.
    beta : float
        Their step.
    dtype : torch.dtype
        Precision of the whitening; float64 gradients stay so.
    rescale : bool
        Whether the root mean square over the rows that have a gradient becomes 1.

    Returns
    -------
    D : tensor of shape (..., m, n)
        The directions, in float32 or float64.
    """
    dtype = torch.float64 if G.dtype == torch.float64 else dtype
    if kind == "swan":
        X = grad_norm(G)
        D = at_least_float32(whiten(X.to(dtype), steps, beta, centred=True))
    elif kind == "whiten":
        X = scaled(at_least_float32(G), dim=(-2, -1))
        D = at_least_float32(whiten(X.to(dtype), steps, beta))
    elif kind == "rownorm":
        X = D = grad_norm(G)
    else:
        X = D = sinkhorn(G)
    return with_unit_rms(D, X) if rescale else D


def grad_norm(G):
    """Centre the rows and divide them by their population standard deviation.

    A row whose entries are equal up to rounding becomes zero.
    """
    X = scaled(at_least_float32(G), dim=-1)
    # Twice: what rounding left of the mean is not small beside a small deviation.
    X = X - X.mean(dim=-1, keepdim=True)
    X -= X.mean(dim=-1, keepdim=True)
    constant = largest(X, dim=-1) <= 8 * torch.finfo(G.dtype).eps
    deviation = norm(X, dim=-1) / X.shape[-1] ** 0.5
    return X * torch.where(constant, torch.zeros_like(deviation), 1 / deviation)


def sinkhorn(G):
    """Normalise rows, then columns, to root mean square 1, five times over."""
    X = at_least_float32(G)
    for _ in range(SINKHORN_ROUNDS):
        for dim in (-1, -2):
            X = scaled(X, dim)
            X = X / nonzero(X.square().mean(dim=dim, keepdim=True).sqrt())
    return X


def whiten(X, steps, beta, centred=False):
    """Bring all non-zero singular values near 1 by Newton-Schulz iterations.

    The iteration is X <- beta (3 I - X X^T) X, from X / sqrt(||X X^T||_F). Entries
    must be far from overflow when squared, and not all far from 1.

    Parameters
    ----------
    X : tensor of shape (..., m, n)
        Matrices.
    steps : int
        Number of iterations.
    beta : float
        1/2 converges to singular value 1; larger ones lift small singular values
        faster and leave all within a range around 1.
    centred : bool
        Whether the mean of each row is zero, and shall stay so.
    """
    shape = X.shape
    m, n = shape[-2:]
    X = X.reshape(-1, m, n)
    X = X.mT if m > n else X
    coupled = coupled_is_better(*X.shape[-2:], steps, beta, X.dtype)
    X = (coupled_form if coupled else direct_form)(X, steps, beta)
    X = X.mT if m > n else X
    if centred:
        X = X - X.mean(dim=-1, keepdim=True)
    return X.reshape(shape)


def coupled_is_better(m, n, steps, beta, dtype):
    """Compare the flops of both forms for m <= n, if the coupled one is accurate."""
    rounding = (3 * beta) ** steps * torch.finfo(dtype).eps
    return 2 * n > 3 * m and rounding < LARGEST_ROUNDING


def direct_form(X, steps, beta):
    """Iterate on the matrices (b, m, n) themselves."""
    gram = torch.bmm(X, X.mT)
    size = nonzero(norm(gram, dim=(-2, -1)))
    X, gram = X / size.sqrt(), gram / size
    for step in range(steps):
        if step:
            gram = torch.bmm(X, X.mT)
        X = torch.baddbmm(X, gram, X, beta=3 * beta, alpha=-beta)
    return X


def coupled_form(X, steps, beta):
    """Iterate on the Gram matrices (b, m, m), and multiply once."""
    gram = torch.bmm(X, X.mT)
    size = nonzero(norm(gram, dim=(-2, -1)))
    root = inverse_root(gram / size, steps, beta).div_(size.sqrt())
    return torch.bmm(root, X)


def inverse_root(P, steps, beta):
    """Approximate P^(-1/2) of symmetric matrices (b, m, m) by the coupled iteration.

    With U = 3 I - P, a step multiplies the root Z by T = beta U and P by T^2. Two
    steps together have T = 3 beta^2 U + beta^4 U^2 (U^2 - 3 U), one product less.
    """
    eye = 3 * torch.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    Z = None
    for left in range(steps, 0, -2):
        U = eye - P
        if left > 1:
            S = torch.bmm(U, U)
            high = torch.sub(S, U, alpha=3)
            T = torch.baddbmm(U, S, high, beta=3 * beta**2, alpha=beta**4)
        else:
            T = beta * U
        Z = T if Z is None else torch.bmm(T, Z)
        if left > 2:
            P = torch.bmm(torch.bmm(P, T), T)
    return Z


def with_unit_rms(D, X):
    """Rescale D to root mean square 1 over the rows where X is not zero."""
    live = largest(X, dim=-1).ne(0).sum(dim=-2, keepdim=True)
    size = (live * D.shape[-1]).to(D.dtype).sqrt()
    return D * (size / nonzero(norm(D, dim=(-2, -1))))


def at_least_float32(X):
    """Leave float32 and float64 as they are, and convert half precision to float32."""
    return X.to(torch.promote_types(X.dtype, torch.float32))


def scaled(X, dim):
    """Divide by the largest absolute value along dim."""
    return X / nonzero(largest(X, dim))


def largest(X, dim):
    """Largest absolute value along dim, which is kept."""
    return X.abs().amax(dim=dim, keepdim=True)


def norm(X, dim):
    """Root of the sum of squares along dim, which is kept."""
    return torch.linalg.vector_norm(X, dim=dim, keepdim=True)


def nonzero(x):
    """Put 1 in the place of zeros, to divide by."""
    return torch.where(x == 0, torch.ones_like(x), x)
