"""Writes the cases of tests/lua/test_conformance.lua, with what NumPy says of them, to a folder."""

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

SEED = 20241130


def main(folder):
    np.seterr(all="ignore")
    suite = Suite(SEED)
    for module in (elementwise, dtypes, reductions, order, shapes, picking, products):
        module.cases(suite)
    suite.write(folder)


main(sys.argv[1])
