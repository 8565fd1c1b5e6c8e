// SPDX-License-Identifier: Apache-2.0
// Code for functions that kernels call through tables too large to make code for all they hold
// (translator/late_call.h): made when one is first called, by the thread that calls it, in the forms of the kernel's
// code.
#pragma once

#include "frontend/ptx/module.h"
#include "translator/compile.h"

#include <cstddef>
#include <memory>
#include <string>

namespace ptarmigan::runtime {

class ModuleSource;
struct LoadedKernel;

/// Whether a kernel of the module may call functions late: it has as many as could be called so.
bool may_call_late(const ptx::Module& module);

/// Notes what `code` was made of, if it may call functions late. To be told of all code that launches get. Thread-safe.
void note_late_caller(ModuleSource& source, const std::string& kernel, const translator::BlockShape& shape,
                      const translator::CompileOptions& options, const std::shared_ptr<const LoadedKernel>& code);

/// Of `function`, for the running `code`, which keeps it; `stack`: bytes of the host's stack that it may take. Null
/// with the reason in `error` if there is none. Thread-safe; others that want the same function wait.
const LoadedKernel* late_function(const LoadedKernel& code, ptx::FunctionId function, std::size_t stack,
                                  std::string& error);

/// Whether a thread of the process is making one now. Relaxed: a hint.
bool makes_late_functions();

} // namespace ptarmigan::runtime
