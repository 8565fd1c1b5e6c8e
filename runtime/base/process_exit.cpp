// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/process_exit.h"

#include <atomic>
#include <cstdlib>

namespace ptarmigan::runtime {
namespace {
std::atomic<bool> watched{false}, exits{false};
} // namespace

void watch_process_exit() {
    if (watched.exchange(true)) return;
    // Without a place for the handler unload waits, as it does before exit.
    static_cast<void>(std::atexit([] { exits.store(true); }));
}

bool process_exits() {
    return exits.load();
}

} // namespace ptarmigan::runtime
