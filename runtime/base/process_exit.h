// SPDX-License-Identifier: Apache-2.0
// Whether the process is ending by exit() or by its return from main().
#pragma once

namespace ptarmigan::runtime {

/// From now on process_exits() notices. Exit handlers that the program registered before this run after its own, those
/// of libcudart among them. Thread-safe; later calls do nothing.
void watch_process_exit();

/// The exit handlers are running, and threads of kernels may be as well. Thread-safe.
bool process_exits();

} // namespace ptarmigan::runtime
