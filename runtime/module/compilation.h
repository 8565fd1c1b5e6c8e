// SPDX-License-Identifier: Apache-2.0
// The net under the translator: a compilation that crashes, throws or takes too long ends an attempt, not the process,
// and is tried again in plainer forms.
#pragma once

#include "runtime/module/compile_thread.h"
#include "runtime/module/kernel_cache.h"
#include "translator/compile.h"

#include <functional>
#include <mutex>
#include <stdexcept>

namespace ptarmigan::runtime {

/// An attempt to compile came to its end in the middle. what() says how: "LLVM crashed in code generation (SIGSEGV)".
class CompilationCrash : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// No form of a kernel could be compiled, for reasons of ours. what() names all causes.
class CompilationFailure : public std::runtime_error {
public:
    CompilationFailure(const std::string& what, bool costly) : std::runtime_error(what), costly(costly) {}
    /// An attempt took all of a budget that nobody has set: worth being remembered beyond this process.
    bool costly;
};

struct AttemptSetting {
    std::unique_lock<std::mutex>* loader =
        nullptr;                               ///< unlocked when the module is emitted: it needs the loader no more
    std::optional<BackgroundOrder> background; ///< no launch waits for it: it runs at a lower priority, see `thread`
    CompileThread* thread = nullptr;           ///< told when the attempt begins and ends, and lowered; may be null
    double share = 1;                          ///< of the budget, that it may take
    double* taken = nullptr;                   ///< where the share is put that it took, however it ends
};

/// Runs `work`, which calls into `api`, on a thread of its own that has the stack the translator wants, and waits.
/// What it throws arrives here; CompilationCrash if it crashes or takes more CPU time than PTARMIGAN_COMPILE_BUDGET
/// allows for the statements of `progress`. Then all that the translator had allocated is leaked. Without room for
/// another thread it runs on this one, without a budget. Returns the CPU seconds that it took. Thread-safe.
double attempt_compilation(const translator::TranslatorApi& api, const translator::CompileProgress& progress,
                           const std::function<void()>& work, const AttemptSetting& setting = {});

/// The kernel in the form that was asked for, or where that fails for a reason of ours in the first of fallback_forms()
/// that works, which is said in one line on stderr; see also PTARMIGAN_REPRODUCER. All of fallback_forms() together may
/// take one more budget, the last one half of it. Throws what api.compile throws for the program's faults,
/// CompilationFailure if no form works.
translator::CompiledKernel compile_kernel(const translator::TranslatorApi& api, const KernelRequest& request);

/// Plainer forms than `asked`, in the order to be tried, after an attempt that came as far as `failed`. Where lanes
/// count on a warp being one step (and where that is not known) narrower steps come last. None asks for regions where
/// fibers were asked for.
std::vector<translator::CompileForm> fallback_forms(const translator::CompileForm& asked,
                                                    const translator::CompileProgress& failed);

} // namespace ptarmigan::runtime
