// SPDX-License-Identifier: Apache-2.0
// Hostile variants of valid PTX: each call makes one, reproducible from the generator's state.
#pragma once

#include <random>
#include <string>

namespace ptarmigan::test {

using Random = std::mt19937;

/// One variant of `text`: cut, bytes or tokens changed, lines removed, repeated or swapped, numbers
/// made extreme, type suffixes exchanged. Most stay close to valid, so that later stages see them.
std::string mutate(const std::string& text, Random& random);

} // namespace ptarmigan::test
