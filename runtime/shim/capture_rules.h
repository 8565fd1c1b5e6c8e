// SPDX-License-Identifier: Apache-2.0
// What calls mean while streams capture, by the names of the functions in entries/ (call_log's): which are potentially
// unsafe, so that captures may forbid them, and which work on a stream that captures. An H100's answers
// (tests/driver_api/answers/graph_answers_h100.txt, "calls").
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ptarmigan::shim {

/// Calls that a capture of the global mode forbids to all threads, and of the thread-local mode to its own.
constexpr bool is_unsafe_while_capturing(std::string_view entry) {
    constexpr std::string_view unsafe[] = {
#define UNSAFE(name) #name,
#include "runtime/shim/capture_rules.def"
#undef UNSAFE
#undef ON_CAPTURING_STREAM
    };
    return std::find(std::begin(unsafe), std::end(unsafe), entry) != std::end(unsafe);
}

/// Calls that a stream which captures takes: they ask for what it is, or record. All others would put work beside the
/// capture, and end it.
constexpr bool fits_capturing_stream(std::string_view entry) {
    constexpr std::string_view fitting[] = {
#define ON_CAPTURING_STREAM(name) #name,
#include "runtime/shim/capture_rules.def"
#undef UNSAFE
#undef ON_CAPTURING_STREAM
    };
    // All in entries/copy.cpp, and the recorder takes the asynchronous ones.
    const bool copies = entry.starts_with("cuMemcpy") || entry.starts_with("cuMemset");
    const bool one_of_many = entry.find("Batch") != std::string_view::npos;
    return (copies && !one_of_many) || std::find(std::begin(fitting), std::end(fitting), entry) != std::end(fitting);
}

} // namespace ptarmigan::shim
