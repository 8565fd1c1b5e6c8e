// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/evidence.h"

#include <algorithm>
#include <iterator>

namespace ptarmigan::tool {
namespace {

constexpr Evidence table[] = {
#define PTM_EVIDENCE(form, recorded, exhaustive, differing, judged, programs, unit_tests)                              \
    {recorded, exhaustive, differing, judged, programs, unit_tests},
#include "isa_evidence.inc"
#undef PTM_EVIDENCE
};

// In the order of the instruction table.
constexpr ptx::FormId order[] = {
#define PTM_EVIDENCE(form, recorded, exhaustive, differing, judged, programs, unit_tests) ptx::FormId::form,
#include "isa_evidence.inc"
#undef PTM_EVIDENCE
};
constexpr bool in_order() {
    for (std::size_t i = 0; i < std::size(order); ++i)
        if (static_cast<std::size_t>(order[i]) != i) return false;
    return true;
}
static_assert(in_order());

std::size_t count_words(std::string_view words) {
    return words.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(words.begin(), words.end(), ' '));
}

} // namespace

const Evidence& evidence_of(ptx::FormId form) {
    return table[static_cast<std::size_t>(form)];
}

std::string exactness_of(const ptx::FormInfo& form) {
    if (!form.lowered) return "-";
    const Evidence& evidence = evidence_of(form.id);
    if (evidence.differing != 0) return "recorded in part";
    return evidence.recorded != 0 ? "recorded" : "manual";
}

std::string_view exactness_legend() {
    return "recorded            the bits of an H200, compared by a test\n"
           "recorded in part    likewise, but some recorded combinations are known to differ, see tests/recordings\n"
           "manual              what the manual defines; no recording of its own\n"
           "-                   can't be executed yet\n";
}

std::string tests_of(ptx::FormId form) {
    const Evidence& evidence = evidence_of(form);
    std::string text;
    const auto add = [&](const char* name, const std::string& what) {
        text += (text.empty() ? "" : " ") + std::string(name) + ":" + what;
    };
    if (evidence.recorded + evidence.differing != 0)
        add("recording", std::to_string(evidence.recorded + evidence.differing));
    if (evidence.exhaustive != 0) add("all-inputs", std::to_string(evidence.exhaustive));
    if (const std::size_t programs = count_words(evidence.programs); programs != 0)
        add("programs", std::to_string(programs));
    if (!evidence.unit_tests.empty()) {
        std::string names(evidence.unit_tests);
        std::replace(names.begin(), names.end(), ' ', ',');
        add("unit", names);
    }
    if (evidence.judged != 0) add("ptxas", std::to_string(evidence.judged));
    return text;
}

} // namespace ptarmigan::tool
