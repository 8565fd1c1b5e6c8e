#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages of the sciences: OpenMM beside its reference platform, cuQuantum, nvmath-python and cuda.compute beside NumPy."""

import numpy as np
from operations import main, operation

G = np.random.default_rng(0)


def normal(*shape):
    return G.standard_normal(shape).astype(np.float32)


def molecules(platform, steps):
    """Energies, forces and positions of charged, bound particles with particle mesh Ewald in a periodic box."""
    import openmm

    numbers, system = np.random.default_rng(2), openmm.System()
    system.setDefaultPeriodicBoxVectors((2.4, 0, 0), (0, 2.4, 0), (0, 0, 2.4))
    forces, bonds, places = openmm.NonbondedForce(), openmm.HarmonicBondForce(), []
    forces.setNonbondedMethod(openmm.NonbondedForce.PME)
    forces.setCutoffDistance(0.9)
    for i in range(64):
        system.addParticle(20.0)
        forces.addParticle(0.3 if i % 2 else -0.3, 0.3, 0.5)
        places.append(0.6 * np.array([i % 4, i // 4 % 4, i // 16]) + 0.02 * numbers.standard_normal(3))
        if i % 2:
            bonds.addBond(i - 1, i, 0.6, 1000.0)
            forces.addException(i - 1, i, 0, 0.1, 0)
    system.addForce(forces)
    system.addForce(bonds)
    integrator = openmm.VerletIntegrator(0.002)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform))
    context.setPositions(places)
    begin = context.getState(getEnergy=True, getForces=True)
    integrator.step(steps)
    end = context.getState(getEnergy=True, getPositions=True)
    energies = np.array([begin.getPotentialEnergy()._value, end.getPotentialEnergy()._value])
    results = energies / 1000, begin.getForces(asNumpy=True)._value / 1000, end.getPositions(asNumpy=True)._value
    return [np.asarray(one, np.float32) for one in results]


@operation
def openmm():
    return zip(molecules("CUDA", 20), molecules("Reference", 20))


@operation
def custatevec():
    """A Hadamard gate on each of five qubits in turn."""
    import cupy
    from cuquantum import ComputeType, cudaDataType
    from cuquantum.bindings import custatevec as library

    handle, single = library.create(), cudaDataType.CUDA_C_32F
    state, gate = cupy.zeros(32, np.complex64), cupy.asarray(np.array([[1, 1], [1, -1]], np.complex64) * np.float32(0.5**0.5))
    state[0] = 1
    for qubit in range(5):
        library.apply_matrix(handle, state.data.ptr, single, 5, gate.data.ptr, single, library.MatrixLayout.ROW, 0, [qubit], 1, [], [], 0,
                             ComputeType.COMPUTE_32F, 0, 0)  # fmt: skip
    library.destroy(handle)
    return [(cupy.asnumpy(state), np.full(32, 1 / np.sqrt(32), np.complex64))]


@operation
def cutensornet():
    import cupy
    import cuquantum.tensornet

    a, b, c = normal(8, 6), normal(6, 7), normal(7, 5)
    return [(cupy.asnumpy(cuquantum.tensornet.contract("ij,jk,kl->il", *map(cupy.asarray, (a, b, c)))), a @ b @ c)]


@operation
def nvmath():
    import nvmath

    a, b, wave = normal(32, 48), normal(48, 16), (normal(64) + 1j * normal(64)).astype(np.complex64)
    return [(nvmath.linalg.advanced.matmul(a, b), a @ b), (nvmath.fft.fft(wave, execution="cuda"), np.fft.fft(wave).astype(np.complex64))]


@operation
def cuda_compute():
    import cuda.compute as compute
    import cupy

    values, zero = G.integers(0, 100, 1000).astype(np.int32), np.array([0], np.int32)
    given, total = cupy.asarray(values), cupy.empty(1, np.int32)
    sums, sorted_values, triples = (cupy.empty_like(given) for _ in range(3))
    compute.reduce_into(d_in=given, d_out=total, num_items=1000, op=compute.OpKind.PLUS, h_init=zero)
    compute.exclusive_scan(d_in=given, d_out=sums, op=compute.OpKind.PLUS, init_value=zero, num_items=1000)
    compute.radix_sort(d_in_keys=given, d_out_keys=sorted_values, d_in_values=None, d_out_values=None, num_items=1000,
                       order=compute.SortOrder.ASCENDING)  # fmt: skip
    compute.binary_transform(d_in1=given, d_in2=given, d_out=triples, num_items=1000, op=lambda x, y: x + 2 * y)
    before = np.concatenate([zero, np.cumsum(values)[:-1]]).astype(np.int32)
    return [(cupy.asnumpy(got), wanted) for got, wanted in
            ((total[0], values.sum(dtype=np.int32)), (sums, before), (sorted_values, np.sort(values)), (triples, values * 3))]  # fmt: skip


if __name__ == "__main__":
    main()
