// SPDX-License-Identifier: Apache-2.0
// What the targets that read PTX share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace ptarmigan::fuzz {

/// The input was accepted, and what became of it is wrong: libFuzzer keeps inputs that abort.
[[noreturn]] inline void finding(const std::string& what) {
    std::fprintf(stderr, "finding: %s\n", what.c_str());
    std::abort();
}

} // namespace ptarmigan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
