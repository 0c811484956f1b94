"""Other ways to the branch lengths: IQ-TREE, phangorn and plain NumPy."""

import atexit
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from skextra.phylo import parse_newick, read_alignment, write_alignment

FOLDER = Path(tempfile.mkdtemp(prefix="phylo-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

R_DATA = """
suppressMessages(library(phangorn)); suppressMessages(library(ape))
data(Laurasiatherian); data(yeast); data(woodmouse)
for (name in c("Laurasiatherian", "yeast", "woodmouse")) {
  x <- toupper(as.character(as.matrix(get(name))))
  write.dna(x, file.path("FOLDER", paste0(name, ".fasta")), "fasta", colsep="")
}
"""

R_FIT = """
suppressMessages(library(phangorn))
x <- as.matrix(read.csv("DATA", colClasses="character", header=TRUE, check.names=FALSE))
x[x == ""] <- "?"
w <- scan("WEIGHTS", quiet=TRUE)
d <- phyDat(t(x), type="USER", levels=c("0", "1"), ambiguity="?", compress=FALSE)
attr(d, "weight") <- w
tree <- read.tree("TREE")
control <- pml.control(trace=0)
cat("ready\\n")
con <- file("stdin"); open(con)
while (length(readLines(con, n=1))) {
  f <- optim.pml(pml(tree, d, bf=c(.5, .5)), optEdge=TRUE, control=control)
  cat(format(f$logLik, digits=15), "\\n")
}
"""


def real_data():
    """Return the RY-coded alignments of R's packages ape and phangorn by name."""
    names = "Laurasiatherian", "yeast", "woodmouse"
    if not (FOLDER / "yeast.fasta").exists():
        script = FOLDER / "data.R"
        script.write_text(R_DATA.replace("FOLDER", str(FOLDER)))
        subprocess.run(["Rscript", script], check=True, capture_output=True)
    return {
        name: read_alignment(FOLDER / f"{name}.fasta", coding="ry") for name in names
    }


def has_phangorn():
    """Whether R has the packages ape and phangorn."""
    if not shutil.which("Rscript"):
        return False
    load = ["Rscript", "-e", "library(ape); library(phangorn)"]
    return not subprocess.run(load, capture_output=True, check=False).returncode


def iqtree(X, tree):
    """Return a function that fits the lengths of a tree by IQ-TREE, one thread.

    All that the program does is timed, its start and its files with it.
    """
    program = shutil.which("iqtree2") or shutil.which("iqtree")
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    write_alignment(X, folder / "data.phy", format="phylip")
    (folder / "tree.nwk").write_text(tree)
    command = f"{program} -s {folder}/data.phy -st BIN -m JC2 -te {folder}/tree.nwk"
    command += f" -blmin 1e-8 -keep-ident -nt 1 -redo -quiet -pre {folder}/out"

    def fit():
        subprocess.run(command.split(), check=True, capture_output=True)
        report = (folder / "out.iqtree").read_text()
        return float(re.search(r"Log-likelihood of the tree: (\S+)", report)[1])

    return fit


def phangorn(X, weights, tree):
    """Return a function that fits the lengths of a tree by phangorn's optim.pml.

    R has started and read the sites, each with its weight, before.
    """
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    X.astype("Int64").to_csv(folder / "data.csv", index=False)
    np.savetxt(folder / "weights.txt", weights)
    (folder / "tree.nwk").write_text(tree)
    script = R_FIT
    for name, file in {
        "DATA": "data.csv",
        "WEIGHTS": "weights.txt",
        "TREE": "tree.nwk",
    }.items():
        script = script.replace(name, str(folder / file))
    (folder / "fit.R").write_text(script)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(["Rscript", folder / "fit.R"], **pipes)
    atexit.register(process.kill)
    process.stdout.readline()

    def fit():
        process.stdin.write("fit\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    return fit


class NumPyTree:
    """The likelihood in plain NumPy, site by site, and the paper's algorithm.

    Messages are magnetisations, and all of them are computed again for each edge.
    """

    def __init__(self, X, tree):
        tree = parse_newick(tree)
        self.parents = tree.parents
        n_leaves = X.shape[1]
        order = [tree.names.index(name) for name in X.columns]
        self.leaves = np.zeros((n_leaves, len(X)))
        self.leaves[order] = np.nan_to_num(1 - 2 * X.to_numpy(dtype=float)).T
        self.children = [
            np.flatnonzero(self.parents == i) for i in range(len(self.parents))
        ]
        self.missing = (self.leaves == 0).sum(axis=0)

    def messages(self, theta):
        """Return the magnetisations below and beside all edges, and the logs."""
        n_leaves, n_sites = self.leaves.shape
        n_nodes = len(self.parents)
        below, beside = np.zeros((2, n_nodes, n_sites))
        logs = np.full(n_sites, -np.log(2))
        below[:n_leaves] = self.leaves
        for node in range(n_leaves, n_nodes):
            z = np.zeros(n_sites)
            for child in self.children[node]:
                x = theta[child] * below[child]
                scale = 1 + z * x
                z = (z + x) / scale
                logs += np.log(scale)
            below[node] = z
        # The sites have (1/2)^n_leaves in common, of which a missing leaf has none.
        logs += (self.missing - n_leaves + 1) * np.log(2)
        for node in range(n_nodes - 1, n_leaves - 1, -1):
            from_above = theta[node] * beside[node] if self.parents[node] >= 0 else 0.0
            for child in self.children[node]:
                z = from_above
                for other in self.children[node]:
                    if other != child:
                        x = theta[other] * below[other]
                        z = (z + x) / (1 + z * x)
                beside[child] = z
        return below, beside, logs

    def coordinate(self, n_sweeps, theta=0.8):
        """Return the log-likelihood after sweeps that compute all messages anew."""
        theta = np.where(self.parents >= 0, theta, 0.0)
        for _ in range(n_sweeps):
            for edge in np.flatnonzero(self.parents >= 0):
                below, beside, _ = self.messages(theta)
                theta[edge] = self.best(below[edge] * beside[edge], theta[edge])
        return self.messages(theta)[2].sum()

    @staticmethod
    def best(a, theta):
        """Maximise the concave sum of ln(1 + theta a) by Newton's method."""
        for _ in range(50):
            ratio = a / (1 + theta * a)
            new = np.clip(theta + ratio.sum() / (ratio * ratio).sum(), 1e-9, 1 - 2e-8)
            if abs(new - theta) < 1e-12:
                break
            theta = new
        return new

    def lbfgs(self):
        """Return the log-likelihood at the end of SciPy's L-BFGS-B on the lengths."""
        edges = np.flatnonzero(self.parents >= 0)
        theta = np.zeros(len(self.parents))

        def loss(t):
            theta[edges] = np.exp(-2 * t)
            below, beside, logs = self.messages(theta)
            a = below[edges] * beside[edges]
            slope = (a / (1 + theta[edges, None] * a)).sum(axis=1)
            return -logs.mean(), 2 * theta[edges] * slope / logs.size

        start, bounds = np.full(len(edges), 0.1), [(1e-8, 10)] * len(edges)
        options = {"maxiter": 1000, "maxfun": 10_000, "ftol": 1e-12, "gtol": 1e-8}
        found = minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return -found.fun * self.leaves.shape[1]
