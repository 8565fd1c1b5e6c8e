// SPDX-License-Identifier: Apache-2.0
// What an earlier process found out about a PTX text, so that a warm start neither decodes the instruction table nor
// binds bodies: that all bodies are valid, and the facts of kernels. Kept as notes of the kernel cache
// (kernel_cache.h).
#pragma once

#include "runtime/module/module_source.h"

#include <optional>
#include <string>

namespace ptarmigan::runtime {

/// The log of a text whose bodies are all known to be valid (its warnings, mostly empty); nothing if that is not known.
std::optional<std::string> recall_valid_text(const TextHash& text);
void remember_valid_text(const TextHash& text, const std::string& log);

/// The facts of a kernel whose body is known to be valid.
std::optional<KernelFacts> recall_facts(const TextHash& text, const std::string& kernel);
void remember_facts(const TextHash& text, const std::string& kernel, const KernelFacts& facts);

/// Whether quick code of the kernel ran for about as long as good code takes to make.
bool recall_hot(const TextHash& text, const std::string& kernel);
void remember_hot(const TextHash& text, const std::string& kernel);

} // namespace ptarmigan::runtime
