// SPDX-License-Identifier: Apache-2.0
// One line on stderr's terminal that is rewritten in place, and makes room for other messages.
#pragma once

#include <string_view>

namespace ptarmigan::runtime {

/// Columns of the terminal; 80 if it doesn't say.
unsigned terminal_columns();

/// Writes `text` (printable ASCII, fewer bytes than the terminal has columns) over the line that is shown. Thread-safe,
/// like erase_progress_line(); of two calls at a time the terminal may show a mixture.
void show_progress_line(std::string_view text);

/// Takes the line away if one is shown. Async-signal-safe: the log calls it before each message.
void erase_progress_line();

} // namespace ptarmigan::runtime
