"""The log-likelihood of site patterns on a tree, its derivatives and its steps."""

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from skextra.phylo._numba import (
    LANES,
    add_covariances,
    edge_terms,
    up_pass,
    variable_probability,
)
from skextra.phylo._numba_steps import sweep
from skextra.utils import row_blocks

CACHE = 2**18  # numbers of a row of each node that stay in the cache together


def flip_probabilities(lengths, rates):
    """Return the probability that the ends of edges differ, of shape (edges, rates)."""
    with np.errstate(over="ignore"):  # at an infinite length it is 1/2
        return -np.expm1(-2 * np.multiply.outer(lengths, rates)) / 2


class Likelihood:
    """Site patterns at the leaves of a tree, with the messages between its nodes.

    Parameters
    ----------
    tree : Tree
        Tree without nodes of degree 2.

    states : ndarray of shape (n_patterns, n_leaves), dtype int8
        1 and -1 for states 0 and 1, and 0 where missing.

    weights : ndarray of shape (n_patterns,)
        Number of sites of each pattern.

    rates : ndarray of shape (n_categories,)
        Rates of the equally frequent categories.

    ascertainment : bool
        Whether the likelihood is that of variable sites, given that they are.
    """

    def __init__(self, tree, states, weights, rates, ascertainment=False):
        self.tree, self.walk = tree, tree.walk
        self.edges, self.rates = tree.edges, rates
        self.weights, self.total = weights, weights.sum()
        self.ascertainment, self.states = ascertainment, states
        self.n_sites = len(states)
        if ascertainment:  # a last pattern: 0 at all leaves
            states = np.vstack([states, np.ones_like(states[:1])])
            self.weights = np.append(weights, 0.0)
        n_leaves, self.n_patterns = states.shape[1], len(states)
        columns = len(rates) * self.n_patterns
        self.messages = np.empty((self.walk.n_rows, 2, columns))
        for row, state in zip(self.messages, states.T, strict=False):
            row[0] = np.tile(state >= 0, len(rates))  # both where missing
            row[1] = np.tile(state <= 0, len(rates))
        self.n_leaves = n_leaves

    def flips(self, lengths):
        """Return the flips by node; the root's, and one more, are 0."""
        flips = np.zeros((len(self.tree.parents) + 1, len(self.rates)))
        flips[self.edges] = flip_probabilities(lengths, self.rates)
        return flips

    def _start(self):
        """Set the message from above the root, which is no information."""
        above_root = self.walk.outside[self.tree.root]
        if above_root >= len(self.tree.parents):
            self.messages[above_root] = 0.5

    def _sites(self, logs):
        """Return the log-likelihood by pattern, and that by category."""
        logs = logs.reshape(len(self.rates), -1) - np.log(2 * len(self.rates))
        return logs[0] if len(logs) == 1 else logsumexp(logs, axis=0), logs

    def _up(self, flips):
        """Bring the messages to the root; return what `_sites` says of them."""
        return self._sites(up_pass(self.walk.up, self.messages, flips))

    def _variable(self, flips):
        """Return the probability of the sites that count: all, or the variable ones."""
        if not self.ascertainment:
            return 1.0
        return variable_probability(self.walk.up, flips, self.walk.n_rows)

    def _total(self, sites, flips):
        """Return the log-likelihood of the data."""
        return float(self.weights @ sites - self.total * np.log(self._variable(flips)))

    def site_values(self, lengths):
        """Return the log-likelihood of each pattern."""
        flips = self.flips(lengths)
        sites, _ = self._up(flips)
        return sites[: self.n_sites] - np.log(self._variable(flips))

    def value(self, lengths):
        """Return the log-likelihood."""
        flips = self.flips(lengths)
        return self._total(self._up(flips)[0], flips)

    def ascend(self, lengths, t_min, t_max):
        """Yield the lengths and their log-likelihood after each sweep (the paper's).

        A sweep maximises over one edge after the other, each with all messages up to
        date.
        """
        nodes = np.zeros(len(self.tree.parents))
        nodes[self.edges] = lengths
        flips = self.flips(lengths)
        concave = len(self.rates) == 1 and not self.ascertainment
        bounds = np.array([t_min, t_max])
        low, high = flip_probabilities(bounds, 1.0) if concave else bounds
        sites, by_rate = self._up(flips)
        while True:
            share = np.exp(by_rate - sites).ravel()
            self._start()
            logs = sweep(
                self.walk.sweep,
                self.messages,
                flips,
                self.weights,
                low,
                high,
                concave,
                nodes,
                self.rates,
                share,
                self._variable(flips),
            )
            if concave:
                p = flips[self.edges, 0]
                lengths = np.clip(-np.log1p(-2 * p) / 2, t_min, t_max)
                lengths[p <= low], lengths[p >= high] = t_min, t_max
            else:
                lengths = nodes[self.edges]
            sites, by_rate = self._sites(logs)
            yield lengths, self._total(sites, flips)

    def _terms(self, flips, chain=None):
        """Return the log-likelihoods, the shares, and the ratios and posteriors."""
        sites, by_rate = self._up(flips)
        self._start()
        n_nodes, columns = len(self.tree.parents), self.messages.shape[2]
        ratios = np.zeros((n_nodes, columns))
        posterior = np.empty((n_nodes - self.n_leaves, columns))
        if chain is None:
            chain = np.empty((4, n_nodes, 0))
        edge_terms(self.walk.edges, self.messages, flips, ratios, posterior, chain)
        shape = len(self.rates), self.n_patterns
        ratios = ratios.reshape(n_nodes, *shape)[self.edges]
        posterior = posterior.reshape(len(posterior), *shape)
        return sites, np.exp(by_rate - sites), ratios, posterior

    def posterior(self, lengths):
        """Return the probability of state 1, of shape (n_patterns, n_inner)."""
        _, share, _, posterior = self._terms(self.flips(lengths))
        ones = (share * posterior).sum(axis=1).T
        return ones[: self.n_sites]

    def _slopes(self, flips):
        """Return d p / d t of shape (edges, categories)."""
        return self.rates * (1 - 2 * flips[self.edges])

    def _site_weights(self, flips):
        """Return the weights of the patterns in the gradient."""
        if not self.ascertainment:
            return self.weights
        variable = self._variable(flips)
        return np.append(self.weights[:-1], self.total * (1 - variable) / variable)

    def gradients(self, lengths):
        """Return the log-likelihood, and its derivatives in the lengths and rates."""
        flips = self.flips(lengths)
        sites, share, ratios, _ = self._terms(flips)
        by_flip = np.einsum("eks,ks->ek", ratios, share * self._site_weights(flips))
        by_product = by_flip * (1 - 2 * flips[self.edges])  # of rate and length
        value = self._total(sites, flips)
        return value, by_product @ self.rates, lengths @ by_product

    def gradient(self, lengths):
        """Return the log-likelihood and its derivatives in the lengths."""
        return self.gradients(lengths)[:2]

    def scores(self, lengths):
        """Return the derivatives of the log-likelihood by edge and pattern."""
        flips = self.flips(lengths)
        _, share, ratios, _ = self._terms(flips)
        scores = self._scores(flips, share, ratios)
        if self.ascertainment:
            weight = self._site_weights(flips)[-1] / self.total
            return scores[:, :-1] + weight * scores[:, -1:]
        return scores

    def _scores(self, flips, share, ratios):
        """Return the derivatives by edge and pattern, the added pattern too."""
        return np.einsum("eks,ks,ek->es", ratios, share, self._slopes(flips))

    def information(self, lengths):
        """Return minus the second derivatives of the log-likelihood in the lengths.

        A likelihood is linear in the flip of each edge. By the identity of Louis (1982)
        its mixed derivatives are posterior covariances; these decay along paths. The
        matrix is a sum over sites, made block by block.
        """
        row_bytes = 64 * len(self.tree.parents) * len(self.rates)
        blocks = list(row_blocks(self.n_sites, row_bytes))
        flips = self.flips(lengths)
        if len(blocks) == 1:
            return self._information(flips)
        weights = self.weights[: self.n_sites]
        parts = (
            Likelihood(
                self.tree,
                self.states[block],
                weights[block],
                self.rates,
                self.ascertainment,
            )
            for block in blocks
        )
        return sum(part._information(flips) for part in parts)

    def _information(self, flips):
        parents = self.tree.parents
        columns = self.messages.shape[2]
        chain = np.zeros((4, len(parents), columns))
        _, share, ratios, posterior = self._terms(flips, chain)
        slopes, weights = self._slopes(flips), self._site_weights(flips)
        shared = share * weights

        variance = np.zeros((len(parents), columns))
        inner = posterior.reshape(len(posterior), columns)
        variance[self.n_leaves :] = inner * (1 - inner)
        by_node = np.zeros((len(parents), len(self.rates)))
        by_node[self.edges] = slopes
        chain[2:] *= np.repeat(by_node, self.n_patterns, axis=1)
        second = np.zeros((len(parents), len(parents)))
        for batch in gen_batches(columns, max(LANES, CACHE // len(parents))):
            part = (..., batch)
            add_covariances(
                parents,
                self.tree.preorder,
                np.ascontiguousarray(chain[part]),
                np.ascontiguousarray(variance[part]),
                shared.ravel()[part],
                second,
            )
        second = (second + second.T)[np.ix_(self.edges, self.edges)]
        for k in range(len(self.rates)):
            by_rate = ratios[:, k] * slopes[:, k, None]
            second += (by_rate * shared[k]) @ by_rate.T
        curves = -2 * self.rates * slopes  # d2 p / d t2
        by_edge = np.einsum("eks,ks->ek", ratios, shared)
        np.fill_diagonal(second, (curves * by_edge).sum(axis=1))
        outer = weights.copy()
        if self.ascertainment:
            outer[-1] = -(weights[-1] ** 2) / self.total
        scores = self._scores(flips, share, ratios)
        return (scores * outer) @ scores.T - second
