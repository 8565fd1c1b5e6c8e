// SPDX-License-Identifier: Apache-2.0
// Which contexts have let their device use the memory of another device's context (cuCtxEnablePeerAccess).
#pragma once

#include "runtime/base/status.h"

#include <mutex>
#include <vector>

namespace ptarmigan::runtime {

class Context;

/// One of the process. Thread-safe; its mutex is a leaf. Codes are an H200's driver's
/// (tests/driver_api/answers/device_answers_h200x2.txt).
class PeerAccess {
public:
    static PeerAccess& get();
    /// peer_access_unsupported for contexts of one device, peer_access_already_enabled.
    Status enable(const Context& from, const Context& peer);
    /// peer_access_not_enabled.
    Status disable(const Context& from, const Context& peer);
    /// Whether kernels of a device (an ordinal) may use what a context of another one has allocated: any context of the
    /// device may have let them.
    bool allows(int device, const Context* owner) const;
    /// At the end of a context.
    void forget(const Context& context);

private:
    struct Pair {
        const Context* from;
        const Context* peer;
        int device; ///< from's
    };
    mutable std::mutex mutex_;
    std::vector<Pair> pairs_;
};

} // namespace ptarmigan::runtime
