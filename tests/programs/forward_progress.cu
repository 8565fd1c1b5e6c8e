// SPDX-License-Identifier: Apache-2.0
// Threads that wait for each other, where every thread that can run must get on: lanes of one warp, warps, blocks, in the
// ways in which programs do it. Each kernel would hang on a machine that lets a waiting thread starve the one it waits for.
#include "common/program.h"

KERNEL void ticket_lock(unsigned* state, unsigned* counter, int rounds);
KERNEL void try_lock(unsigned* state, unsigned* counter, int rounds);
KERNEL void lane_pairs(unsigned* out);
KERNEL void lane_chain(unsigned* out);
KERNEL void warp_roles(unsigned* out, int rounds);
KERNEL void block_chain(unsigned* flags, unsigned* out);
KERNEL void block_chain_downward(unsigned* flags, unsigned* out);
KERNEL void semaphore_downward(unsigned* flags, unsigned* out);
KERNEL void barrier_by_hand(unsigned* counters, unsigned* cells, unsigned* out, int rounds);
KERNEL void work_queue(unsigned* queue, unsigned* out, unsigned last);
KERNEL void look_back(unsigned long long* status, const unsigned* in, unsigned* out);

#ifdef __CUDACC__
__device__ unsigned load(const unsigned* place) { return *reinterpret_cast<const volatile unsigned*>(place); }
__device__ void store(unsigned* place, unsigned value) { *reinterpret_cast<volatile unsigned*>(place) = value; }

/// state: next ticket, now serving.
__global__ void ticket_lock(unsigned* state, unsigned* counter, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        const unsigned ticket = atomicAdd(&state[0], 1);
        while (load(&state[1]) != ticket) {
        }
        __threadfence();
        store(counter, load(counter) * 3 + 1);
        __threadfence();
        store(&state[1], ticket + 1);
    }
}

__global__ void try_lock(unsigned* state, unsigned* counter, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        bool done = false;
        while (!done) {
            if (atomicCAS(state, 0, 1) == 0) {
                __threadfence();
                store(counter, load(counter) + 1);
                __threadfence();
                atomicExch(state, 0);
                done = true;
            } else {
                __nanosleep(20);
            }
        }
    }
}

/// Odd lanes wait for what even lanes do in the other arm.
__global__ void lane_pairs(unsigned* out) {
    __shared__ unsigned flag[128];
    const unsigned t = threadIdx.x;
    flag[t] = 0;
    __syncthreads();
    if (t % 2 == 1) {
        while (load(&flag[t - 1]) == 0) {
        }
        out[t] = load(&flag[t - 1]) + 1;
        store(&flag[t], 1);
    } else {
        store(&flag[t], t + 10);
        while (load(&flag[t + 1]) == 0) {
        }
        out[t] = t;
    }
}

/// Each lane waits for the lane above, so that the last must run first.
__global__ void lane_chain(unsigned* out) {
    __shared__ unsigned value[65];
    const unsigned t = threadIdx.x;
    value[t] = 0;
    if (t == 63) value[64] = 5;
    __syncthreads();
    unsigned seen;
    while ((seen = load(&value[t + 1])) == 0) {
    }
    store(&value[t], seen * 3 + t);
    out[t] = seen;
}

/// Warp 0 fills a ring of four places for the others through named barriers.
__global__ void warp_roles(unsigned* out, int rounds) {
    __shared__ unsigned place[4][32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned sum = 0;
    if (warp == 0) {
        for (int round = 0; round < rounds; ++round) {
            const int slot = round % 4;
            if (round >= 4) asm volatile("bar.sync %0, 128;" ::"r"(8 + slot) : "memory"); // emptied
            place[slot][lane] = round * 100 + lane;
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + slot) : "memory"); // filled
        }
    } else {
        for (int round = 0; round < rounds; ++round) {
            const int slot = round % 4;
            asm volatile("bar.sync %0, 128;" ::"r"(1 + slot) : "memory");
            sum = sum * 31 + place[slot][(lane + warp) % 32];
            if (round + 4 < rounds) asm volatile("bar.arrive %0, 128;" ::"r"(8 + slot) : "memory");
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void block_chain(unsigned* flags, unsigned* out) {
    const unsigned block = blockIdx.x;
    if (threadIdx.x == 0 && block > 0)
        while (load(&flags[block - 1]) == 0) {
        }
    __syncthreads();
    __threadfence();
    if (threadIdx.x < 8) out[block * 8 + threadIdx.x] = block > 0 ? out[(block - 1) * 8 + threadIdx.x] * 5 + threadIdx.x : threadIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) store(&flags[block], 1);
}

/// The other way round: fine on a GPU as long as all blocks are resident.
__global__ void block_chain_downward(unsigned* flags, unsigned* out) {
    const unsigned block = blockIdx.x, last = gridDim.x - 1;
    if (threadIdx.x == 0 && block < last)
        while (load(&flags[block + 1]) == 0) {
        }
    __syncthreads();
    __threadfence();
    if (threadIdx.x < 8) out[block * 8 + threadIdx.x] = block < last ? out[(block + 1) * 8 + threadIdx.x] * 5 + threadIdx.x : threadIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) store(&flags[block], 1);
}

/// The same with the block's barrier in the loop that waits, as in CUTLASS's Semaphore.
__global__ void semaphore_downward(unsigned* flags, unsigned* out) {
    const unsigned block = blockIdx.x, last = gridDim.x - 1;
    unsigned state = block == last;
    while (__syncthreads_and(state != 1)) {
        if (threadIdx.x == 0) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(flags + block + 1) : "memory");
    }
    __syncthreads();
    if (threadIdx.x < 8) out[block * 8 + threadIdx.x] = block < last ? out[(block + 1) * 8 + threadIdx.x] * 5 + threadIdx.x : threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(flags + block), "r"(1) : "memory");
}

/// A barrier of all blocks in a launch that is not cooperative.
__global__ void barrier_by_hand(unsigned* counters, unsigned* cells, unsigned* out, int rounds) {
    unsigned sum = 0;
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) cells[round * gridDim.x + blockIdx.x] = round + blockIdx.x * 3;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&counters[round], 1);
            while (load(&counters[round]) < gridDim.x) {
            }
            __threadfence();
        }
        __syncthreads();
        for (unsigned block = threadIdx.x; block < gridDim.x; block += blockDim.x) sum += load(&cells[round * gridDim.x + block]);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// queue: places taken, places filled, items done; then the items. An item n > 1 makes two of about half the size.
__global__ void work_queue(unsigned* queue, unsigned* out, unsigned last) {
    unsigned* items = queue + 3;
    for (;;) {
        const unsigned place = atomicAdd(&queue[0], 1);
        if (place >= last) return;
        unsigned item;
        while ((item = load(&items[place])) == 0) {
        }
        __threadfence();
        atomicAdd(&out[item % 16], item);
        if (item == 1) continue;
        const unsigned half = item / 2, first = atomicAdd(&queue[1], 2);
        store(&items[first], half);
        store(&items[first + 1], item - half);
    }
}

/// Decoupled look-back: the block's sum, then what lies before it, in the upper word 1 and 2.
__global__ void look_back(unsigned long long* status, const unsigned* in, unsigned* out) {
    __shared__ unsigned before;
    volatile unsigned long long* states = status;
    const unsigned block = blockIdx.x, value = in[block * blockDim.x + threadIdx.x];
    unsigned sum = value;
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffffu, sum, step);
        if (threadIdx.x >= step) sum += other;
    }
    if (threadIdx.x == 31) {
        states[block] = (block == 0 ? 2ull : 1ull) << 32 | sum;
        unsigned prefix = 0;
        for (int lower = int(block) - 1; lower >= 0;) {
            const unsigned long long state = states[lower];
            if (state >> 32 == 0) continue;
            prefix += unsigned(state);
            if (state >> 32 == 2) break;
            --lower;
        }
        states[block] = 2ull << 32 | (prefix + sum);
        before = prefix;
    }
    __syncwarp();
    out[block * blockDim.x + threadIdx.x] = before + sum;
}
#endif

namespace {

int wrong = 0;
void expect(bool holds, const char* what) {
    if (holds) return;
    ++wrong;
    std::printf("wrong: %s\n", what);
}

void locks() {
    const test::Buffer<unsigned> tickets(2), counted(1), lock(1), counter(1);
    const int blocks = 3, threads = 70, rounds = 2;
    LAUNCH(ticket_lock, blocks, threads, 0, tickets, counted, rounds);
    LAUNCH(try_lock, blocks, threads, 0, lock, counter, rounds);
    unsigned expected = 0;
    for (int i = 0; i < blocks * threads * rounds; ++i) expected = expected * 3 + 1;
    expect(counted.download()[0] == expected, "ticket_lock");
    expect(counter.download()[0] == unsigned(blocks * threads * rounds), "try_lock");
}

void lanes() {
    const test::Buffer<unsigned> pairs(128), chain(64);
    LAUNCH(lane_pairs, 1, 128, 0, pairs);
    LAUNCH(lane_chain, 1, 64, 0, chain);
    const std::vector<unsigned> paired = pairs.download(), chained = chain.download();
    for (unsigned t = 0; t < 128; ++t) expect(paired[t] == (t % 2 ? t + 10 : t), "lane_pairs");
    unsigned value = 5;
    for (int t = 63; t >= 0; --t) {
        expect(chained[t] == value, "lane_chain");
        value = value * 3 + t;
    }
}

void warps() {
    const int rounds = 23, blocks = 3;
    const test::Buffer<unsigned> out(blocks * 128);
    LAUNCH(warp_roles, blocks, 128, 0, out, rounds);
    const std::vector<unsigned> sums = out.download();
    for (int t = 0; t < blocks * 128; ++t) {
        const unsigned warp = t % 128 / 32, lane = t % 32;
        unsigned sum = 0;
        for (int round = 0; warp != 0 && round < rounds; ++round) sum = sum * 31 + round * 100 + (lane + warp) % 32;
        expect(sums[t] == sum, "warp_roles");
    }
}

void blocks() {
    const int count = 20, rounds = 6;
    const test::Buffer<unsigned> up_flags(count), up(count * 8), down_flags(count), down(count * 8);
    LAUNCH(block_chain, count, 64, 0, up_flags, up);
    LAUNCH(block_chain_downward, count, 64, 0, down_flags, down);
    const test::Buffer<unsigned> semaphores(count), signalled(count * 8);
    LAUNCH(semaphore_downward, count, 64, 0, semaphores, signalled);
    const std::vector<unsigned> upward = up.download(), downward = down.download(), with_semaphores = signalled.download();
    for (unsigned lane = 0; lane < 8; ++lane) {
        unsigned value = lane;
        for (int block = 0; block < count; ++block, value = value * 5 + lane) {
            expect(upward[block * 8 + lane] == value, "block_chain");
            expect(downward[(count - 1 - block) * 8 + lane] == value, "block_chain_downward");
            expect(with_semaphores[(count - 1 - block) * 8 + lane] == value, "semaphore_downward");
        }
    }
    const test::Buffer<unsigned> counters(rounds), cells(rounds * count), sums(count * 32);
    LAUNCH(barrier_by_hand, count, 32, 0, counters, cells, sums, rounds);
    unsigned expected[32] = {};
    for (int round = 0; round < rounds; ++round)
        for (int block = 0; block < count; ++block) expected[block % 32] += round + block * 3;
    const std::vector<unsigned> actual = sums.download();
    for (int t = 0; t < count * 32; ++t) expect(actual[t] == expected[t % 32], "barrier_by_hand");
}

void queue() {
    const unsigned start = 300, items = 2 * start - 1; // a binary tree with `start` leaves
    std::vector<unsigned> initial(3 + items);
    initial[1] = 1;
    initial[3] = start;
    const test::Buffer<unsigned> queue(initial), out(16);
    LAUNCH(work_queue, 6, 40, 0, queue, out, items);
    std::vector<unsigned> sums(16), left{start};
    while (!left.empty()) {
        const unsigned item = left.back();
        left.pop_back();
        sums[item % 16] += item;
        if (item == 1) continue;
        left.push_back(item / 2);
        left.push_back(item - item / 2);
    }
    expect(out.download() == sums, "work_queue");
}

void scan() {
    const int count = 100;
    test::Random random(5);
    std::vector<unsigned> in(count * 32), expected;
    for (unsigned& value : in) value = random.below(1000);
    unsigned sum = 0;
    for (unsigned value : in) expected.push_back(sum += value);
    const test::Buffer<unsigned long long> status(count);
    const test::Buffer<unsigned> input(in), output(in.size());
    LAUNCH(look_back, count, 32, 0, status, input, output);
    expect(output.download() == expected, "look_back");
}

} // namespace

int main(int argc, char** argv) {
    const test::Program program("forward_progress", argc, argv);
    locks();
    lanes();
    warps();
    blocks();
    queue();
    scan();
    return program.finish(wrong == 0, "wrong=%d", wrong);
}
