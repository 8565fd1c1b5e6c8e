// SPDX-License-Identifier: Apache-2.0
// `ptarmigan isa`: the coverage table, from the instruction table and what the tests know of it.
#include "frontend/isa/instruction_form.h"
#include "frontend/sass/opcode_table.h"
#include "tools/ptarmigan/approximations.h"
#include "tools/ptarmigan/commands.h"
#include "tools/ptarmigan/evidence.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <memory>
#include <string>

namespace ptarmigan::tool {
namespace {

struct IsaOptions {
    bool missing = false, untested = false, markdown = false, json = false, summary = false, machine_code = false;
};

std::string escaped(std::string_view text, const char* characters) {
    std::string result;
    for (char c : text) {
        if (std::string_view(characters).find(c) != std::string_view::npos) result += '\\';
        result += c;
    }
    return result;
}

/// Products of matrices whose sums PTARMIGAN_MMA=fast makes in f32: dense and sparse ones of floating-point numbers but
/// of f64, and but mma.m8n8k4, which is f32 arithmetic on an H100 too.
bool has_fast_sums(const ptx::FormInfo& form) {
    const auto says = [&](std::string_view text) { return form.syntax.find(text) != std::string_view::npos; };
    return form.lowered && says("mma") && says(" d, ") && !says(".load") && !says(".store") && !says(".s32") &&
           !says(".block_scale") && !says(".f64") && !says(".m8n8k4") && any(form.effects, ptx::Effects::whole_warp);
}
constexpr const char* fast_sum_bound =
    "(n + 2) 2^-24 (|C| + sum of |A B|) for n products, then a rounding to f16 where D "
    "is f16; subnormal bf16 counts as zero on CPUs with AVX512_BF16";

/// One form as the table shows it.
struct Line {
    std::string name, syntax, since, targets, section, chapter, reason, exactness, tests;
    bool executes, fast_sums;
    const Approximation* approximation; ///< null for exact forms

    explicit Line(const ptx::FormInfo& form)
        : name(form.name), syntax(form.syntax),
          since(std::to_string(form.ptx_major) + "." + std::to_string(form.ptx_minor)), targets(form.targets),
          section(form.section), chapter(form.chapter), reason(form.unsupported_reason), exactness(exactness_of(form)),
          tests(tests_of(form.id)), executes(form.lowered), fast_sums(has_fast_sums(form)),
          approximation(approximation_of(form.id)) {}

    std::string status() const { return executes ? "executes" : "parses; unsupported: " + reason; }
};

/// Executed, and no test of ours runs it: the judgement of ptxas is about reading it.
bool is_untested(const ptx::FormInfo& form) {
    const Evidence& evidence = evidence_of(form.id);
    return form.lowered && evidence.recorded + evidence.differing == 0 && evidence.programs.empty() &&
           evidence.unit_tests.empty();
}

void print_text(const Line& line) {
    std::printf("%-32s %-4s sm_%-12s %-12s %s\n    %s\n    exactness: %s; tests: %s\n", line.name.c_str(),
                line.since.c_str(), line.targets.c_str(), line.section.c_str(), line.status().c_str(),
                line.syntax.c_str(), line.exactness.c_str(), line.tests.empty() ? "none" : line.tests.c_str());
    if (const Approximation* a = line.approximation) {
        std::printf("    PTARMIGAN_APPROX=exact: the H200's bits, %.1f ns per 16 lanes; fast: ", a->exact);
        if (a->has_fast_form)
            std::printf("error at most %s, %.1f ns\n", a->bound, a->fast);
        else
            std::printf("the same (the manual's bound: %s)\n", a->bound);
    }
    if (line.fast_sums)
        std::printf("    PTARMIGAN_MMA=exact: the H100's bits; fast: error at most %s\n", fast_sum_bound);
}

void print_markdown(const Line& line) {
    std::printf("| %s | `%s` | %s | %s | %s | %s | %s | %s |\n", line.name.c_str(), escaped(line.syntax, "|").c_str(),
                line.since.c_str(), escaped(line.targets, "|").c_str(), line.section.c_str(), line.status().c_str(),
                line.exactness.c_str(), line.tests.c_str());
}

void print_json(const Line& line, const Evidence& evidence, bool first) {
    const auto text = [](std::string_view value) { return "\"" + escaped(value, "\"\\") + "\""; };
    std::printf(
        "%s\n  {\"form\": %s, \"syntax\": %s, \"ptx\": %s, \"targets\": %s, \"section\": %s, \"chapter\": %s, "
        "\"parses\": true, \"executes\": %s, \"reason\": %s, \"exactness\": %s, "
        "\"tests\": {\"recorded\": %u, \"all_inputs\": %u, \"differing\": %u, \"ptxas\": %u, \"programs\": %s, \"unit\": %s}",
        first ? "" : ",", text(line.name).c_str(), text(line.syntax).c_str(), text(line.since).c_str(),
        text(line.targets).c_str(), text(line.section).c_str(), text(line.chapter).c_str(),
        line.executes ? "true" : "false", text(line.reason).c_str(), text(line.exactness).c_str(), evidence.recorded,
        evidence.exhaustive, evidence.differing, evidence.judged, text(evidence.programs).c_str(),
        text(evidence.unit_tests).c_str());
    if (const Approximation* a = line.approximation)
        std::printf(", \"approximation\": {\"bound\": %s, \"exact_ns\": %.1f, \"fast_ns\": %.1f}",
                    text(a->bound).c_str(), a->exact, a->has_fast_form ? a->fast : a->exact);
    if (line.fast_sums) std::printf(", \"fast_sums\": {\"bound\": %s}", text(fast_sum_bound).c_str());
    std::printf("}");
}

bool is_wanted(const IsaOptions& options, const ptx::FormInfo& form) {
    return !(options.missing && form.lowered) && !(options.untested && !is_untested(form));
}

/// Executed, and of those recorded on the H200, per chapter.
void print_summary(const IsaOptions& options) {
    struct Count {
        unsigned recorded = 0, executed = 0, all = 0;
    };
    std::map<std::string, Count> chapters;
    Count total;
    for (const ptx::FormInfo& form : ptx::all_forms()) {
        if (!is_wanted(options, form)) continue;
        const Evidence& evidence = evidence_of(form.id);
        for (Count* count : {&chapters[std::string(form.chapter)], &total}) {
            count->recorded += form.lowered && evidence.recorded + evidence.differing != 0;
            count->executed += form.lowered;
            ++count->all;
        }
    }
    const auto print = [](const std::string& name, const Count& count) {
        std::printf("%-22s %4u parse %4u execute %4u recorded\n", name.c_str(), count.all, count.executed,
                    count.recorded);
    };
    for (auto& [chapter, count] : chapters) print(chapter, count);
    const char* name = options.missing ? "forms not supported" : options.untested ? "forms untested" : "all forms";
    print(name, total);
}

bool is_in(const sass::Form& form, const sass::Family& family) {
    return form.first <= family.last && form.last >= family.first;
}

std::string name_of(const sass::Family& family) {
    return "sm_" + std::to_string(family.first) +
           (family.first == family.last ? "" : " to sm_" + std::to_string(family.last));
}

/// "sm_80-90": of the first family that has it to the last.
std::string families_of(const sass::Form& form) {
    unsigned first = 0, last = 0;
    for (const sass::Family& family : sass::families) {
        if (!is_in(form, family)) continue;
        if (first == 0) first = family.first;
        last = family.last;
    }
    return "sm_" + std::to_string(first) + (first == last ? "" : "-" + std::to_string(last));
}

/// Rows of the table of machine instructions; --missing: those that are known and refused.
int machine_code(const IsaOptions& options) {
    struct Count {
        unsigned lifted = 0, all = 0;
    } counts[std::size(sass::families)];
    if (options.json) std::printf("[");
    if (options.markdown) std::printf("| row | opcode | architectures | syntax | status |\n|---|---|---|---|---|\n");
    bool first = true;
    for (const sass::Form& form : sass::all_forms()) {
        const bool is_lifted = !form.rule.empty();
        if (options.missing && is_lifted) continue;
        const auto count = [&](Count& family, bool is_in) {
            family.all += is_in;
            family.lifted += is_in && is_lifted;
        };
        for (std::size_t i = 0; i < std::size(sass::families); ++i) count(counts[i], is_in(form, sass::families[i]));
        const std::string name(form.name), syntax(form.syntax), refusal(form.refusal), rule(form.rule);
        if (options.summary) continue;
        if (options.json)
            std::printf("%s\n  {\"row\": \"%s\", \"opcode\": %u, \"architectures\": \"%s\", \"syntax\": \"%s\", "
                        "\"lifts\": %s, \"rule\": \"%s\", \"reason\": \"%s\"}",
                        first ? "" : ",", name.c_str(), form.code, families_of(form).c_str(),
                        escaped(syntax, "\"\\").c_str(), is_lifted ? "true" : "false", rule.c_str(),
                        escaped(refusal, "\"\\").c_str());
        else if (options.markdown)
            std::printf("| %s | 0x%03x | %s | `%s` | %s |\n", name.c_str(), form.code, families_of(form).c_str(),
                        escaped(syntax, "|").c_str(), is_lifted ? "lifts" : ("refused: " + refusal).c_str());
        else
            std::printf("%-20s 0x%03x %-8s %s\n    %s\n", name.c_str(), form.code, families_of(form).c_str(),
                        is_lifted ? "lifts" : ("refused: " + refusal).c_str(), syntax.c_str());
        first = false;
    }
    if (options.json) std::printf("\n]\n");
    if (options.summary) {
        const auto print = [](const char* family, const Count& count) {
            std::printf("%-22s %4u rows %4u lift\n", family, count.all, count.lifted);
        };
        for (std::size_t i = 0; i < std::size(sass::families); ++i)
            print(name_of(sass::families[i]).c_str(), counts[i]);
    }
    return exit_success;
}

int isa(const IsaOptions& options) {
    if (options.machine_code) return machine_code(options);
    if (options.summary) {
        print_summary(options);
        return exit_success;
    }
    if (options.markdown)
        std::printf("| form | syntax | PTX | target (sm) | manual | status | exactness | tests |\n"
                    "|---|---|---|---|---|---|---|---|\n");
    if (options.json) std::printf("[");
    bool first = true;
    for (const ptx::FormInfo& form : ptx::all_forms()) {
        if (!is_wanted(options, form)) continue;
        const Line line(form);
        if (options.json)
            print_json(line, evidence_of(form.id), first);
        else if (options.markdown)
            print_markdown(line);
        else
            print_text(line);
        first = false;
    }
    if (options.json) std::printf("\n]\n");
    return exit_success;
}

} // namespace

void add_isa_command(CLI::App& app, int& exit_code) {
    auto options = std::make_shared<IsaOptions>();
    auto* command = app.add_subcommand("isa", "Print the coverage table: every instruction form of PTX");
    auto* missing =
        command->add_flag("--missing", options->missing, "only forms that are not supported, with the reason");
    auto* untested = command->add_flag("--untested", options->untested,
                                       "only forms that are executed but that no test of ours runs");
    command->footer(
        "Exactness:\n" + std::string(exactness_legend()) +
        "Tests: combinations and programs recorded on an H200, combinations recorded for all inputs, programs that contain the form, unit tests that name it,\n"
        "statements whose acceptance is compared with ptxas.");
    auto* markdown = command->add_flag("--markdown", options->markdown, "as a Markdown table");
    auto* json = command->add_flag("--json", options->json, "as JSON");
    auto* summary =
        command->add_flag("--summary", options->summary,
                          "counts per chapter: forms that parse, execute, and have results recorded on an H200");
    auto* sass =
        command->add_flag("--sass", options->machine_code,
                          "machine code: the rows of its table (opcode, architectures, the disassembler's text)");
    sass->excludes(untested);
    missing->excludes(untested);
    markdown->excludes(json)->excludes(summary);
    json->excludes(summary);
    command->callback([options, &exit_code] { exit_code = isa(*options); });
}

} // namespace ptarmigan::tool
