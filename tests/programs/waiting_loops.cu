// SPDX-License-Identifier: Apache-2.0
// Loops that wait, in the less usual shapes: locks of every atomic, reads by atomics that change nothing, polls of one place
// after the other, state machines. Each kernel would hang, or give up waiting, on a machine that takes one of them for a
// loop over data.
#include "common/program.h"

KERNEL void lock_or(unsigned* lock, unsigned* counter);
KERNEL void lock_or_64(unsigned long long* lock, unsigned* counter);
KERNEL void lock_or_sleeping(unsigned* lock, unsigned* counter);
KERNEL void lock_max(unsigned* lock, unsigned* counter);
KERNEL void lock_and(unsigned* lock, unsigned* counter);
KERNEL void lock_add_and_undo(unsigned* lock, unsigned* counter);
KERNEL void semaphore(int* places, unsigned* counter);
KERNEL void sequence_lock(unsigned* sequence, unsigned* counter);
KERNEL void lock_in_turn(unsigned* locks, unsigned* counters);
KERNEL void sum_of_four(unsigned* numbers);
KERNEL void read_by_and(unsigned* flags, unsigned* out);
KERNEL void read_by_max(int* flags, unsigned* out);
KERNEL void read_by_cas(unsigned* flags, unsigned* out);
KERNEL void flags_in_turn(unsigned* flags, unsigned* out);
KERNEL void growing_list(unsigned* next, unsigned* out, int length);
KERNEL void growing_queue(unsigned* queue, unsigned* out, int length);
KERNEL void moving_flag(unsigned* flags, unsigned* place, unsigned* out);
KERNEL void lock_add(unsigned* lock, unsigned* counter);
KERNEL void take_or_leave(unsigned* places, unsigned* counter);
KERNEL void flags_of_all(unsigned* flags, unsigned* out);
KERNEL void counted_looks(unsigned* flags, unsigned* out);
KERNEL void handed_on(unsigned* flags, unsigned* out);
KERNEL void plain_list(unsigned* next, unsigned* out, int length);
KERNEL void two_locks(unsigned* locks, unsigned* counters, int number);
KERNEL void state_machine(unsigned* mail, unsigned* out);

#ifdef __CUDACC__
__device__ unsigned load(const unsigned* place) { return *reinterpret_cast<const volatile unsigned*>(place); }
__device__ void store(unsigned* place, unsigned value) { *reinterpret_cast<volatile unsigned*>(place) = value; }

__device__ void count(unsigned* counter) {
    __threadfence();
    store(counter, load(counter) + 1);
    __threadfence();
}

__global__ void lock_or(unsigned* lock, unsigned* counter) {
    while (atomicOr(lock, 1u) & 1u) {
    }
    count(counter);
    atomicAnd(lock, ~1u);
}

__global__ void lock_or_64(unsigned long long* lock, unsigned* counter) {
    for (bool done = false; !done;) {
        if (atomicOr(lock, 1ull) & 1ull) continue;
        count(counter);
        atomicAnd(lock, ~1ull);
        done = true;
    }
}

__global__ void lock_or_sleeping(unsigned* lock, unsigned* counter) {
    while (atomicOr(lock, 4u) & 4u) __nanosleep(50);
    count(counter);
    atomicAnd(lock, ~4u);
}

__global__ void lock_max(unsigned* lock, unsigned* counter) {
    while (atomicMax(lock, 1u) != 0) {
    }
    count(counter);
    atomicExch(lock, 0u);
}

/// Free while the bit is set.
__global__ void lock_and(unsigned* lock, unsigned* counter) {
    while ((atomicAnd(lock, ~1u) & 1u) == 0) {
    }
    count(counter);
    atomicOr(lock, 1u);
}

__global__ void lock_add_and_undo(unsigned* lock, unsigned* counter) {
    while (atomicAdd(lock, 1u) != 0) atomicSub(lock, 1u);
    count(counter);
    atomicSub(lock, 1u);
}

__global__ void semaphore(int* places, unsigned* counter) {
    while (atomicAdd(places, -1) <= 0) atomicAdd(places, 1);
    count(counter);
    atomicAdd(places, 1);
}

/// Odd while somebody writes. What is expected follows from the last value.
__global__ void sequence_lock(unsigned* sequence, unsigned* counter) {
    unsigned last = load(sequence), expected;
    do {
        expected = last & ~1u;
        last = atomicCAS(sequence, expected, expected + 1);
    } while (last != expected);
    count(counter);
    __threadfence();
    store(sequence, expected + 2);
}

__global__ void lock_in_turn(unsigned* locks, unsigned* counters) {
    unsigned i = threadIdx.x % 4;
    while (atomicCAS(&locks[i], 0u, 1u) != 0) i = (i + 1) % 4;
    count(&counters[i]);
    atomicExch(&locks[i], 0u);
}

/// Given back behind the loop.
__global__ void lock_add(unsigned* lock, unsigned* counter) {
    while (atomicAdd(lock, 1u) != 0) {
    }
    count(counter);
    atomicExch(lock, 0u);
}

/// Writes back what it saw where there is nothing to take.
__global__ void take_or_leave(unsigned* places, unsigned* counter) {
    unsigned seen = load(places);
    for (;;) {
        const unsigned wanted = seen > 0 ? seen - 1 : 0;
        const unsigned found = atomicCAS(places, seen, wanted);
        if (found == seen && seen > 0) break;
        seen = found;
    }
    count(counter);
    atomicAdd(places, 1u);
}

/// Who took which lock is different from run to run.
__global__ void sum_of_four(unsigned* numbers) {
    for (int i = 1; i < 4; ++i) {
        numbers[0] += numbers[i];
        numbers[i] = 0;
    }
}

/// Each thread waits for the next one's flag. `read` reads flags[i].
template <class Flag, class Read> __device__ void chain(Flag* flags, unsigned* out, Read read) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned seen;
    while ((seen = unsigned(read(&flags[t + 1]))) == 0) {
    }
    out[t] = seen;
    atomicExch(&flags[t], Flag(seen + 1));
}
__global__ void read_by_and(unsigned* flags, unsigned* out) {
    chain(flags, out, [](unsigned* flag) { return atomicAnd(flag, ~0u); });
}
__global__ void read_by_max(int* flags, unsigned* out) {
    chain(flags, out, [](int* flag) { return atomicMax(flag, int(0x80000000u)); });
}
__global__ void read_by_cas(unsigned* flags, unsigned* out) {
    chain(flags, out, [](unsigned* flag) { return atomicCAS(flag, 77u, 77u); });
}

/// The first thread takes what the others bring, in whatever order they come.
__global__ void flags_in_turn(unsigned* flags, unsigned* out) {
    const unsigned others = gridDim.x * blockDim.x - 1, t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t > 0) {
        store(&flags[t - 1], t);
        return;
    }
    unsigned sum = 0, taken = 0;
    for (unsigned i = 0; taken < others; i = i + 1 == others ? 0 : i + 1) {
        const unsigned flag = load(&flags[i]);
        if (flag == 0) continue;
        sum += flag;
        ++taken;
        store(&flags[i], 0);
    }
    *out = sum;
}

/// The last thread walks along a list of which the others make the links.
__global__ void growing_list(unsigned* next, unsigned* out, int length) {
    const int threads = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t == threads - 1) {
        unsigned node = 0, steps = 0;
        while (node + 1 != unsigned(length)) {
            const unsigned following = load(&next[node]);
            if (following == 0) continue;
            node = following;
            ++steps;
        }
        *out = steps;
    } else {
        for (int i = t; i < length - 1; i += threads - 1) store(&next[i], i + 1);
    }
}

/// queue: what was taken, what was put; then the items. The first thread puts, its neighbours take.
__global__ void growing_queue(unsigned* queue, unsigned* out, int length) {
    unsigned* items = queue + 2;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (int i = 0; i < length; ++i) {
            store(&items[i], i + 1);
            __threadfence();
            store(&queue[1], i + 1);
        }
        return;
    }
    for (;;) {
        const unsigned head = load(&queue[0]);
        if (head == unsigned(length)) return;
        if (head >= load(&queue[1]) || atomicCAS(&queue[0], head, head + 1) != head) continue;
        __threadfence();
        atomicAdd(out, load(&items[head]));
    }
}

/// Where the flag is, the first thread is told meanwhile.
__global__ void moving_flag(unsigned* flags, unsigned* place, unsigned* out) {
    const unsigned last = gridDim.x * blockDim.x - 1, t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t == 0) {
        unsigned value;
        while ((value = load(&flags[load(place)])) == 0) {
        }
        *out = value;
    } else if (t == last) {
        store(place, 3);
        __threadfence();
        store(&flags[3], 42);
    }
}

/// Each block waits for the flags of all, one after the other; they are written before the loop only.
__global__ void flags_of_all(unsigned* flags, unsigned* out) {
    if (threadIdx.x == 0) {
        store(&flags[blockIdx.x], 1);
        for (unsigned i = 0; i < gridDim.x;)
            if (load(&flags[i]) != 0) ++i;
        atomicAdd(out, 1u);
    }
}

/// The last block writes; the others look so many times, and no more.
__global__ void counted_looks(unsigned* flags, unsigned* out) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == gridDim.x - 1) atomicExch(flags, 1u);
    int looks = 0;
    while (looks < 200000000 && __ldcv(flags) == 0) ++looks;
    if (looks < 200000000) atomicAdd(out, 1u);
}

/// The first thread of a block looks at what the last block writes, by plain loads, and tells the others.
__global__ void handed_on(unsigned* flags, unsigned* out) {
    __shared__ unsigned seen;
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) atomicExch(flags, 1u);
    for (;;) {
        if (threadIdx.x == 0) {
            __threadfence();
            seen = *flags;
        }
        __syncthreads();
        const unsigned all_see = seen;
        __syncthreads();
        if (all_see != 0) break;
    }
    atomicAdd(out, 1u);
}

/// growing_list by plain loads between fences.
__global__ void plain_list(unsigned* next, unsigned* out, int length) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == gridDim.x - 1)
        for (int i = 0; i + 1 < length; ++i) {
            __threadfence();
            next[i] = i + 1;
        }
    if (blockIdx.x != 0) return;
    unsigned at = 0;
    while (at != static_cast<unsigned>(length) - 1) {
        __threadfence();
        const unsigned following = next[at];
        if (following != 0) at = following;
    }
    *out = at;
}

/// Who gets one lock and not the other gives back what it has. Lanes in step would all take their first for ever.
__global__ void two_locks(unsigned* locks, unsigned* counters, int number) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x, a = t % number, c = (t * 3 + 1) % number;
    const int b = a == c ? (c + 1) % number : c;
    for (bool done = false; !done;) {
        if (atomicCAS(&locks[a], 0u, 1u) != 0) continue;
        if (atomicCAS(&locks[b], 0u, 1u) == 0) {
            count(&counters[a]);
            count(&counters[b]);
            done = true;
            atomicExch(&locks[b], 0u);
        }
        atomicExch(&locks[a], 0u);
    }
}

/// It gives up after a while, which a posted mail must prevent.
__global__ void state_machine(unsigned* mail, unsigned* out) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t % 2 == 1) {
        store(&mail[t / 2], 1);
        return;
    }
    const long long start = clock64();
    int state = 0;
    while (state == 0) {
        if (load(&mail[t / 2]))
            state = 1;
        else if (clock64() - start > 20000000000ll)
            state = 2;
    }
    out[t / 2] = state;
}
#endif

namespace {

constexpr int blocks = 3, threads = 70, all = blocks * threads;
int wrong = 0;
void expect(bool holds, const char* what) {
    if (holds) return;
    ++wrong;
    std::printf("wrong: %s\n", what);
}

#define LOCK(kernel, threads, type, ...)                              \
    {                                                                 \
        const test::Buffer<type> lock(std::vector<type> __VA_ARGS__); \
        const test::Buffer<unsigned> counter(4);                      \
        LAUNCH(kernel, blocks, threads, 0, lock, counter);            \
        LAUNCH(sum_of_four, 1, 1, 0, counter);                        \
        expect(counter.download()[0] == blocks * threads, #kernel);   \
    }

void locks() {
    LOCK(lock_or, threads, unsigned, {0})
    LOCK(lock_or_64, threads, unsigned long long, {0})
    LOCK(lock_or_sleeping, threads, unsigned, {0})
    LOCK(lock_max, threads, unsigned, {0})
    LOCK(lock_and, threads, unsigned, {1})
    // Few threads: the more of them take back what they did, the rarer nobody has done it.
    LOCK(lock_add_and_undo, 2, unsigned, {0})
    LOCK(semaphore, 2, int, {1})
    LOCK(sequence_lock, threads, unsigned, {0})
    LOCK(lock_add, threads, unsigned, {0})
    LOCK(take_or_leave, threads, unsigned, {1})
    LOCK(lock_in_turn, threads, unsigned, {0, 0, 0, 0})
    const int number = 11;
    const test::Buffer<unsigned> pairs(number), counters(number);
    LAUNCH(two_locks, blocks, threads, 0, pairs, counters, number);
    unsigned sum = 0;
    for (const unsigned value : counters.download()) sum += value;
    expect(sum == 2 * all, "two_locks");
}

#define CHAIN(kernel, type)                                                                        \
    {                                                                                              \
        std::vector<type> initial(all + 1);                                                        \
        initial[all] = 5;                                                                          \
        const test::Buffer<type> flags(initial);                                                   \
        const test::Buffer<unsigned> out(all);                                                     \
        LAUNCH(kernel, blocks, threads, 0, flags, out);                                            \
        const std::vector<unsigned> seen = out.download();                                         \
        for (int t = 0; t < all; ++t) expect(seen[t] == 5u + unsigned(all - 1 - t), #kernel);      \
    }

void reads() {
    CHAIN(read_by_and, unsigned)
    CHAIN(read_by_max, int)
    CHAIN(read_by_cas, unsigned)
}

void places() {
    const int length = 2000;
    const test::Buffer<unsigned> flags(all), sum(1), next(length), steps(1), queue(length + 2), taken(1), spots(8), place(1), value(1);
    LAUNCH(flags_in_turn, blocks, threads, 0, flags, sum);
    expect(sum.download()[0] == unsigned(all * (all - 1) / 2), "flags_in_turn");
    LAUNCH(growing_list, blocks, threads, 0, next, steps, length);
    expect(steps.download()[0] == unsigned(length - 1), "growing_list");
    LAUNCH(growing_queue, blocks, threads, 0, queue, taken, length);
    expect(taken.download()[0] == unsigned(length) * (length + 1) / 2, "growing_queue");
    LAUNCH(moving_flag, blocks, threads, 0, spots, place, value);
    expect(value.download()[0] == 42, "moving_flag");
}

void grids() {
    const int many = 20;
    const test::Buffer<unsigned> flags(many), passed(1), flag(1), seen(1);
    LAUNCH(flags_of_all, many, 32, 0, flags, passed);
    expect(passed.download()[0] == unsigned(many), "flags_of_all");
    LAUNCH(counted_looks, many, 32, 0, flag, seen);
    expect(seen.download()[0] == unsigned(many), "counted_looks");
    const int length = 2000;
    const test::Buffer<unsigned> word(1), told(1), next(length), end(1);
    LAUNCH(handed_on, many, 32, 0, word, told);
    expect(told.download()[0] == unsigned(many) * 32, "handed_on");
    LAUNCH(plain_list, blocks, 32, 0, next, end, length);
    expect(end.download()[0] == unsigned(length) - 1, "plain_list");
}

void states() {
    const test::Buffer<unsigned> mail(all / 2), out(all / 2);
    LAUNCH(state_machine, blocks, threads, 0, mail, out);
    expect(out.download() == std::vector<unsigned>(all / 2, 1), "state_machine");
}

} // namespace

int main(int argc, char** argv) {
    const test::Program program("waiting_loops", argc, argv);
    locks();
    reads();
    places();
    grids();
    states();
    return program.finish(wrong == 0, "wrong=%d", wrong);
}
