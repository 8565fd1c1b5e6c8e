// SPDX-License-Identifier: Apache-2.0
// NVIDIA's NCCL over two devices: `nccl_program LIBNCCL start` makes communicators in one process, `one|two` runs
// collectives in one process or two.
// libcuda.so.1 and libnvidia-ml.so.1 are what the loader finds.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

void* nccl = nullptr;
void* cuda = nullptr;
int failures = 0;

template <class... Arguments> void must(void* library, const char* name, Arguments... arguments) {
    void* entry = dlsym(library, name);
    const int result = entry ? reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...) : -1;
    if (result == 0) return;
    std::printf("%s: %d\n", name, result);
    std::_Exit(1);
}

struct UniqueId {
    char bytes[128];
};

constexpr std::size_t count = 100'000;
constexpr int float32 = 7, sum = 0, maximum = 2;

/// A rank and what it has on its device.
struct Rank {
    int number = 0;
    void *context = nullptr, *stream = nullptr, *communicator = nullptr;
    std::uint64_t from = 0, to = 0;

    void start(int its_number) {
        number = its_number;
        must(cuda, "cuInit", 0u);
        must(cuda, "cuDevicePrimaryCtxRetain", &context, number);
        use();
        must(cuda, "cuStreamCreate", &stream, 1u);
        must(cuda, "cuMemAlloc_v2", &from, 2 * count * sizeof(float));
        must(cuda, "cuMemAlloc_v2", &to, 2 * count * sizeof(float));
    }
    void use() const { must(cuda, "cuCtxSetCurrent", context); }
    static float value(int rank, std::size_t i) { return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 3) % 1000); }
    void fill() const {
        std::vector<float> values(2 * count);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(number, i);
        use();
        must(cuda, "cuMemcpyHtoD_v2", from, static_cast<const void*>(values.data()), values.size() * sizeof(float));
        must(cuda, "cuMemsetD8_v2", to, static_cast<unsigned char>(0xff), values.size() * sizeof(float));
        must(cuda, "cuCtxSynchronize");
    }
    /// expected(i) for the first `size` elements of `to`.
    template <class Expected> void check(const char* what, std::size_t size, Expected&& expected) const {
        use();
        must(cuda, "cuStreamSynchronize", stream);
        std::vector<float> got(size);
        must(cuda, "cuMemcpyDtoH_v2", static_cast<void*>(got.data()), to, size * sizeof(float));
        for (std::size_t i = 0; i < size; ++i)
            if (got[i] != expected(i)) {
                std::printf("%s: rank %d has %g at %zu, not %g\n", what, number, static_cast<double>(got[i]), i, static_cast<double>(expected(i)));
                ++failures;
                return;
            }
        std::printf("%s: rank %d is right\n", what, number);
    }
};

/// Communicators know themselves; then their end.
void check_communicators(std::vector<Rank>& ranks, int all) {
    for (const Rank& rank : ranks) {
        int size = -1, number = -1, device = -1;
        rank.use();
        must(nccl, "ncclCommCount", rank.communicator, &size);
        must(nccl, "ncclCommUserRank", rank.communicator, &number);
        must(nccl, "ncclCommCuDevice", rank.communicator, &device);
        const bool right = size == all && number == rank.number && device == rank.number;
        std::printf("rank %d of %d on device %d%s\n", number, size, device, right ? "" : ": wrong");
        failures += !right;
    }
    for (const Rank& rank : ranks) must(nccl, "ncclCommDestroy", rank.communicator);
}

/// The ranks of this process, of `all`.
void run(std::vector<Rank>& ranks, int all) {
    const auto together = [&](auto&& each) {
        for (const Rank& rank : ranks) rank.fill();
        must(nccl, "ncclGroupStart");
        for (const Rank& rank : ranks) each(rank);
        must(nccl, "ncclGroupEnd");
    };
    const auto void_of = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
    together([&](const Rank& r) {
        must(nccl, "ncclAllReduce", static_cast<const void*>(void_of(r.from)), void_of(r.to), count, float32, sum, r.communicator, r.stream);
    });
    for (const Rank& rank : ranks)
        rank.check("all-reduce of sums", count, [&](std::size_t i) {
            float total = 0;
            for (int of = 0; of < all; ++of) total += Rank::value(of, i);
            return total;
        });
    together([&](const Rank& r) {
        must(nccl, "ncclAllReduce", static_cast<const void*>(void_of(r.from)), void_of(r.to), std::size_t{5}, float32, maximum, r.communicator, r.stream);
    });
    for (const Rank& rank : ranks)
        rank.check("all-reduce of maxima", 5, [&](std::size_t i) {
            float most = 0;
            for (int of = 0; of < all; ++of) most = Rank::value(of, i) > most ? Rank::value(of, i) : most;
            return most;
        });
    together([&](const Rank& r) {
        must(nccl, "ncclAllGather", static_cast<const void*>(void_of(r.from)), void_of(r.to), count, float32, r.communicator, r.stream);
    });
    for (const Rank& rank : ranks)
        rank.check("all-gather", 2 * count, [](std::size_t i) { return Rank::value(static_cast<int>(i / count), i % count); });
    together([&](const Rank& r) {
        must(nccl, "ncclReduceScatter", static_cast<const void*>(void_of(r.from)), void_of(r.to), count, float32, sum, r.communicator, r.stream);
    });
    for (const Rank& rank : ranks)
        rank.check("reduce-scatter", count, [&](std::size_t i) {
            return Rank::value(0, i + static_cast<std::size_t>(rank.number) * count) + Rank::value(1, i + static_cast<std::size_t>(rank.number) * count);
        });
    together([&](const Rank& r) {
        must(nccl, "ncclBroadcast", static_cast<const void*>(void_of(r.from)), void_of(r.to), count, float32, 1, r.communicator, r.stream);
    });
    for (const Rank& rank : ranks) rank.check("broadcast", count, [](std::size_t i) { return Rank::value(1, i); });
    together([&](const Rank& r) {
        const int peer = (r.number + 1) % all;
        must(nccl, "ncclSend", static_cast<const void*>(void_of(r.from)), count, float32, peer, r.communicator, r.stream);
        must(nccl, "ncclRecv", void_of(r.to), count, float32, peer, r.communicator, r.stream);
    });
    for (const Rank& rank : ranks)
        rank.check("send and receive", count, [&](std::size_t i) { return Rank::value((rank.number + 1) % all, i); });
    for (const Rank& rank : ranks) must(nccl, "ncclCommDestroy", rank.communicator);
}

int in_one_process(bool starts_only) {
    std::vector<Rank> ranks(2);
    for (int i = 0; i < 2; ++i) ranks[static_cast<std::size_t>(i)].start(i);
    void* communicators[2] = {};
    const int devices[] = {0, 1};
    must(nccl, "ncclCommInitAll", &communicators[0], 2, &devices[0]);
    for (std::size_t i = 0; i < 2; ++i) ranks[i].communicator = communicators[i];
    starts_only ? check_communicators(ranks, 2) : run(ranks, 2);
    return failures != 0;
}

int in_two_processes() {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    const pid_t child = fork();
    const int number = child == 0;
    UniqueId id;
    if (number == 0) {
        must(nccl, "ncclGetUniqueId", &id);
        if (write(ends[1], &id, sizeof id) != sizeof id) return 1;
    } else if (read(ends[0], &id, sizeof id) != sizeof id) {
        return 1;
    }
    std::vector<Rank> ranks(1);
    ranks[0].start(number);
    must(nccl, "ncclCommInitRank", &ranks[0].communicator, 2, id, number);
    run(ranks, 2);
    int status = 0;
    if (number == 0) waitpid(child, &status, 0);
    return failures != 0 || status != 0;
}

} // namespace

int main(int words, char** word) {
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    nccl = words == 3 ? dlopen(word[1], RTLD_NOW) : nullptr;
    if (!cuda || !nccl) {
        std::printf("%s\n", words == 3 ? dlerror() : "nccl_program LIBNCCL start|one|two");
        return 1;
    }
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const std::string mode = word[2];
    return mode == "two" ? in_two_processes() : in_one_process(mode == "start");
}
