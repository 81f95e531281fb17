"""Imports of programs in the simulator: modules of the solver, an engine, random numbers and checks."""
# ruff: noqa: F401

import json
import sys

import numpy as np
from path_checks import by_scipy, check_paths, random_matrix
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import NegativeCycleError

from fwtui.common.errors import Refused
from fwtui.engine.engine import HostEngine
from fwtui.graphs.adjacency import Adjacency, Arcs
from fwtui.graphs.bounds import choices
from fwtui.graphs.library_objects import graph_of, lazy_of_object, of_object
from fwtui.graphs.vertices import Vertices
from fwtui.solver import call, compiled_code, costs, device_graph, device_predecessors, driver, host_graph, kernel_choice, paths
from fwtui.solver.call import Call, Clock
from fwtui.solver.driver import answer
from fwtui_kernels import registry
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import Target

engine = HostEngine(Target("simulator"), cuda.stream())
cuda.as_cuda_array = lambda array: array
rng = np.random.default_rng(4)
