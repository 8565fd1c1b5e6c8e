// SPDX-License-Identifier: Apache-2.0
// Launches per second from several host threads on several streams: a kernel of one thread that counts, and one that
// works for some microseconds; each thread takes its streams in turn and waits for all of them every 100 launches.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

/// Each block adds one to `counter` after `rounds` rounds of a chain of multiplications.
const char* const text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry count(.param .u64 counter, .param .u32 rounds)
{
    .reg .u64 %place;
    .reg .u32 %left, %old, %one;
    .reg .f32 %value;
    .reg .pred %more, %never;
    ld.param.u64 %place, [counter];
    ld.param.u32 %left, [rounds];
    mov.f32 %value, 0f3F800000;
    mov.u32 %one, 1;
loop:
    fma.rn.f32 %value, %value, 0f3F7FFFFF, 0f33800000;
    sub.u32 %left, %left, 1;
    setp.ne.u32 %more, %left, 0;
    @%more bra loop;
    setp.gt.f32 %never, %value, 0f42000000;
    @%never mov.u32 %one, 2;
    atom.global.add.u32 %old, [%place], %one;
    ret;
}
)";

void* library = nullptr;

template <typename Signature> Signature* entry(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library, name));
}

struct Driver {
    int (*set_context)(void*) = entry<int(void*)>("cuCtxSetCurrent");
    int (*make_stream)(void**, unsigned) = entry<int(void**, unsigned)>("cuStreamCreate");
    int (*wait)(void*) = entry<int(void*)>("cuStreamSynchronize");
    int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) =
        entry<int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)>(
            "cuLaunchKernel");
    int (*allocate)(std::uint64_t*, std::size_t) = entry<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2");
    int (*fill)(std::uint64_t, unsigned char,
                std::size_t) = entry<int(std::uint64_t, unsigned char, std::size_t)>("cuMemsetD8_v2");
    int (*read)(void*, std::uint64_t, std::size_t) = entry<int(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2");
};

struct Case {
    unsigned threads, streams, blocks, rounds, launches;
};

class Concurrency {
public:
    bool prepare() {
        void *module = nullptr, *kernel = nullptr;
        if (entry<int(unsigned)>("cuInit")(0) != 0 ||
            entry<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, 0) != 0 ||
            driver_.set_context(context_) != 0)
            return false;
        if (entry<int(void**, const void*)>("cuModuleLoadData")(&module, text) != 0 ||
            entry<int(void**, void*, const char*)>("cuModuleGetFunction")(&kernel, module, "count") != 0)
            return false;
        kernel_ = kernel;
        streams_.resize(64);
        for (void*& stream : streams_)
            if (driver_.make_stream(&stream, 1) != 0) return false;
        return driver_.allocate(&counters_, counters_size()) == 0;
    }

    /// Launches per second; negative if a call fails or a count is wrong.
    double rate(const Case& way) {
        if (driver_.fill(counters_, 0, counters_size()) != 0) return -1;
        std::atomic<bool> failed{false};
        const auto start = std::chrono::steady_clock::now();
        std::vector<std::thread> threads;
        for (unsigned thread = 0; thread < way.threads; ++thread)
            threads.emplace_back([&, thread] {
                if (!work(way, thread)) failed = true;
            });
        for (std::thread& thread : threads) thread.join();
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        std::vector<std::uint32_t> counts(streams_.size());
        if (failed || driver_.read(counts.data(), counters_, counters_size()) != 0) return -1;
        std::uint64_t sum = 0;
        for (const std::uint32_t count : counts) sum += count;
        const std::uint64_t launches = std::uint64_t{way.launches} / way.threads * way.threads;
        return sum == launches * way.blocks ? static_cast<double>(launches) / elapsed.count() : -1;
    }

private:
    std::size_t counters_size() const { return streams_.size() * sizeof(std::uint32_t); }

    bool work(const Case& way, unsigned thread) {
        if (driver_.set_context(context_) != 0) return false;
        unsigned rounds = way.rounds, stream = thread % way.streams;
        const unsigned mine = way.launches / way.threads;
        for (unsigned i = 1; i <= mine; ++i) {
            std::uint64_t counter = counters_ + std::uint64_t{stream} * sizeof(std::uint32_t);
            void* parameters[] = {&counter, &rounds};
            if (driver_.launch(kernel_, way.blocks, 1, 1, 1, 1, 1, 0, streams_[stream], parameters, nullptr) != 0)
                return false;
            stream += way.threads;
            if (stream >= way.streams) stream = thread % way.streams;
            if (i % 100 != 0 && i != mine) continue;
            for (unsigned own = thread % way.streams; own < way.streams; own += way.threads)
                if (driver_.wait(streams_[own]) != 0) return false;
        }
        return true;
    }

    Driver driver_;
    void *context_ = nullptr, *kernel_ = nullptr;
    std::vector<void*> streams_;
    std::uint64_t counters_ = 0;
};

} // namespace

int main(int argc, char** argv) {
    library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
    if (!library) {
        std::fprintf(stderr, "usage: %s LIBCUDA\n", argv[0]);
        return 2;
    }
    Concurrency concurrency;
    if (!concurrency.prepare()) {
        std::fprintf(stderr, "%s: can't load a kernel with it\n", argv[1]);
        return 1;
    }
    struct Kernel {
        const char* name;
        unsigned blocks, rounds, launches;
    };
    std::printf(
        "| launches a second, median of 7 | 1 thread, 1 stream | 1, 64 | 32, 64 | 32, 1 |\n|---|---|---|---|---|\n");
    for (const Kernel& kernel : {Kernel{"1 block, empty", 1, 1, 16000}, Kernel{"1 block, 10 us", 1, 6000, 4000},
                                 Kernel{"16 blocks, 40 us", 16, 1500, 2000}}) {
        std::printf("| %-30s |", kernel.name);
        constexpr std::array<std::array<unsigned, 2>, 4> ways{{{1, 1}, {1, 64}, {32, 64}, {32, 1}}};
        std::array<std::vector<double>, ways.size()> rates;
        for (int round = 0; round < 7; ++round)
            for (std::size_t i = 0; i < ways.size(); ++i) {
                rates[i].push_back(
                    concurrency.rate({ways[i][0], ways[i][1], kernel.blocks, kernel.rounds, kernel.launches}));
                if (rates[i].back() < 0) {
                    std::printf(" WRONG |\n");
                    return 1;
                }
            }
        for (std::vector<double>& times : rates) {
            std::sort(times.begin(), times.end());
            std::printf(" %.0f |", times[times.size() / 2]);
        }
        std::printf("\n");
        std::fflush(stdout);
    }
    return 0;
}
