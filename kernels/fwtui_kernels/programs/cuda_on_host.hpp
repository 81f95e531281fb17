// As much of CUDA C++ as a kernel of one file needs, for a C++ compiler on a machine without a GPU: right, not fast.
// What runs the threads is in cuda_on_host.cpp, which is compiled once for all kernels.
#pragma once
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

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
#define FWTUI_UNSEEN __attribute__((noinline, no_sanitize("thread")))

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

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

template <class A, class B> inline std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <class A, class B> inline std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }
namespace fwtui {
void atomic(void *to, unsigned size, void *at);
void barrier(int line);
extern char dynamic_shared[];
}
#define FWTUI_ATOMIC(name, next) \
    template <class T> FWTUI_UNSEEN T name(T *to, std::common_type_t<T> value) \
    { fwtui::atomic(to, sizeof(T), __builtin_return_address(0)); T old = *to; *to = next; return old; }
FWTUI_ATOMIC(atomicAdd, T(old + value))
FWTUI_ATOMIC(atomicSub, T(old - value))
FWTUI_ATOMIC(atomicMin, value < old ? value : old)
FWTUI_ATOMIC(atomicMax, old < value ? value : old)
FWTUI_ATOMIC(atomicExch, value)
template <class T> FWTUI_UNSEEN T atomicCAS(T *to, std::common_type_t<T> expected, std::common_type_t<T> value)
{
    fwtui::atomic(to, sizeof(T), __builtin_return_address(0));
    T old = *to;
    if (old == expected) *to = value;
    return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline float __int_as_float(int bits) { float number; std::memcpy(&number, &bits, 4); return number; }
inline int __float_as_int(float number) { int bits; std::memcpy(&bits, &number, 4); return bits; }

namespace fwtui {
typedef void (*Call)(void *function, void **given);
void launch(void *function, Call call, const unsigned *shape, void **given);

template <class... P, std::size_t... I> void call(void (*function)(P...), void **given, std::index_sequence<I...>)
{
    function(*static_cast<std::remove_reference_t<P> *>(given[I])...);
}

template <class... P> void launch(void (*function)(P...), const unsigned *shape, void **given)
{
    const Call called = [](void *function, void **given) {
        call(reinterpret_cast<void (*)(P...)>(function), given, std::index_sequence_for<P...>());
    };
    launch(reinterpret_cast<void *>(function), called, shape, given);
}

template <class... P> int sizes(void (*)(P...), int *found)
{
    int at = 0;
    ((found[at++] = sizeof(P)), ...);
    return at;
}
}  // namespace fwtui
