// SPDX-License-Identifier: Apache-2.0
// Green contexts: a part of the device's multiprocessors, and of the host's workers with them. What is made under one
// lives in the primary context; only where grids run is its own.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ptarmigan::runtime {

class Context;

/// Multiprocessors with consecutive numbers. `count` 0: the whole device's.
struct SmRange {
    unsigned first = 0, count = 0;
};

/// How many multiprocessors a device's parts have at least, and of what their numbers are multiples.
struct SmGranularity {
    unsigned least = 0, alignment = 0;
};
/// `apart`: multiprocessors are not scheduled together, which makes parts smaller.
SmGranularity sm_granularity(bool apart);

/// Equal parts of the device, of at least `least` multiprocessors each (at most the device's), as many as there can be:
/// an H100's answers (tests/driver_api/answers/green_answers_h100.txt).
struct SmSplit {
    unsigned size = 0, groups = 0;
};
SmSplit split_multiprocessors(unsigned least, bool apart);

/// What cuDevSmResourceSplit is asked for.
struct SmRequest {
    unsigned count = 0;    ///< 0: as many as there are
    unsigned together = 0; ///< scheduled together in groups of so many; 0: the device's own number
    bool backfill = false; ///< the last ones may be of no group
};
/// Takes the multiprocessors of `part` from the front of `rest`, by cuda.h of 13.5 (no GPU was asked). With count 0
/// `part` may get none. A group lies within one cluster of processors (GPC). invalid_value: a request that can't be
/// meant; invalid_resource_configuration: `rest`, of `all` multiprocessors at first, has not so many.
Status take_multiprocessors(const SmRequest& request, unsigned all, SmRange& rest, SmRange& part);
/// How many a request schedules together.
unsigned scheduled_together(const SmRequest& request);

/// Thread-safe. Handles are found in HandleTable<GreenContext>.
class GreenContext : public std::enable_shared_from_this<GreenContext> {
public:
    GreenContext(SmRange range, std::uint64_t id) : range_(range), id_(id) {}
    /// cuGreenCtxCreate on a device (an ordinal): retains its primary context.
    static Status create(SmRange range, int device, std::shared_ptr<GreenContext>& green);
    /// cuGreenCtxDestroy: waits for nothing; streams of it go on.
    Status destroy();

    SmRange range() const { return range_; }
    std::uint64_t id() const { return id_; }
    /// cuCtxFromGreenCtx: always the same one. It is a name for the primary context (Context::root()) that remembers
    /// this green one.
    const std::shared_ptr<Context>& context() const { return context_; }

private:
    const SmRange range_;
    const std::uint64_t id_;
    std::shared_ptr<Context> context_;
};

/// Of the calling thread's current context; null: it is not green.
std::shared_ptr<GreenContext> current_green_context();

} // namespace ptarmigan::runtime
