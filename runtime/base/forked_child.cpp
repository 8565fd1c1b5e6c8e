// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/forked_child.h"

#include <atomic>
#include <pthread.h>

namespace ptarmigan::runtime {
namespace {
std::atomic<bool> watched{false}, forked{false};
} // namespace

void watch_forks() {
    if (watched.exchange(true)) return;
    pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
}

bool is_forked_child() {
    return forked.load(std::memory_order_relaxed);
}

} // namespace ptarmigan::runtime
