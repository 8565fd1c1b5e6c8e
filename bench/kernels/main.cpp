// SPDX-License-Identifier: Apache-2.0
// Runs every case on every peer, interleaved (peer after peer, round after round), checks results before timing, and
// prints the fastest and the median run of each with ratios.
#include "bench/kernels/limits.h"
#include "bench/kernels/peers.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace bench {
namespace {

class HostPeer final : public Peer {
public:
    HostPeer(const char* name, std::function<void(std::vector<Bytes>&)> KernelCase::*form) : name_(name), form_(form) {}
    const char* name() const override { return name_; }
    bool prepare(const KernelCase& problem) override {
        problem_ = &problem;
        buffers_ = problem.buffers;
        return bool(problem.*form_);
    }
    void run() override {
        for (int i = 0; i < problem_->repeats; ++i) (problem_->*form_)(buffers_);
    }
    Bytes output() override { return buffers_[problem_->output]; }

private:
    const char* name_;
    std::function<void(std::vector<Bytes>&)> KernelCase::*form_;
    const KernelCase* problem_ = nullptr;
    std::vector<Bytes> buffers_;
};

/// Empty if `got` agrees with `expected`, else what differs.
std::string difference(const KernelCase& problem, const Bytes& expected, const Bytes& got) {
    std::size_t count = expected.size() / 4, mismatches = 0;
    if (!problem.output_is_float) {
        for (std::size_t i = 0; i < count; ++i)
            mismatches += as<std::uint32_t>(expected)[i] != as<std::uint32_t>(got)[i];
        if (mismatches <= problem.allowed_mismatches * count) return {};
        return fmt::format("{} of {} elements differ", mismatches, count);
    }
    double largest = 0, worst = 0, sum_expected = 0, sum_got = 0;
    for (std::size_t i = 0; i < count; ++i) {
        double a = as<float>(expected)[i], b = as<float>(got)[i];
        largest = std::max(largest, std::fabs(a));
        worst = std::max(worst, std::isfinite(b) ? std::fabs(a - b) : INFINITY);
        sum_expected += a;
        sum_got += b;
    }
    if (problem.reduce_output) {
        largest = std::fabs(sum_expected);
        worst = std::fabs(sum_expected - sum_got);
    }
    if (worst <= problem.tolerance * largest) return {};
    return fmt::format("largest difference {:.3g} of {:.3g}", worst, largest);
}

/// Wall time, or the CPU time of all threads: the latter stays meaningful while other processes use the machine.
double now(bool cpu_time) {
    timespec time;
    clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

double seconds(Peer& peer, bool cpu_time) {
    double start = now(cpu_time);
    peer.run();
    return now(cpu_time) - start;
}

struct Timing {
    std::string peer;
    std::vector<double> runs;
    std::string error;
    double best() const { return *std::min_element(runs.begin(), runs.end()); }
    double median() const {
        std::vector<double> sorted = runs;
        std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
        return sorted[sorted.size() / 2];
    }
};

void print_row(const KernelCase& problem, const std::vector<Timing>& timings) {
    const Timing& own = timings.front();
    if (!own.error.empty() || own.runs.empty()) {
        fmt::print("| {:<15} | WRONG: {} |\n", problem.name, own.error);
        return;
    }
    double per_launch = own.best() / problem.repeats;
    fmt::print("| {:<15} | {:>9.3f} | {:>9.3f} | {:>8.1f} {:<9} |", problem.name, per_launch * 1e3,
               own.median() / problem.repeats * 1e3, problem.work / per_launch, problem.unit);
    for (std::size_t i = 1; i < timings.size(); ++i) {
        const Timing& other = timings[i];
        if (!other.error.empty())
            fmt::print(" {:>18} |", "wrong");
        else if (other.runs.empty())
            fmt::print(" {:>18} |", "-");
        else
            fmt::print(" {:>9.3f} {:>7.2f}x |", other.best() / problem.repeats * 1e3, other.best() / own.best());
    }
    fmt::print("\n");
    std::fflush(stdout);
}

} // namespace

std::unique_ptr<Peer> make_openmp_peer() {
    return std::make_unique<HostPeer>("OpenMP C++", &KernelCase::openmp);
}
std::unique_ptr<Peer> make_blas_peer() {
    return std::make_unique<HostPeer>("OpenBLAS", &KernelCase::blas);
}
std::unique_ptr<Peer> make_lanes_peer() {
    return std::make_unique<HostPeer>("SIMD C++", &KernelCase::lanes);
}

} // namespace bench

int main(int argc, char** argv) {
    using namespace bench;
    CLI::App app("Times the benchmark kernels on Ptarmigan and its peers, interleaved in one run.");
    std::string library, folder, only;
    int rounds = 9, scale = 1;
    bool cpu_time = false, alone = false;
    app.add_option("--libcuda", library, "Driver library to load")->required();
    app.add_option("--kernels", folder, "Folder with kernels.ptx and kernels.cl")->required();
    app.add_option("--rounds", rounds, "Timed rounds")->check(CLI::PositiveNumber);
    app.add_option("--scale", scale, "Divide the problem sizes by this")->check(CLI::PositiveNumber);
    app.add_option("--only", only, "Only cases whose name contains this text");
    app.add_flag("--cpu-time", cpu_time, "Measure CPU time of all threads instead of wall time");
    app.add_flag("--alone", alone, "Time Ptarmigan only; results are still checked against the OpenMP form");
    CLI11_PARSE(app, argc, argv);

    setenv("PTARMIGAN_TIER", "best", 0); // what is timed is good code, from the first round on
    std::vector<std::unique_ptr<Peer>> peers;
    try {
        peers.push_back(make_cuda_peer(library, folder + "/kernels.ptx"));
        if (!alone) peers.push_back(make_openmp_peer());
#ifdef PTARMIGAN_BENCH_OPENCL
        try {
            if (!alone) peers.push_back(make_opencl_peer(folder));
        } catch (const std::exception& error) {
            fmt::print(stderr, "no OpenCL peer: {}\n", error.what());
        }
#endif
#ifdef PTARMIGAN_BENCH_LANES
        if (!alone) peers.push_back(make_lanes_peer());
#endif
#ifdef PTARMIGAN_BENCH_OPENBLAS
        if (!alone) peers.push_back(make_blas_peer());
#endif
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    fmt::print(
        "{} in ms per launch, fastest of {} interleaved rounds; a ratio above 1 means that Ptarmigan is faster.\n\n",
        cpu_time ? "CPU times" : "Times", rounds);
    MachineLimits limits = measure_limits();
    fmt::print("The machine's limits: {:.0f} GFLOP/s of f32 FMA, {:.1f} GB/s of triad over 3 x 64 MiB.\n\n",
               limits.fma_gflops, limits.triad_gbytes);
    fmt::print("| {:<15} | {:>9} | {:>9} | {:>18} |", "kernel", "ptarmigan", "median", "rate");
    for (std::size_t i = 1; i < peers.size(); ++i) fmt::print(" {:>10} / ours   |", peers[i]->name());
    fmt::print("\n|---|---|---|---|");
    for (std::size_t i = 1; i < peers.size(); ++i) fmt::print("---|");
    fmt::print("\n");
    bool all_right = true;
    for (const KernelCase& problem : all_cases(scale)) {
        if (!only.empty() && problem.name.find(only) == std::string::npos) continue;
        // The expected result: one launch of the OpenMP form on fresh buffers.
        std::vector<Bytes> reference = problem.buffers;
        for (int i = 0; i < problem.repeats; ++i) problem.openmp(reference);
        std::vector<Timing> timings;
        std::vector<Peer*> ready;
        for (auto& peer : peers) {
            Timing timing{peer->name(), {}, {}};
            Peer* usable = nullptr;
            try {
                if (peer->prepare(problem)) {
                    peer->run();
                    timing.error = difference(problem, reference[problem.output], peer->output());
                    usable = peer.get();
                }
            } catch (const std::exception& error) {
                timing.error = error.what();
            }
            ready.push_back(timing.error.empty() ? usable : nullptr);
            timings.push_back(std::move(timing));
        }
        for (int round = 0; round < rounds; ++round)
            for (std::size_t i = 0; i < ready.size(); ++i)
                if (ready[i]) timings[i].runs.push_back(seconds(*ready[i], cpu_time));
        all_right &= timings.front().error.empty();
        print_row(problem, timings);
    }
    return all_right ? 0 : 1;
}
