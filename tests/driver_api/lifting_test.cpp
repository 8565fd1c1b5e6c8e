// SPDX-License-Identifier: Apache-2.0
// When kernels of machine code are lifted: at their first launch, each once, by the thread that launches it; not when the
// module is loaded or a kernel's attributes are asked for, and not where the cache has their code. In processes of their
// own, which say in the log what they lift.
#include "driver.h"
#include "fault_child.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned blocks = 4, threads = 256;
constexpr int shared_size = 1, register_count = 4; ///< CUfunction_attribute

void say(const char* word) {
    const ssize_t written = write(STDERR_FILENO, word, std::string(word).size());
    if (written < 0) std::abort();
}

/// Loads a module of three kernels, asks what is known of them, and launches two of them from a thread each.
int use() {
    CUmodule module = nullptr;
    const CUcontext context = driver_test::begin_on(0);
    if (!context || cuModuleLoad(&module, PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/combined_atomics.sm_90.cubin")) return 1;
    say("\nloaded\n");
    std::array<CUfunction, 3> kernels{};
    const char* names[] = {"narrower_branches", "behind_votes", "use_managed"};
    for (unsigned i = 0; i < 3; ++i) {
        int registers = 0, shared = -1;
        if (cuModuleGetFunction(&kernels[i], module, names[i])) return 2;
        if (cuFuncGetAttribute(&registers, register_count, kernels[i]) || registers < 8) return 3;
        if (cuFuncGetAttribute(&shared, shared_size, kernels[i]) || shared < 0) return 4;
    }
    say("\nasked\n");
    std::array<int, 2> codes{-1, -1};
    const auto launch = [&](unsigned i) {
        constexpr std::size_t bytes = 4 * blocks * threads;
        CUdeviceptr in = 0, out = 0;
        if (cuCtxSetCurrent(context) || cuMemAlloc_v2(&in, bytes) || cuMemAlloc_v2(&out, bytes) || cuMemsetD8_v2(in, 1, bytes)) return;
        std::array<void*, 2> parameters{&in, &out};
        for (unsigned round = 0; round < 3; ++round)
            if (cuLaunchKernel(kernels[i], blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters.data(), nullptr)) return;
        codes[i] = cuCtxSynchronize();
    };
    std::thread first(launch, 0), second(launch, 1);
    first.join();
    second.join();
    return codes[0] || codes[1] ? 5 : 0;
}

/// How often `part` stands in the text from `begin` on.
std::size_t count(const std::string& text, const std::string& part, std::size_t begin = 0) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part, begin); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
}

} // namespace

TEST_CASE("fault: lifting", "[.]") {
    std::string folder = std::filesystem::temp_directory_path() / "ptarmigan-lifting-XXXXXX";
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    const auto say_again = [&] {
        return driver_test::said_by_child([&] {
            setenv("PTARMIGAN_LOG", "info", 1);
            setenv("PTARMIGAN_CACHE_DIR", folder.c_str(), 1);
            setenv("PTARMIGAN_CACHE", "on", 1);
            setenv("PTARMIGAN_TIER", "quick", 1);
            return use();
        });
    };
    const std::string said = say_again();
    INFO(said);
    const std::size_t loaded = said.find("\nloaded\n"), asked = said.find("\nasked\n");
    REQUIRE(asked != said.npos);
    REQUIRE(loaded < asked);
    CHECK(count(said, "code 0\n") == 1);
    const std::size_t lifted = said.find(" lifted to ");
    CHECK(lifted > asked);
    CHECK(count(said, " lifted to ") == 2);
    CHECK(count(said, "kernel narrower_branches: machine code of sm_90 lifted to ") == 1);
    CHECK(count(said, "kernel behind_votes: machine code of sm_90 lifted to ") == 1);
    const std::string later = say_again();
    INFO(later);
    CHECK(count(later, "code 0\n") == 1);
    CHECK(count(later, " lifted to ") == 0);
    CHECK(count(later, "read from the cache") == 2);
    std::filesystem::remove_all(folder);
}
