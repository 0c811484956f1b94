"""Branch lengths of trees from two-state characters."""

from skextra.phylo._alignments import read_alignment, ry_coding, write_alignment
from skextra.phylo._branch_lengths import PhyloBranchLengths
from skextra.phylo._display import PhyloTreeDisplay
from skextra.phylo._functions import cfn_distance, neighbor_joining
from skextra.phylo._interchange import read_trees, write_trees
from skextra.phylo._newick import parse_newick, to_newick
from skextra.phylo._simulate import random_tree, simulate_characters

__all__ = [
    "PhyloBranchLengths",
    "PhyloTreeDisplay",
    "cfn_distance",
    "neighbor_joining",
    "parse_newick",
    "random_tree",
    "read_alignment",
    "read_trees",
    "ry_coding",
    "simulate_characters",
    "to_newick",
    "write_alignment",
    "write_trees",
]
