// SPDX-License-Identifier: Apache-2.0
// Vectors of words that all steps load one by one from the same places are put together once (HoistGathered in
// translator/llvm/hoist_from_steps.h), and words that a step loads twice are loaded once: not where something is
// written there between. Numbers that take long to compute leave, too. Random loops, each beside itself without the mark that says that it is one over steps.
#include "ir_fixture.h"
#include "runtime/code/image_loader.h"
#include "translator/kernel_abi.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <random>
#include <regex>
#include <string>
#include <vector>

using namespace ptarmigan;

namespace {

constexpr unsigned words = 272, table = 128; ///< behind the table's words are results

std::string number(std::uint64_t n) { return std::to_string(n); }

struct Choices {
    bool writes_table = false; ///< steps do, too
    bool moves = false;        ///< some places are a step's own
};

/// Four steps, each of which puts two to four vectors of the table's words together and stores them.
std::string loop_of(unsigned seed, const Choices& choices) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned limit) { return unsigned(random() % limit); };
    std::string text = "define void @ptarmigan_kernel(ptr %cta) {\nentry:\n"
                       "  %field = getelementptr i8, ptr %cta, i64 " + number(offsetof(abi::CtaContext, shared)) + "\n"
                       "  %memory = load ptr, ptr %field, align 8, !invariant.load !0\n"
                       "  %round = load i32, ptr %memory, align 4\n  br label %loop\nloop:\n"
                       "  %step = phi i64 [0, %entry], [%next, %loop]\n  %shifted = shl i64 %step, 5\n  %nothing = and i64 %shifted, 31\n";
    // What is stored elsewhere is told apart by its type, as the emitter tells shared and global memory apart.
    const std::string of_table = choices.writes_table ? "" : ", !tbaa !1", of_results = choices.writes_table ? "" : ", !tbaa !2";
    unsigned names = 0;
    const auto value = [&](const std::string& what) {
        const std::string name = "%v" + number(names++);
        text += "  " + name + " = " + what + "\n";
        return name;
    };
    // The same for all steps, and long.
    const std::string product = value("mul i32 %round, 43691"), quotient = value("lshr i32 " + product + ", 17"), times = value("mul i32 " + quotient + ", 3");
    const std::string rest = value("sub i32 %round, " + times), narrow = value("and i32 " + rest + ", 7"), turn = value("zext i32 " + narrow + " to i64");
    std::vector<unsigned> places;
    const unsigned vectors = 2 + below(3);
    for (unsigned v = 0; v < vectors; ++v) {
        if (v == 0 || below(2)) {
            places.clear();
            for (unsigned i = 0; i < 8; ++i) places.push_back(below(table / 2));
        }
        const std::string base = choices.moves && below(2) ? "%step" : below(2) ? "%nothing" : "0";
        std::string vector = "poison";
        for (unsigned i = 0; i < 8; ++i) {
            const std::string at = value("add i64 " + base + ", " + number(places[i]));
            const std::string pointer = value("getelementptr i32, ptr %memory, i64 " + at);
            const std::string word = value("load i32, ptr " + pointer + ", align 4" + of_table);
            vector = value("insertelement <8 x i32> " + vector + ", i32 " + word + ", i64 " + number(i));
        }
        const std::string by_step = value("mul i64 %step, " + number(8 * vectors));
        const std::string at = value("add i64 " + by_step + ", " + number(choices.writes_table && below(2) ? below(table / 2) : table + 8 * v));
        const std::string turned = value("add i64 " + at + ", " + turn);
        const std::string pointer = value("getelementptr i32, ptr %memory, i64 " + turned);
        const std::string step = value("trunc i64 %step to i32"), first = value("insertelement <8 x i32> poison, i32 " + step + ", i64 0");
        const std::string all = value("shufflevector <8 x i32> " + first + ", <8 x i32> poison, <8 x i32> zeroinitializer");
        const std::string sum = value("add <8 x i32> " + vector + ", " + all);
        text += "  store <8 x i32> " + sum + ", ptr " + pointer + ", align 4" + of_results + "\n";
    }
    return text + "  %next = add i64 %step, 1\n  %more = icmp ult i64 %next, 4\n  br i1 %more, label %loop, label %done, !ptarmigan.steps !0\n"
                  "done:\n  ret void\n}\n!0 = !{}\n!1 = !{!3, !3, i64 0}\n!2 = !{!4, !4, i64 0}\n!3 = !{!\"global\", !5}\n!4 = !{!\"shared\", !5}\n!5 = !{!\"memory\"}\n";
}

std::vector<std::uint32_t> run(const std::string& ir) {
    const auto image = runtime::LoadedImage::load(translator::image_of_ir(ir), "gathered");
    std::vector<std::uint32_t> memory(words);
    for (unsigned i = 0; i < memory.size(); ++i) memory[i] = (i + 5) * 2654435761u;
    abi::CtaContext context{};
    context.shared = reinterpret_cast<std::uint8_t*>(memory.data());
    reinterpret_cast<void (*)(void*)>(const_cast<void*>(image->entry()))(&context);
    return memory;
}

std::string without_steps(const std::string& text) { return std::regex_replace(text, std::regex(", !ptarmigan.steps !0"), ""); }

/// Instructions of the loop.
unsigned instructions_in_loop(const std::string& assembly) {
    const std::size_t begin = assembly.find("# =>This"), end = assembly.find("# %bb", begin);
    const std::string loop = assembly.substr(begin, end - begin);
    const std::regex instruction("\n\t[a-z]");
    return unsigned(std::distance(std::sregex_iterator(loop.begin(), loop.end(), instruction), std::sregex_iterator()));
}

} // namespace

TEST_CASE("gathered words: random loops leave what they leave one by one") {
    for (unsigned seed = 0; seed < 120; ++seed) {
        const std::string text = loop_of(seed, {.writes_table = seed % 3 == 1, .moves = seed % 2 == 1});
        INFO("seed " << seed << "\n" << text);
        if (run(text) != run(without_steps(text))) FAIL_CHECK("other memory");
    }
}

TEST_CASE("gathered words: what all steps load is loaded once") {
    for (unsigned seed = 0; seed < 5; ++seed) {
        const std::string hoisted = loop_of(seed, {}), written = loop_of(seed, {.writes_table = true});
        INFO("seed " << seed);
        const unsigned once = instructions_in_loop(translator::assembly_of_ir(hoisted, "x86-64-v4"));
        CHECK(once < 16);
        CHECK(instructions_in_loop(translator::assembly_of_ir(without_steps(hoisted), "x86-64-v4")) >= once + 8);
        CHECK(instructions_in_loop(translator::assembly_of_ir(written, "x86-64-v4")) >= once + 8);
    }
}
