"""Blocked, with the results of the third phase in registers.

round p:   pivot          panels                 rest
           +--+--+--+     +--+--+--+     C tile: 128 x 128 words of registers in a block, 8 x 8 in a thread
           |P |  |  |     |P |R |R |             += panel, by columns   (128 x slab, shared, copied ahead)
           +--+--+--+     +--+--+--+              x row p, by rows      (slab x 128, shared, copied ahead)
           |  |  |  |     |C |  |  |
           +--+--+--+     +--+--+--+     each word of a slab that a thread loads is used 8 times from a register
           |  |  |  |     |C |  |  |
           +--+--+--+     +--+--+--+
"""

from __future__ import annotations

from fwtui_kernels.parts import register_tiled
from fwtui_kernels.parts.products import program

KERNEL = register_tiled.rung(
    id="register-tiled",
    title="Register-tiled",
    build=program,
    summary="Phases two and three are one product of tiles: 64 results per thread in registers, while the next slab is copied.",
    lesson=(
        "Shared memory delivers about one value per relaxation, so a kernel whose threads load two values per relaxation is "
        "bound by it. Here a thread holds 8 x 8 words of the result in registers: 16 loaded values serve 64 relaxations, and the "
        "kernel becomes compute-bound. The operands arrive one slab of k at a time, copied asynchronously to shared memory "
        "(`cp.async`) while the previous slab is in use. What remains is the number of instructions. Hopper fuses an addition "
        "and a minimum of integers into one instruction, which can also do two 16-bit relaxations. Non-negative float32 "
        "distances take three instructions for two relaxations, because their bits are ordered like integers. The second phase "
        "needs no order of k either: with a solved pivot it is the same product as the third."
    ),
    preference=50,
)
