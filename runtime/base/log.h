// SPDX-License-Identifier: Apache-2.0
// Messages on stderr, one line each, prefixed "ptarmigan: ". PTARMIGAN_LOG chooses how many.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace ptarmigan::runtime {

/// info: modules as they are loaded, kernels as they are compiled, driver calls that fail. trace: every driver call and
/// grid.
enum class LogLevel : int { off, error, warning, info, trace };

/// True if messages of `level` are wanted.
bool log_enabled(LogLevel level);
/// Writes one message (it may have several lines) with a single write. Thread-safe.
void log(LogLevel level, std::string_view message);
/// Writes `message` once per distinct `key` of the process, unless messages are off.
void log_once(std::string_view key, std::string_view message);

/// Detail text of the calling thread's last failed operation (a module's diagnostics, an
/// unsupported form); empty if there was none. `set_error_detail` also logs at level error.
const std::string& error_detail();
void set_error_detail(std::string text);

/// Time since `start` as the log shows it: "1.234 ms".
std::string elapsed(std::chrono::steady_clock::time_point start);

} // namespace ptarmigan::runtime
