// SPDX-License-Identifier: Apache-2.0
#include "runtime/context/peer_access.h"

#include "runtime/context/context.h"

#include <algorithm>

namespace ptarmigan::runtime {

PeerAccess& PeerAccess::get() {
    static auto* access = new PeerAccess; // never destroyed: programs call in from their exit handlers
    return *access;
}

Status PeerAccess::enable(const Context& from, const Context& peer) {
    if (from.device() == peer.device()) return Status::peer_access_unsupported;
    std::lock_guard lock(mutex_);
    const auto same = [&](const Pair& pair) { return pair.from == &from && pair.peer == &peer; };
    if (std::any_of(pairs_.begin(), pairs_.end(), same)) return Status::peer_access_already_enabled;
    pairs_.push_back({&from, &peer, from.device()});
    return Status::success;
}

Status PeerAccess::disable(const Context& from, const Context& peer) {
    std::lock_guard lock(mutex_);
    const auto same = [&](const Pair& pair) { return pair.from == &from && pair.peer == &peer; };
    return std::erase_if(pairs_, same) ? Status::success : Status::peer_access_not_enabled;
}

bool PeerAccess::allows(int device, const Context* owner) const {
    std::lock_guard lock(mutex_);
    const auto of = [&](const Pair& pair) { return pair.device == device && pair.peer == owner; };
    return std::any_of(pairs_.begin(), pairs_.end(), of);
}

void PeerAccess::forget(const Context& context) {
    std::lock_guard lock(mutex_);
    std::erase_if(pairs_, [&](const Pair& pair) { return pair.from == &context || pair.peer == &context; });
}

} // namespace ptarmigan::runtime
