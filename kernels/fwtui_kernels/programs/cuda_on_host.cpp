// Runs the threads of a kernel of cuda_on_host.hpp: those of a block are contexts that take turns between barriers, in another
// order each time, as the blocks of a launch are. The kernel is compiled with -fsanitize=thread and without its library, for which
// the end of this file stands: it finds races between threads.
#include "cuda_on_host.hpp"
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
#include <dlfcn.h>
#include <ucontext.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

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
// xorshift of 32 bits (Marsaglia 2003): <random> takes a compiler as long as the rest of this file
struct Chance {
    typedef std::uint32_t result_type;
    std::uint32_t state = 1;
    static constexpr std::uint32_t min() { return 1; }
    static constexpr std::uint32_t max() { return UINT32_MAX; }
    std::uint32_t operator()() { state ^= state << 13; state ^= state >> 17; return state ^= state << 5; }
};
static Chance chance;
static std::string divergence;
alignas(16) char dynamic_shared[256 * 1024];

// What the threads of a launch do to memory, as fwtui_kernels/compiled/simulator_races.py has it for kernels in Python.
typedef std::uintptr_t Address;
const long MOST_ACCESSES = 1000000;  // of a function, after which no further block of it is looked at
const unsigned MOST_RACES = 100, LARGEST = 64;
struct Access {
    Address at;  // where it returns to; 0: there is none
    unsigned block, interval, thread;
    bool atomic;
};
struct Cell { Access writer, changer, reader, before; };  // who wrote last, who changed it last, and two who read it
struct Race { bool shared, reads, harms; Access one, write; };
struct Write { Address to; unsigned size; char before[LARGEST]; Access by; };
static std::vector<std::pair<Address, Address>> buffers;  // global memory: the rest, without stacks, is shared by a block
static std::unordered_map<Address, Cell> global_cells, shared_cells;
static std::vector<Race> races;
static std::map<void *, long> accesses;
static std::vector<bool> ordered;  // blocks that used an atomic operation, by which they may have waited for others
static Write open_write;  // which is made after it is told: whether it changes anything is seen later
static Access now;
static bool watched, looking;
static long *looked_at;

static bool meets(const Access &one, const Access &other)
{
    if (!other.at || (other.block == one.block && other.interval == one.interval && other.thread == one.thread)) return false;
    return other.block == one.block ? other.interval == one.interval : !ordered[one.block];
}

static void meet(bool shared, bool reads, bool harms, const Access &one, const Access &write)
{
    for (const Race &known : races)
        if (known.one.at == one.at && known.write.at == write.at && known.harms == harms) return;
    if (races.size() < MOST_RACES) races.push_back({shared, reads, harms, one, write});
}

template <class F> void each_cell(Address address, unsigned size, F look)
{
    if (address >= Address(running->stack.data()) && address < Address(running->stack.data()) + STACK) return;
    bool shared = true;
    for (auto [begin, end] : buffers) shared &= address < begin || address >= end;
    for (Address cell = size > 1 ? address & ~Address(1) : address; cell < address + size; cell += 2)
        look(shared, (shared ? shared_cells : global_cells)[cell]);
}

static void end_write()
{
    if (!open_write.size) return;
    const Access by = open_write.by;
    const void *there = reinterpret_cast<void *>(open_write.to);
    const bool changes = open_write.size > LARGEST || std::memcmp(there, open_write.before, open_write.size);
    each_cell(open_write.to, open_write.size, [&](bool shared, Cell &cell) {
        if (changes || shared) {
            for (const Access *reader : {&cell.reader, &cell.before})
                if (meets(by, *reader)) meet(shared, true, changes, *reader, by);
            if (!(by.atomic && cell.writer.atomic) && meets(by, cell.writer)) meet(shared, false, changes, by, cell.writer);
        }
        cell.writer = by;
        if (changes) cell.changer = by;
    });
    open_write.size = 0;
}

static void reads(Address address, unsigned size, Access by)
{
    each_cell(address, size, [&](bool shared, Cell &cell) {
        if (!(by.atomic && cell.writer.atomic)) {
            if (meets(by, cell.changer)) meet(shared, true, true, by, cell.changer);
            else if (shared && meets(by, cell.writer)) meet(shared, true, false, by, cell.writer);
        }
        const Access &last = cell.reader;
        if (by.atomic || (last.at && last.block == by.block && last.interval == by.interval && last.thread == by.thread)) return;
        cell.before = last.at ? last : by, cell.reader = by;
    });
}

// before the access; `at` is where it returns to
static void access(void *to, unsigned size, bool reading, bool writing, void *at, bool atomic = false)
{
    if (!looking) return;
    looking = false;  // what is done here is no access of the kernel's
    end_write();
    ++*looked_at;
    Access by = now;
    by.at = Address(at), by.atomic = atomic;
    if (atomic) ordered[by.block] = true;
    if (reading) reads(Address(to), size, by);
    if (writing) {
        open_write.to = Address(to), open_write.size = size, open_write.by = by;
        std::memcpy(open_write.before, to, std::min(size, LARGEST));
    }
    looking = true;
}

void atomic(void *to, unsigned size, void *at) { access(to, size, true, true, at, true); }

void barrier(int line)
{
    looking = false;
    running->line = line;
    swapcontext(&running->context, &scheduler);
}

static void run()
{
    body();
    looking = false;
    running->ended = true;  // and on to the scheduler, which is its successor
}

static void check()
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

static void block()
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
    shared_cells.clear();
    const bool wanted = watched && *looked_at < MOST_ACCESSES;
    while (!alive.empty()) {
        std::shuffle(alive.begin(), alive.end(), chance);
        now.interval++;
        for (Thread *it : alive) {
            running = it, threadIdx = it->place;
            now.thread = it - threads.data(), looking = wanted;
            swapcontext(&scheduler, &it->context);
            end_write();
        }
        check();
        alive.erase(std::remove_if(alive.begin(), alive.end(), [](Thread *it) { return it->ended; }), alive.end());
    }
}

void launch(void *function, Call call, const unsigned *shape, void **given)
{
    gridDim = dim3(shape[0], shape[1], shape[2]), blockDim = dim3(shape[3], shape[4], shape[5]);
    body = [=] { call(function, given); };
    std::vector<uint3> blocks;
    for (unsigned at = 0; at < gridDim.x * gridDim.y * gridDim.z; at++)
        blocks.push_back({at % gridDim.x, at / gridDim.x % gridDim.y, at / (gridDim.x * gridDim.y)});
    std::shuffle(blocks.begin(), blocks.end(), chance);
    global_cells.clear();
    ordered.assign(blocks.size(), false);
    looked_at = &accesses[function];
    for (uint3 place : blocks) {
        blockIdx = place;
        now.block = place.x + gridDim.x * (place.y + gridDim.y * place.z);
        std::memset(dynamic_shared, 0xc9, sizeof dynamic_shared);  // -1.6e6 as float, -909522487 as int
        block();
    }
}
}  // namespace fwtui

extern "C" {
const char *fwtui_divergence() { return fwtui::divergence.c_str(); }

// look at the next launch: begin and end of each buffer
void fwtui_watch(const std::uintptr_t *buffers, int count)
{
    fwtui::buffers.clear(), fwtui::races.clear();
    for (int at = 0; at < count; at++) fwtui::buffers.push_back({buffers[2 * at], buffers[2 * at + 1]});
    fwtui::watched = true;
}

// the races of that launch, nine numbers each: places are offsets in this library
int fwtui_races(std::int64_t *found)
{
    Dl_info library;
    dladdr(reinterpret_cast<void *>(fwtui_races), &library);
    std::int64_t base = std::int64_t(library.dli_fbase), *to = found;
    for (const fwtui::Race &race : fwtui::races)
    {
        *to++ = race.shared, *to++ = race.reads, *to++ = race.harms;
        for (const fwtui::Access &one : {race.one, race.write})
            *to++ = std::int64_t(one.at) - 1 - base, *to++ = one.block, *to++ = one.thread;
    }
    fwtui::watched = false;
    return fwtui::races.size();
}

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
#define FWTUI_SIZES(way, reading, writing) \
    FWTUI_SEEN_OF(way, 1, reading, writing) FWTUI_SEEN_OF(way, 2, reading, writing) FWTUI_SEEN_OF(way, 4, reading, writing) \
    FWTUI_SEEN_OF(way, 8, reading, writing) FWTUI_SEEN_OF(way, 16, reading, writing)
#define FWTUI_SEEN_OF(way, size, reading, writing) \
    void __tsan_##way##size(void *to) { fwtui::access(to, size, reading, writing, __builtin_return_address(0)); }
FWTUI_SIZES(read, true, false)
FWTUI_SIZES(write, false, true)
FWTUI_SIZES(unaligned_read, true, false)
FWTUI_SIZES(unaligned_write, false, true)
FWTUI_SIZES(read_write, true, true)
void __tsan_read_range(void *to, unsigned long size) { fwtui::access(to, size, true, false, __builtin_return_address(0)); }
void __tsan_write_range(void *to, unsigned long size) { fwtui::access(to, size, false, true, __builtin_return_address(0)); }
void __tsan_vptr_update(void **, void *) {}
void *__tsan_memcpy(void *to, const void *from, std::size_t size) { return std::memcpy(to, from, size); }
void *__tsan_memset(void *to, int value, std::size_t size) { return std::memset(to, value, size); }
}
