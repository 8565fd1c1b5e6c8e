// SPDX-License-Identifier: Apache-2.0
// Values that the CUDA runtime library keeps per context under keys of its own. Reading is on the
// path of every runtime API call, so each thread remembers its last answer and one counter says
// when answers grow stale.
#pragma once

#include "runtime/base/status.h"
#include "runtime/shim/cuda_types.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace ptarmigan::runtime {
class Context;
}

namespace ptarmigan::shim {

/// Thread-safe. A null context handle means the calling thread's current one.
class ContextStorage {
public:
    using Destructor = void (*)(CUcontext context, void* key, void* value);

    static ContextStorage& get();

    /// Sets or replaces a value. invalid_context without a context.
    runtime::Status put(CUcontext context, void* key, void* value, Destructor destructor);
    /// Forgets a value without running its destructor; invalid_handle if there is none.
    runtime::Status remove(CUcontext context, void* key);
    /// invalid_context without a context, invalid_handle for a key that is not set. Lock-free when
    /// the calling thread asks the same question again.
    runtime::Status find(void** value, CUcontext context, void* key);
    /// Runs and forgets all destructors of a context, outside the lock.
    void clear(runtime::Context& context);

private:
    struct Entry {
        void* value;
        Destructor destructor;
    };
    std::mutex mutex_;
    std::map<std::pair<const void*, void*>, Entry> entries_; ///< by context and key
    std::atomic<std::uint64_t> generation_{1};               ///< changes with entries_
};

} // namespace ptarmigan::shim
