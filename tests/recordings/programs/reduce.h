// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/recordings/programs/generator.h"

namespace random_programs {

/// Leaves out statements of program `seed` as long as its hashes under two environments differ; prints what remains, and the
/// list for --without. `a`, `b`: words NAME=VALUE; LIBCUDA=PATH exchanges the library. Each run is a process of its own.
int reduce(const char* self, const char* library, const char* forms_path, std::uint32_t seed, const std::string& a,
           const std::string& b, const std::vector<Form>& forms);

} // namespace random_programs
