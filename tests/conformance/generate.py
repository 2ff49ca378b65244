"""Writes the cases of tests/lua/test_conformance.lua, with what NumPy says of them, to a folder.

python3 generate.py FOLDER STEP SEED: of the cases of each function one in STEP."""

import sys

import numpy as np

import dtypes
import elementwise
import order
import picking
import products
import reductions
import shapes
from suite import Suite


def main(folder, step, seed):
    np.seterr(all="ignore")
    suite = Suite(int(seed), int(step))
    for module in (elementwise, dtypes, reductions, order, shapes, picking, products):
        module.cases(suite)
    suite.write(folder)


main(*sys.argv[1:])
