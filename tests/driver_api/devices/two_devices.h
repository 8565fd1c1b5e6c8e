// SPDX-License-Identifier: Apache-2.0
// What the groups of questions about two devices share: devices 0 and 1 with their primary contexts.
#pragma once

#include "../answers/processes.h"

#include "runtime/shim/graph_types.h"
#include "runtime/shim/stream_types.h"
#include "runtime/shim/texture_types.h"

#include <functional>
#include <vector>

namespace devices {

using namespace answers;

constexpr std::size_t page = std::size_t{2} << 20;

/// Kernels: put(u64 to, u32 value), get(u64 from, u64 to), add(u64 to): 1,000 times by each thread, trapped().
extern const char* const text;

/// One device as these questions use it.
struct Side {
    CUcontext context{};
    CUstream stream{};
    CUevent event{};
    CUmodule module{};
    CUfunction put{}, get{}, add{};
    CUdeviceptr memory{}; ///< 4096 bytes
};

/// Both devices; context 0 is current. The process's first use of the driver.
struct Both {
    Side at[2];
    void start();
    /// Makes context `i` current.
    void use(int i) const { must("cuCtxSetCurrent", at[i].context); }
    std::string name(CUcontext context) const {
        return !context ? "none" : context == at[0].context ? "context 0" : context == at[1].context ? "context 1" : "another";
    }
    std::string current() const {
        CUcontext now{};
        must("cuCtxGetCurrent", &now);
        return name(now);
    }
    /// Launches one thread in the side's stream and waits: "launch wait".
    std::string put(int i, CUdeviceptr to, unsigned value) const;
    std::string get(int i, CUdeviceptr from) const;
};

/// The words with spaces between; they are found one after the other.
std::string list(std::initializer_list<std::string> words);
/// 1,024 words at `at`, by a copy from the host, which any context may do.
void fill(CUdeviceptr at, unsigned value);
/// The word at `at`, copied by the current context; "!code" where that fails.
std::string word(CUdeviceptr at);
/// What driver calls answer in context `i`: of synchronisation, allocation and a copy.
std::string health(const Both& both, int i);

// Groups of questions, each in a process of its own.
void ask_visible(Answers& answers);
void ask_devices(Answers& answers);
void ask_contexts(Answers& answers);
void ask_objects(Answers& answers);
void ask_memory(Answers& answers);
void ask_peers(Answers& answers);
/// `refused`: also of accesses that a GPU refuses because of whose memory it is, and Ptarmigan does not.
void ask_faults(Answers& answers, bool refused);
void ask_pools(Answers& answers);
void ask_virtual_memory(Answers& answers);
void ask_sharing(Answers& answers);

} // namespace devices
