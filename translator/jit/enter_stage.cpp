// SPDX-License-Identifier: Apache-2.0
#include "translator/jit/enter_stage.h"

#include <llvm/Support/ErrorHandling.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string_view>

namespace ptarmigan::translator {
namespace {

/// What comes before the next `separator` of `text`, which then begins behind it.
std::string_view take(std::string_view& text, char separator) {
    const std::size_t end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    return part;
}

unsigned recurse(unsigned depth) {
    volatile char frame[1024] = {};
    frame[depth % sizeof frame] = 1;
    return depth == ~0u ? 0 : recurse(depth + 1) + unsigned(frame[0]);
}

void fail(std::string_view kind) {
    if (kind == "null") {
        int* volatile nowhere = nullptr;
        *nowhere = 0;
    }
    if (kind == "abort") std::abort();
    if (kind == "trap") __builtin_trap();
    if (kind == "fatal") llvm::report_fatal_error("a fatal error for a test");
    if (kind == "overflow" && recurse(0) != 0) return;
    if (kind == "memory") throw std::bad_alloc();
    if (kind == "exception") throw std::logic_error("an exception for a test");
    volatile unsigned rounds = 0;
    static void* volatile block = nullptr;
    while (kind == "churn") {
        block = std::malloc(100 + rounds % 100000);
        std::free(block);
        rounds = rounds + 1;
    }
    if (kind == "loop")
        for (;;) rounds = rounds + 1;
}

} // namespace

void enter_stage(CompileProgress* progress, CompileProgress::Stage stage) {
    if (!progress) return;
    progress->stage = stage;
    const char* wanted = std::getenv("PTARMIGAN_TEST_COMPILE_FAULT");
    if (!wanted) return;
    for (std::string_view rest = wanted; !rest.empty();) {
        std::string_view entry = take(rest, ';');
        const std::string_view kernel = take(entry, ':'), kind = take(entry, '@'), place = take(entry, ':');
        if (kernel != "*" && kernel != progress->kernel) continue;
        if (!std::string_view(name_of(stage)).starts_with(place)) continue;
        if (progress->attempt <= static_cast<unsigned>(std::atoi(entry.data()))) fail(kind);
    }
}

} // namespace ptarmigan::translator
