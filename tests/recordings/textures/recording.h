// SPDX-License-Identifier: Apache-2.0
// What the recorders of textures and surfaces share: the driver, pseudo-random bits, and lists of hashes.
#pragma once

#include "runtime/shim/cuda_types.h"
#include "runtime/shim/texture_types.h"
#include "tests/recordings/random.h"

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace texture_recording {

class Random : public recordings::Random {
public:
    using recordings::Random::Random;
    /// In [0, 1), a multiple of 2^-24.
    float unit() { return float(bits() >> 40) * 0x1p-24f; }
    float between(float low, float high) { return low + unit() * (high - low); }
};

inline std::uint64_t seed_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
    return hash;
}

struct DriverError : std::runtime_error {
    DriverError(std::string_view name, int code)
        : std::runtime_error(std::string(name) + ": " + std::to_string(code)), code(code) {}
    int code;
};

/// libcuda.so.1 of a path, its primary context current.
class Driver {
public:
    explicit Driver(const char* path);
    /// Calls an entry by its exported name; throws DriverError unless it returns 0.
    template <class... Arguments> void call(const char* name, Arguments... arguments) {
        if (const int code = result<Arguments...>(name, arguments...)) throw DriverError(name, code);
    }
    template <class... Arguments> int result(const char* name, Arguments... arguments) {
        return reinterpret_cast<int (*)(Arguments...)>(entry(name))(arguments...);
    }
    CUdeviceptr upload(const void* data, std::size_t size);
    void launch(CUfunction function, unsigned blocks, unsigned threads, void** parameters);
    /// The module of a PTX text.
    CUmodule load(const std::string& text);

private:
    void* entry(const char* name);
    void* library_;
};

/// A list of lines "hash case" ("~hash": known to differ; "e801": the driver's error), and optionally a file of all
/// results: per case the number of words and the words.
class Recording {
public:
    Recording(const char* path, const std::string& option, const char* raw);
    /// Runs a case and compares or prints it. `explain` names the inputs of a word that differs.
    void take(const std::string& name, const std::function<std::vector<std::uint32_t>()>& run,
              const std::function<std::string(std::size_t)>& explain);
    /// Prints the totals; the process's exit status.
    int finish() const;

private:
    void compare(const std::string& name, const std::string& hash);
    void show(const std::string& name, const std::vector<std::uint32_t>& ours,
              const std::function<std::string(std::size_t)>& explain);
    std::map<std::string, std::string> lines_;
    std::string option_;
    std::ofstream raw_;
    std::ifstream against_;
    unsigned passed_ = 0, failed_ = 0, known_ = 0, skip_ = 0;
};

/// main() of a recorder: PROGRAM LIBCUDA RECORDING [--record | --raw FILE | --against FILE]. RECORDING_SKIP=N in the
/// environment leaves out the first N cases and appends to FILE: exit status 3 says that the context is lost behind the
/// last case printed.
int record_or_compare(int argc, char** argv, const std::function<void(Driver&, Recording&)>& run);

} // namespace texture_recording
