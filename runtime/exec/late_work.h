// SPDX-License-Identifier: Apache-2.0
// Work that is put off until somebody waits for it, beside asynchronous copies.
#pragma once

#include <cstdint>

namespace ptarmigan::runtime {

/// Belongs to a worker, as who waits does.
class LateWork {
public:
    virtual bool some_is_late() const = 0;
    /// Somebody waits for a phase of the mbarrier `object` that is not complete: does the next of it that counts there.
    /// False if there is none.
    virtual bool complete_next(const std::uint64_t* object) = 0;

protected:
    ~LateWork() = default;
};

} // namespace ptarmigan::runtime
