// SPDX-License-Identifier: Apache-2.0
// What the slots of export tables answer that NVIDIA's libraries call. Answers: table_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace answers;

namespace {

struct Id {
    unsigned char bytes[16];
};

Id id(const char* digits) {
    Id id{};
    for (int i = 0; i < 16; ++i) id.bytes[i] = static_cast<unsigned char>(std::stoi(std::string(digits + 2 * i, 2), nullptr, 16));
    return id;
}

constexpr std::uint64_t untouched = 0x7777777777777777;
CUcontext context, other_context;
CUstream stream;

std::string said(int result, std::uint64_t out) {
    std::string text = std::to_string(result);
    if (out == untouched) return text;
    if (out == reinterpret_cast<std::uint64_t>(context)) return text + " the context";
    if (out == reinterpret_cast<std::uint64_t>(other_context)) return text + " the other context";
    if (out == reinterpret_cast<std::uint64_t>(stream)) return text + " an address";
    char hex[20];
    std::snprintf(hex, sizeof hex, " %llx", static_cast<unsigned long long>(out));
    return text + (out > (1ull << 40) && out < (1ull << 48) ? " an address" : hex);
}

class Table {
public:
    Table(Answers& answers, const char* digits) : answers_(answers), name_(std::string(digits, 8)) {
        const Id wanted = id(digits);
        const int result = call("cuGetExportTable", &slots_, static_cast<const void*>(&wanted));
        answers_.give("table " + name_, result);
    }
    /// Calls slot `i` with the arguments and, at the end, a place of 8 bytes; says the result and what was written.
    template <class... Arguments> void ask(std::size_t i, const std::string& what, Arguments... arguments) {
        if (!slots_ || reinterpret_cast<std::uintptr_t>(slots_[0]) / 8 <= i || !slots_[i]) return;
        std::uint64_t out = untouched;
        const int result = reinterpret_cast<int (*)(Arguments..., std::uint64_t*)>(slots_[i])(arguments..., &out);
        answers_.give(name_ + "[" + std::to_string(i) + "]" + (what.empty() ? "" : " " + what), said(result, out));
    }
    /// The same with the place first.
    template <class... Arguments> void ask_first(std::size_t i, const std::string& what, Arguments... arguments) {
        if (!slots_ || reinterpret_cast<std::uintptr_t>(slots_[0]) / 8 <= i || !slots_[i]) return;
        std::uint64_t out = untouched;
        const int result = reinterpret_cast<int (*)(std::uint64_t*, Arguments...)>(slots_[i])(&out, arguments...);
        answers_.give(name_ + "[" + std::to_string(i) + "]" + (what.empty() ? "" : " " + what), said(result, out));
    }

private:
    Answers& answers_;
    std::string name_;
    void** slots_ = nullptr;
};

} // namespace

int main(int count, char** words) {
    Answers answers(count, words);
    alarm(60);
    must("cuInit", 0u);
    must("cuDevicePrimaryCtxRetain", &context, 0);
    must("cuCtxCreate_v2", &other_context, 0u, 0);
    must("cuCtxSetCurrent", context);
    must("cuStreamCreate", &stream, 1u);
    for (const char* other : {"00000000000000000000000000000000", "6e163fbeb958444d835ce182aff1991e"}) Table(answers, other);
    Table cudart(answers, "6bd5fb6c5bf4e74a8987d93912fd9df9");
    for (const char* setting : {"DA_8b3537d1", "DA_00000000", "CUDA_VISIBLE_DEVICES", ""}) cudart.ask_first(12, setting, setting);
    Table storage(answers, "42d85a8123f6cb478298f6e78a3aecdc");
    storage.ask_first(2, "");
    must("cuCtxSetCurrent", other_context);
    storage.ask_first(2, "in another context");
    must("cuCtxSetCurrent", context);
    std::thread([&] { storage.ask_first(2, "without a context"); }).join();
    Table queries(answers, "21318c60971432488ca641ff7324c8f2");
    CUcontext none{};
    queries.ask(4, "context", context);
    queries.ask(4, "null", none);
    std::thread([&] {
        queries.ask(4, "context, none current", context);
        queries.ask(4, "null, none current", none);
    }).join();
    for (CUstream asked : {stream, CUstream{}, reinterpret_cast<CUstream>(1), reinterpret_cast<CUstream>(2)}) {
        const std::string of = asked == stream ? "stream" : "stream " + std::to_string(reinterpret_cast<std::uintptr_t>(asked));
        queries.ask(51, of, context, asked);
        queries.ask(51, of + " of no context", none, asked);
    }
    return answers.finish();
}
