// As much of CUDA C++ as a kernel of one file needs, for a C++ compiler on a machine without a GPU: right, not fast.
// The threads of a block are contexts that take turns between barriers, in another order each time, as the blocks of a launch are.
#pragma once
#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <ucontext.h>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __syncthreads() fwtui::barrier(__LINE__)
#define __ldg(address) (*(address))

struct uint3 { unsigned x, y, z; };
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
#define FWTUI_VECTORS(type, name) \
    struct name##2 { type x, y; }; \
    struct name##4 { type x, y, z, w; }; \
    inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
    inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
FWTUI_VECTORS(float, float)
FWTUI_VECTORS(int, int)
FWTUI_VECTORS(unsigned, uint)
FWTUI_VECTORS(short, short)

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

template <class A, class B> inline std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <class A, class B> inline std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }
#define FWTUI_ATOMIC(name, next) \
    template <class T> inline T name(T *to, std::common_type_t<T> value) { T old = *to; *to = next; return old; }
FWTUI_ATOMIC(atomicAdd, T(old + value))
FWTUI_ATOMIC(atomicSub, T(old - value))
FWTUI_ATOMIC(atomicMin, value < old ? value : old)
FWTUI_ATOMIC(atomicMax, old < value ? value : old)
FWTUI_ATOMIC(atomicExch, value)
template <class T> inline T atomicCAS(T *to, std::common_type_t<T> expected, std::common_type_t<T> value)
{
    T old = *to;
    if (old == expected) *to = value;
    return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline float __int_as_float(int bits) { float number; std::memcpy(&number, &bits, 4); return number; }
inline int __float_as_int(float number) { int bits; std::memcpy(&bits, &number, 4); return bits; }

namespace fwtui {
const std::size_t STACK = 128 * 1024;
struct Thread {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(STACK);
    uint3 place;
    int line;  // of the barrier at which it waits; 0 at first
    bool ended;
};
static std::vector<Thread> threads;
static Thread *running;
static ucontext_t scheduler;
static std::function<void()> body;
static std::mt19937 chance(1);
static std::string divergence;
alignas(16) static char dynamic_shared[256 * 1024];

inline void barrier(int line)
{
    running->line = line;
    swapcontext(&running->context, &scheduler);
    threadIdx = running->place;
}

inline void run()
{
    body();
    running->ended = true;  // and on to the scheduler, which is its successor
}

inline void check()
{
    std::map<int, int> waiting;
    int ended = 0, number = 0;
    for (unsigned at = 0; at < blockDim.x * blockDim.y * blockDim.z; at++, number++)
        threads[at].ended ? ended++ : waiting[threads[at].line]++;
    if (!divergence.empty() || waiting.empty() || (waiting.size() == 1 && !ended)) return;
    divergence = "of the " + std::to_string(number) + " threads of block (" + std::to_string(blockIdx.x) + ", "
        + std::to_string(blockIdx.y) + ")";
    for (auto [line, count] : waiting) divergence += " " + std::to_string(count) + " wait at line " + std::to_string(line) + ",";
    if (ended) divergence += " " + std::to_string(ended) + " have ended,";
    divergence += " and all have to come to the same barrier";
}

inline void block()
{
    unsigned size = blockDim.x * blockDim.y * blockDim.z;
    if (threads.size() < size) threads.resize(size);
    std::vector<Thread *> alive;
    for (unsigned at = 0; at < size; at++) {
        Thread &it = threads[at];
        it.place = {at % blockDim.x, at / blockDim.x % blockDim.y, at / (blockDim.x * blockDim.y)};
        it.ended = false, it.line = 0;
        getcontext(&it.context);
        it.context.uc_stack.ss_sp = it.stack.data();
        it.context.uc_stack.ss_size = STACK;
        it.context.uc_link = &scheduler;
        makecontext(&it.context, run, 0);
        alive.push_back(&it);
    }
    while (!alive.empty()) {
        std::shuffle(alive.begin(), alive.end(), chance);
        for (Thread *it : alive) {
            running = it, threadIdx = it->place;
            swapcontext(&scheduler, &it->context);
        }
        check();
        alive.erase(std::remove_if(alive.begin(), alive.end(), [](Thread *it) { return it->ended; }), alive.end());
    }
}

template <class... P, std::size_t... I>
void launch(void (*function)(P...), const unsigned *shape, void **given, std::index_sequence<I...>)
{
    gridDim = dim3(shape[0], shape[1], shape[2]), blockDim = dim3(shape[3], shape[4], shape[5]);
    body = [=] { function(*static_cast<std::remove_reference_t<P> *>(given[I])...); };
    std::vector<uint3> blocks;
    for (unsigned at = 0; at < gridDim.x * gridDim.y * gridDim.z; at++)
        blocks.push_back({at % gridDim.x, at / gridDim.x % gridDim.y, at / (gridDim.x * gridDim.y)});
    std::shuffle(blocks.begin(), blocks.end(), chance);
    for (uint3 place : blocks) {
        blockIdx = place;
        std::memset(dynamic_shared, 0xc9, sizeof dynamic_shared);  // -1.6e6 as float, -909522487 as int
        block();
    }
}

template <class... P> void launch(void (*function)(P...), const unsigned *shape, void **given)
{
    launch(function, shape, given, std::index_sequence_for<P...>());
}

template <class... P> int sizes(void (*)(P...), int *found)
{
    int at = 0;
    ((found[at++] = sizeof(P)), ...);
    return at;
}
}  // namespace fwtui

extern "C" const char *fwtui_divergence() { return fwtui::divergence.c_str(); }
