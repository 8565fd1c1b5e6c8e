// SPDX-License-Identifier: Apache-2.0
// Processes whose calls another process has locked (cuCheckpointProcess*), so that what keeps and moves processes finds
// them at rest. The state is in the page that tells of a process's use of its devices.
#pragma once

#include "runtime/base/status.h"

#include <atomic>
#include <cstdint>

namespace ptarmigan::runtime {

/// CUprocessState.
enum class ProcessState : std::uint32_t { running = 0, locked = 1, checkpointed = 2 };

/// The word of this process's state as its page has it: 0 before cuInit, else the state and 1.
struct OwnProcess {
    static inline const std::atomic<std::uint32_t> none{0};
    static inline std::atomic<const std::atomic<std::uint32_t>*> word{&none};
    static bool is_locked() { return word.load(std::memory_order_acquire)->load(std::memory_order_acquire) > 1; }
    /// The driver is in use from now on.
    static void begin();
    /// Returns when the process is not locked any more.
    static void wait();
};

/// operating_system if there is no such process, not_initialized if it does not use the driver.
Status process_state(int process, ProcessState& state);
/// illegal_state if the process is not in the state `from`.
Status change_process_state(int process, ProcessState from, ProcessState to);

} // namespace ptarmigan::runtime
