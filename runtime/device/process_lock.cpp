// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/process_lock.h"

#include "runtime/base/shared_pages.h"
#include "runtime/device/device_use.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint32_t word_of(ProcessState state) {
    return static_cast<std::uint32_t>(state) + 1;
}

/// On a word that processes share.
void futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
    syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

/// Calls act(word) on the state of a process.
template <class Act> Status with_state(int process, Act&& act) {
    if (process <= 0 || (kill(process, 0) != 0 && errno != EPERM)) return Status::operating_system;
    const FileDescriptor file = open_device_use(static_cast<std::uint32_t>(process));
    if (!file) return Status::not_initialized;
    void* memory = mmap(nullptr, sizeof(DeviceUsePage), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return Status::not_initialized;
    std::atomic<std::uint32_t>& word = static_cast<DeviceUsePage*>(memory)->state;
    const Status status = word.load(std::memory_order_acquire) == 0 ? Status::not_initialized : act(word);
    munmap(memory, sizeof(DeviceUsePage));
    return status;
}

} // namespace

void OwnProcess::begin() {
    std::atomic<std::uint32_t>& state = own_device_use_page().state;
    state.store(word_of(ProcessState::running), std::memory_order_release);
    word.store(&state, std::memory_order_release);
}

void OwnProcess::wait() {
    const std::atomic<std::uint32_t>& state = *word.load(std::memory_order_acquire);
    for (std::uint32_t now = state.load(std::memory_order_acquire); now > word_of(ProcessState::running);
         now = state.load(std::memory_order_acquire))
        futex(state, FUTEX_WAIT, now);
}

Status process_state(int process, ProcessState& state) {
    return with_state(process, [&](const std::atomic<std::uint32_t>& word) {
        state = static_cast<ProcessState>(word.load(std::memory_order_acquire) - 1);
        return Status::success;
    });
}

Status change_process_state(int process, ProcessState from, ProcessState to) {
    return with_state(process, [&](std::atomic<std::uint32_t>& word) {
        std::uint32_t expected = word_of(from);
        if (!word.compare_exchange_strong(expected, word_of(to))) return Status::illegal_state;
        futex(word, FUTEX_WAKE, INT_MAX);
        return Status::success;
    });
}

} // namespace ptarmigan::runtime
