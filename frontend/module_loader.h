// SPDX-License-Identifier: Apache-2.0
// From PTX text to a bound module. Declarations are bound at once, function bodies when first asked
// for.
#pragma once

#include "frontend/ptx/module.h"
#include "frontend/source/diagnostic.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// Owns a source text, its module and the bodies bound so far.
/// Not thread-safe: callers serialise use of one loader.
class ModuleLoader {
public:
    struct Options {
        bool bind_all_bodies = false; ///< lint: bind and validate everything at once
        bool keep_bodies = true;      ///< else what bind_all_bodies bound is bound again when asked for:
                                      ///< bodies take some 15 times the text
        unsigned max_errors = 20;     ///< further errors are counted, not kept
    };

    /// Lexes, parses and binds the module's declarations. `name` is for messages ("kernel.ptx",
    /// "<image>"). Never throws for bad input: ask ok() and diagnostics().
    static std::unique_ptr<ModuleLoader> load(std::string text, std::string name, const Options& options);
    static std::unique_ptr<ModuleLoader> load(std::string text,
                                              std::string name); ///< default options
    ~ModuleLoader();

    bool ok() const;                        ///< no error so far (declarations and bodies bound so far)
    const Diagnostics& diagnostics() const; ///< all of them, in source order
    const Module& module() const;
    /// The bound and validated body of a defined function. Throws DiagnosticError listing the
    /// body's errors.
    const Body& body(FunctionId function);
    /// Sees a body that has just been bound.
    using BodyVisitor = std::function<void(FunctionId, const Body&)>;
    /// Calls `work` on as many threads as it likes, this one among them, and returns when all have come back.
    using RunOnThreads = std::function<void(const std::function<void()>& work)>;
    /// Binds every body, shows those without errors to `visit` and keeps none that was not kept before. The errors are
    /// then among diagnostics(). With `run`, bodies are bound side by side: `visit` is called from its threads, several
    /// at a time, once per body.
    void check_bodies(const BodyVisitor& visit = {}, const RunOnThreads& run = {});

    /// Frees the bodies without errors; they are bound again when asked for. References to them end.
    void forget_bodies();
    /// The text as given (for showing lines), with the device library behind it where the module calls that.
    std::string_view text() const;

private:
    struct Impl;
    explicit ModuleLoader(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// PTX text of a module, a body or one instruction; parses back to an equal module.
std::string print(ModuleLoader& loader);
std::string print(const Module& module, const Body& body, const Instruction& instruction);

} // namespace ptarmigan::ptx
