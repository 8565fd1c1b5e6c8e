// SPDX-License-Identifier: Apache-2.0
// The thread of an attempt, its budget, and the attempts in a row.
#include "runtime/module/compilation.h"

#include "frontend/source/diagnostic.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/code/crash_scope.h"
#include "runtime/code/fault.h"
#include "runtime/module/compile_waits.h"
#include "runtime/module/reproducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <exception>
#include <new>
#include <pthread.h>
#include <shared_mutex>

namespace ptarmigan::runtime {
namespace {

using translator::CompileForm;
using translator::CompileProgress;

/// Nothing where there is no limit. Not to be met by what is merely big, or slow on a loaded machine: this is CPU time,
/// and the test programs' kernels take 0.1 to 3 ms a statement, 0.6 s at most (2026-11-25, Zen 5).
std::optional<double> budget_seconds(const CompileProgress& progress) {
    if (const auto set = env_seconds(Env::compile_budget)) return *set == 0 ? std::nullopt : set;
    constexpr double least = 20, per_statement = 0.02;
    return least + per_statement * progress.statements;
}

const char* name_of_signal(int number) {
    switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGTRAP: return "SIGTRAP";
    case SIGABRT: return "SIGABRT";
    default: return "a signal";
    }
}

std::string describe_crash(const Crash& crash, const CompileProgress& progress) {
    const char* stage = name_of(progress.stage.load());
    if (crash.signal == 0)
        return fmt::format("{} took more CPU time than its budget (PTARMIGAN_COMPILE_BUDGET)", stage);
    if (crash.stack_overflow) return fmt::format("the stack ended in {}", stage);
    return fmt::format("a crash in {} ({})", stage, name_of_signal(crash.signal));
}

/// Held by attempts until their module is emitted, so that no loader is in the middle of something in a forked child.
class ForkGate {
public:
    static std::shared_mutex& get() {
        static auto* gate = [] {
            // In the child another thread would seem to hold it.
            pthread_atfork([] { get().lock(); }, [] { get().unlock(); }, [] { new (&get()) std::shared_mutex; });
            return new std::shared_mutex; // never destroyed: background threads may be compiling
        }();
        return *gate;
    }
};

class Attempt {
public:
    Attempt(const translator::TranslatorApi& api, const CompileProgress& progress, const std::function<void()>& work,
            const AttemptSetting& setting)
        : progress_(progress), work_(work), setting_(setting),
          scope_(code_around(reinterpret_cast<const void*>(api.compile))) {}

    /// CPU seconds that it took.
    double run() {
        pthread_t thread;
        gate_ = std::shared_lock(ForkGate::get());
        if (!start(thread)) {
            main(this); // no room for another stack: the caller's has to do
        } else {
            wait_for(thread);
            pthread_join(thread, nullptr);
        }
        const auto budget = budget_seconds(progress_);
        if (setting_.taken) *setting_.taken = budget ? cpu_seconds_ / *budget : 0;
        if (error_) std::rethrow_exception(error_);
        if (crashed_) throw CompilationCrash(describe_crash(scope_.crash(), progress_));
        return cpu_seconds_;
    }

private:
    bool start(pthread_t& thread) {
        // Only what the thread does itself concerns it.
        sigset_t others, before;
        sigfillset(&others);
        for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&others, number);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, translator::stack_bytes);
        pthread_sigmask(SIG_SETMASK, &others, &before);
        const int failure = pthread_create(&thread, &attributes, main, this);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_attr_destroy(&attributes);
        return failure == 0;
    }

    static void* main(void* self) {
        auto& attempt = *static_cast<Attempt*>(self);
        CompileThread* seen = attempt.setting_.thread;
        if (seen) seen->begin();
        ensure_signal_stack();
        const double start = thread_seconds();
        attempt.crashed_ = !attempt.scope_.run(do_work, self);
        attempt.cpu_seconds_ = thread_seconds() - start;
        if (seen) seen->end();
        const std::lock_guard lock(attempt.mutex_);
        attempt.done_ = true;
        attempt.changed_.notify_one();
        return nullptr;
    }

    static double thread_seconds() {
        timespec used{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
    }

    static void do_work(void* self) {
        auto& attempt = *static_cast<Attempt*>(self);
        try {
            attempt.work_();
        } catch (...) {
            attempt.error_ = std::current_exception();
        }
    }

    void wait_for(pthread_t thread) {
        using namespace std::chrono_literals;
        constexpr unsigned polite_stops = 500;
        const CompileWait told(progress_.kernel, !setting_.background);
        std::unique_lock lock(mutex_);
        while (!has_emitted()) {
            if (changed_.wait_for(lock, 1ms, [&] { return done_; }) || is_over_budget(thread)) break;
            told.look();
        }
        if (has_emitted()) after_emission();
        for (unsigned stops = 0; !done_;) {
            if (changed_.wait_for(lock, stops == 0 ? 100ms : 10ms, [&] { return done_; })) return;
            told.look();
            if (stops == 0 && !is_over_budget(thread)) continue;
            scope_.stop(thread, ++stops > polite_stops);
        }
    }

    bool has_emitted() const { return progress_.stage.load() > CompileProgress::Stage::emission; }

    /// What is left needs nothing but the CPU: others may use the loader and fork meanwhile, and nobody waits for this
    /// thread who has not chosen to.
    void after_emission() {
        if (setting_.loader && setting_.loader->owns_lock()) setting_.loader->unlock();
        gate_.unlock();
        if (setting_.background && setting_.thread) setting_.thread->lower(niceness_of(*setting_.background));
    }

    bool is_over_budget(pthread_t thread) const {
        clockid_t clock;
        timespec used{};
        const auto budget = budget_seconds(progress_);
        if (!budget || pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &used) != 0) return false;
        return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9 > setting_.share * *budget;
    }

    const CompileProgress& progress_;
    const std::function<void()>& work_;
    const AttemptSetting setting_;
    std::shared_lock<std::shared_mutex> gate_;
    CrashScope scope_;
    std::exception_ptr error_;
    bool crashed_ = false;
    double cpu_seconds_ = 0;
    std::mutex mutex_; ///< guards done_
    std::condition_variable changed_;
    bool done_ = false;
};

/// How much of their budget attempts may take and have taken.
struct Shares {
    double allowed = 1, taken = 0;
};

/// One attempt in the form of `options`. The cause if it failed for a reason of ours; throws for the program's faults.
std::optional<std::string> try_form(const translator::TranslatorApi& api, const KernelRequest& request,
                                    const translator::CompileOptions& options, CompileProgress& progress,
                                    Shares& shares, translator::CompiledKernel& compiled) {
    try {
        std::unique_lock loader(request.loader_mutex);
        const auto work = [&] {
            compiled = api.compile(request.loader, request.kernel, request.shape, options, nullptr, &progress);
        };
        const AttemptSetting setting{&loader, request.background, request.thread, shares.allowed, &shares.taken};
        const double seconds = attempt_compilation(api, progress, work, setting);
        if (log_enabled(LogLevel::info))
            log(LogLevel::info, fmt::format("kernel {}: {:.3f} ms of CPU for {} statements", request.kernel,
                                            1e3 * seconds, progress.statements.load()));
        compiled.form = options;
        return std::nullopt;
    } catch (const translator::UnsupportedError&) {
        throw;
    } catch (const ptx::DiagnosticError&) {
        throw;
    } catch (const std::exception& error) {
        return error.what();
    }
}

} // namespace

double attempt_compilation(const translator::TranslatorApi& api, const CompileProgress& progress,
                           const std::function<void()>& work, const AttemptSetting& setting) {
    return Attempt(api, progress, work, setting).run();
}

translator::CompiledKernel compile_kernel(const translator::TranslatorApi& api, const KernelRequest& request) {
    translator::CompiledKernel compiled;
    CompileProgress first;
    first.kernel = request.kernel;
    if (request.other_form) ++first.attempt;
    Shares shares;
    const auto cause = try_form(api, request, request.options, first, shares, compiled);
    if (!cause) return compiled;
    bool costly = shares.taken >= 1;
    std::vector<FailedForm> failed{{request.options, *cause}};
    const std::vector<CompileForm> forms = fallback_forms(request.options, first);
    // What does not end in one form may not end in the others, of which the last is the likeliest to work.
    constexpr double of_last = 0.5;
    double left = 1 - of_last;
    for (const CompileForm& form : forms) {
        translator::CompileOptions options = request.options;
        static_cast<CompileForm&>(options) = form;
        CompileProgress progress;
        progress.kernel = request.kernel;
        progress.attempt = static_cast<unsigned>(failed.size() + first.attempt);
        shares = {form == forms.back() ? left + of_last : left / 2, 0};
        if (const auto again = try_form(api, request, options, progress, shares, compiled)) {
            failed.push_back({form, *again});
            left = std::max(0.0, left - shares.taken);
            costly |= shares.taken >= shares.allowed;
            continue;
        }
        const std::string saved = save_reproducer(request, failed);
        log(LogLevel::error,
            fmt::format("kernel {}: {}: compiled in another form instead ({}), which may be slower. This is a fault of "
                        "Ptarmigan; please report it{}",
                        request.kernel, *cause, describe(form),
                        saved.empty() ? " (PTARMIGAN_REPRODUCER=DIR saves what is needed)" : " with " + saved));
        return compiled;
    }
    const std::string saved = save_reproducer(request, failed);
    const std::string what = fmt::format(
        "{}; {} other forms failed, the last one by {}. Please report it{}", *cause, failed.size() - 1,
        failed.back().cause, saved.empty() ? " (PTARMIGAN_REPRODUCER=DIR saves what is needed)" : " with " + saved);
    throw CompilationFailure(what, costly && !env_seconds(Env::compile_budget));
}

} // namespace ptarmigan::runtime
