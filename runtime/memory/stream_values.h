// SPDX-License-Identifier: Apache-2.0
// Values in memory that streams write and wait for: cuStreamWriteValue, cuStreamWaitValue, cuStreamBatchMemOp.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <vector>

namespace ptarmigan::runtime {

class Context;
class Stream;

/// One step of a stream: writes a value, waits for one, or (a barrier) nothing, because all that a stream does is seen
/// by what comes after it.
struct ValueStep {
    enum class Kind : std::uint8_t { write, wait, barrier };
    /// When a wait ends. `at_least` compares cyclically, as signed numbers of the width.
    enum class Until : std::uint8_t { at_least, equal, any_bit, any_clear_bit };
    Kind kind = Kind::barrier;
    Until until = Until::at_least;
    unsigned bytes = 4; ///< 4 or 8
    std::uint64_t address = 0, value = 0;
};

/// True if memory that holds `held` ends the wait `step`.
bool ends_wait(const ValueStep& step, std::uint64_t held);

/// invalid_value if the value is not aligned or not wholly in device memory or memory of the host that is pinned.
Status check_place(const ValueStep& step);

/// Makes the steps in order when the stream comes to them. The places have been checked. A wait looks at its memory
/// again and again, with sleeps between, until it ends or a fault ends its context. The status is of capture.
Status submit_values(Stream& stream, std::vector<ValueStep> steps);
/// Makes the steps now, on this thread.
void make_steps(const std::vector<ValueStep>& steps, const Context& context);

} // namespace ptarmigan::runtime
