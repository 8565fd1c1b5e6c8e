// SPDX-License-Identifier: Apache-2.0
#include "translator/jit/backend.h"

#include "translator/jit/enter_stage.h"
#include "translator/jit/image.h"
#include "translator/llvm/codegen.h"
#include "translator/llvm/optimize.h"
#include "translator/llvm/target_machine.h"

#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <pthread.h>

#include <cstddef>
#include <ctime>
#include <exception>
#include <stdexcept>

namespace ptarmigan::translator {
namespace {

/// Adds the time since its last lap to a stage.
class StageTimer {
public:
    void lap(double CompileTimes::*stage, CompileTimes* times) {
        const double now = thread_microseconds();
        if (times) times->*stage += now - last_;
        last_ = now;
    }

private:
    double last_ = thread_microseconds();
};

// The emitter is ours, so a module that does not verify is our bug: say what LLVM says. Costs 1-2 % of a compilation, 4
// % of a quick one.
void verify(llvm::Module& module) {
    std::string message;
    llvm::raw_string_ostream stream(message);
    if (llvm::verifyModule(module, &stream))
        throw std::runtime_error("the translator made an invalid LLVM module: " + message);
}

std::string to_text(const llvm::Module& module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    return text;
}

struct StackThread {
    void (*work)(void*);
    void* argument;
    std::exception_ptr error;

    static void* main(void* self) {
        auto* thread = static_cast<StackThread*>(self);
        try {
            thread->work(thread->argument);
        } catch (...) {
            thread->error = std::current_exception();
        }
        return nullptr;
    }
};

} // namespace

double thread_microseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

KernelImage build_image(llvm::Module& module, const TargetCpu& target, CompileTimes* times, Optimization optimization,
                        CompileProgress* progress) {
    StageTimer timer;
    LlvmErrorScope errors(module.getContext());
    enter_stage(progress, CompileProgress::Stage::optimization);
    const auto machine = make_target_machine(target, optimization);
    apply_target(module, *machine, target);
    // Quick code is looked at behind its few passes, when it has become a third smaller.
    const bool full = optimization == Optimization::full;
    if (full) verify(module);
    optimize(module, *machine, optimization);
    if (!full) verify(module);
    errors.check();
    timer.lap(&CompileTimes::passes, times);
    enter_stage(progress, CompileProgress::Stage::code_generation);
    const auto object = generate_object(module, *machine);
    errors.check();
    timer.lap(&CompileTimes::codegen, times);
    enter_stage(progress, CompileProgress::Stage::linking);
    KernelImage image = link_image(object->getMemBufferRef());
    timer.lap(&CompileTimes::link, times);
    return image;
}

std::string dump_module(llvm::Module& module, const TargetCpu& target, const std::string& stage,
                        Optimization optimization, CompileProgress* progress) {
    LlvmErrorScope errors(module.getContext());
    enter_stage(progress, CompileProgress::Stage::optimization);
    const auto machine = make_target_machine(target, optimization);
    apply_target(module, *machine, target);
    if (stage == "llvm") return to_text(module); // not verified: a dump is how one looks at an invalid module
    verify(module);
    optimize(module, *machine, optimization);
    errors.check();
    if (stage == "llvm-opt") return to_text(module);
    if (stage != "asm") throw std::invalid_argument("unknown stage '" + stage + "'");
    enter_stage(progress, CompileProgress::Stage::code_generation);
    std::string text = generate_assembly(module, *machine);
    errors.check();
    return text;
}

void run_with_large_stack(void (*work)(void*), void* argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    StackThread thread{work, argument, nullptr};
    pthread_t id;
    const int failure = pthread_create(&id, &attributes, StackThread::main, &thread);
    pthread_attr_destroy(&attributes);
    if (failure)
        StackThread::main(&thread); // no room for another stack: the caller's has to do
    else
        pthread_join(id, nullptr);
    if (thread.error) std::rethrow_exception(thread.error);
}

} // namespace ptarmigan::translator
