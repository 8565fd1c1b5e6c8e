// SPDX-License-Identifier: Apache-2.0
// Threads for one piece of work that is not a grid's.
#pragma once

#include <functional>

namespace ptarmigan::runtime {

/// Calls `work` on this thread and on up to `count` - 1 others, fewer where no more can be made, and returns when all
/// have come back. `work` must not throw. The program's signals stay away from the others.
void run_on_threads(unsigned count, const std::function<void()>& work);

/// How many threads, up to `wanted`, the process can have besides those it has: made, and ended again. For libraries
/// that end the process where they get none.
unsigned startable_threads(unsigned wanted);

} // namespace ptarmigan::runtime
