// SPDX-License-Identifier: Apache-2.0
// What somebody else needs to see a failed compilation fail again.
#pragma once

#include "runtime/module/kernel_cache.h"
#include "translator/compile.h"

#include <string>
#include <vector>

namespace ptarmigan::runtime {

struct FailedForm {
    translator::CompileForm form;
    std::string cause;
};

/// Writes kernel.ptx, cause.txt and command.txt (a `ptarmigan dump` of the first form, one line) into a folder of
/// PTARMIGAN_REPRODUCER that is named after the kernel, and returns its path. Empty if that is not set, or can't be
/// written, which is said on stderr.
std::string save_reproducer(const KernelRequest& request, const std::vector<FailedForm>& failed);

/// The options of `ptarmigan dump` that mean `options` and `shape`.
std::string dump_options(const translator::CompileOptions& options, const translator::BlockShape& shape);

} // namespace ptarmigan::runtime
