// SPDX-License-Identifier: Apache-2.0
// Whether the process was forked from one that had initialised the driver. Such a child has the parent's handles and
// memory but none of its threads; a GPU's driver refuses it everything
// (tests/driver_api/answers/fork_answers_h100.txt).
#pragma once

namespace ptarmigan::runtime {

/// From now on, is_forked_child() is true in children. Thread-safe; later calls do nothing.
void watch_forks();

/// This process is a child, or a child's child, of one that had called watch_forks(). Lock-free.
bool is_forked_child();

} // namespace ptarmigan::runtime
