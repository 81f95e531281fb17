"""Blocked, with the whole third phase in registers: the fastest form on large graphs.

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
        "Shared memory can bring about one number for each relaxation, so a kernel whose threads load two for each relaxation "
        "waits for it. Here a thread keeps 8 x 8 words of the result in registers: with 16 loaded numbers it does 64 "
        "relaxations, and the arithmetic is the limit. The tile's operands come a slab of k at a time, copied past the "
        "registers into shared memory while the slab before is in use. What is left to win is instructions. On Hopper an "
        "addition and a minimum of integers are one instruction, and it can do two 16-bit relaxations at once. Float32 "
        "distances that are not negative take three instructions for two relaxations, as their bits are ordered like integers. "
        "The second phase needs no order of k either: with the pivot solved it is the same product as the third."
    ),
    preference=50,
)
