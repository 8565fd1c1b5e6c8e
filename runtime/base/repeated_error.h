// SPDX-License-Identifier: Apache-2.0
// Errors that come back in the same words: of a kernel that can't be compiled, at each of its launches.
#pragma once

#include <string>

namespace ptarmigan::runtime {

/// Like set_error_detail() (log.h), but the text is logged once per process. Thread-safe.
void set_repeated_error_detail(std::string text);

} // namespace ptarmigan::runtime
