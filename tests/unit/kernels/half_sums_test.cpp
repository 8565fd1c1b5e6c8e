// SPDX-License-Identifier: Apache-2.0
// 64-bit numbers that machine code computes half by half (analysis/arithmetic/join_half_sums.cpp), and what only looks like it: random programs leave as
// machine code, in which halves are joined, what they leave as PTX, in which they are not.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <random>

using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64, inputs = 4;

class Program {
public:
    explicit Program(unsigned seed) : random_(seed) {
        for (unsigned i = 0; i < inputs; ++i)
            wholes_.push_back(wide("ld.global.b64 R, [%l0+" + std::to_string(8 * i) + "];"));
        for (unsigned i = 0; i < 16; ++i) add();
    }
    std::string body() const {
        std::string text = ".reg .b32 %w<" + std::to_string(words_) + ">; .reg .b64 %x<" + std::to_string(wides_) + ">; .reg .pred %z<" +
                           std::to_string(predicates_ + 1) + ">;\nmul.wide.u32 %l0, %r62, " + std::to_string(8 * inputs) + "; add.s64 %l0, %l0, %l60;\n" +
                           text_ + "mul.wide.u32 %l1, %r62, " + std::to_string(8 * results()) + "; add.s64 %l1, %l1, %l61;\n";
        for (std::size_t i = 0; i < wholes_.size(); ++i) text += "st.global.b64 [%l1+" + std::to_string(8 * i) + "], " + wholes_[i] + ";\n";
        return text;
    }
    std::size_t results() const { return wholes_.size(); }

private:
    struct Halves {
        std::string low, high;
    };
    unsigned below(unsigned limit) { return unsigned(random_() % limit); }
    bool rarely() { return below(8) == 0; }
    static std::string with(std::string text, const std::string& result) {
        for (std::size_t at = 0; (at = text.find('R', at)) != text.npos; at += result.size()) text.replace(at, 1, result);
        return text + "\n";
    }
    std::string word(const std::string& text) {
        const std::string name = "%w" + std::to_string(words_++);
        text_ += with(text, name);
        return name;
    }
    std::string wide(const std::string& text) {
        const std::string name = "%x" + std::to_string(wides_++);
        text_ += with(text, name);
        return name;
    }
    std::string predicate(const std::string& text) {
        const std::string name = "%z" + std::to_string(predicates_++);
        text_ += with(text, name);
        return name;
    }
    const std::string& whole() { return wholes_[below(unsigned(wholes_.size()))]; }
    Halves halves(const std::string& of) {
        const Halves made{word("cvt.u32.u64 R, " + of + ";"), "%w" + std::to_string(words_++)};
        text_ += "mov.b64 {%w" + std::to_string(words_++) + ", " + made.high + "}, " + of + ";\n";
        return made;
    }
    void pack(const std::string& low, const std::string& high) { wholes_.push_back(wide("mov.b64 R, {" + low + ", " + high + "};")); }

    void add() {
        const std::string x = whole(), y = whole();
        const Halves a = halves(x), b = halves(y);
        const std::string amount = std::to_string(1 + below(31)), other = rarely() ? std::to_string(1 + below(31)) : amount;
        switch (below(7)) {
        case 0: { // with the carry of a comparison
            const std::string low = word("add.s32 R, " + a.low + ", " + b.low + ";");
            const std::string left = rarely() ? a.high : low, right = below(2) != 0 ? a.low : b.low;
            const std::string wraps = below(2) != 0 ? predicate("setp.lt.u32 R, " + left + ", " + right + ";")
                                                    : predicate("setp.gt.u32 R, " + right + ", " + left + ";");
            pack(low, sum(rarely() ? b.low : a.high, b.high, word("selp.b32 R, 1, 0, " + wraps + ";")));
            break;
        }
        case 1: { // with the carry of a wider sum
            const std::string low = word("add.s32 R, " + a.low + ", " + b.low + ";");
            const std::string p = wide("cvt.u64.u32 R, " + a.low + ";"), q = wide("cvt.u64.u32 R, " + (rarely() ? b.high : b.low) + ";");
            const std::string wider = wide("add.u64 R, " + p + ", " + q + ";"), plus = wide("add.u64 R, " + wider + ", 0;");
            const std::string wraps = predicate("setp.ge.u32 R, " + halves(plus).high + (rarely() ? ", 0;" : ", 1;"));
            pack(low, below(3) == 0 ? word("add.s32 R, 0, " + word("selp.b32 R, 1, 0, " + wraps + ";") + ";")
                                    : sum(a.high, b.high, word("selp.b32 R, 1, 0, " + wraps + ";")));
            break;
        }
        case 2: // a lower half that is computed again
            pack(word("shl.b32 R, " + a.low + ", " + amount + ";"), halves(wide("shl.b64 R, " + x + ", " + other + ";")).high);
            break;
        case 3: { // of a product
            const std::string product = wide("mad.wide.u32 R, " + a.low + ", " + b.low + ", " + y + ";");
            pack(word("mad.lo.s32 R, " + a.low + ", " + (rarely() ? a.low : b.low) + ", " + b.low + ";"), halves(product).high);
            break;
        }
        case 4: { // bits of the lower half
            const std::string form = below(2) != 0 ? "or" : below(2) != 0 ? "xor" : "and";
            pack(word(form + ".b32 R, " + a.low + ", " + std::to_string(random_() % 0xffffffff) + ";"), rarely() ? b.high : a.high);
            break;
        }
        case 5: // more in the upper half
            pack(rarely() ? b.low : a.low, below(2) != 0 ? word("add.s32 R, " + b.low + ", " + a.high + ";")
                                                         : word("mad.lo.s32 R, " + b.high + ", " + b.low + ", " + a.high + ";"));
            break;
        default: { // shifted and added, as addresses are
            const std::string shifted = wide("shl.b64 R, " + x + ", " + amount + ";");
            const std::string scaled = word("shl.b32 R, " + a.low + ", " + other + ";"), low = word("add.s32 R, " + scaled + ", " + b.low + ";");
            const std::string carry = word("selp.b32 R, 1, 0, " + predicate("setp.lt.u32 R, " + low + ", " + scaled + ";") + ";");
            pack(low, sum(halves(shifted).high, b.high, carry));
        }
        }
    }
    /// In one of the orders.
    std::string sum(const std::string& a, const std::string& b, const std::string& carry) {
        switch (below(3)) {
        case 0: return word("add.s32 R, " + word("add.s32 R, " + a + ", " + b + ";") + ", " + carry + ";");
        case 1: return word("add.s32 R, " + carry + ", " + word("add.s32 R, " + b + ", " + a + ";") + ";");
        default: return word("add.s32 R, " + word("add.s32 R, " + a + ", " + carry + ";") + ", " + b + ";");
        }
    }

    std::mt19937 random_;
    std::string text_;
    std::vector<std::string> wholes_;
    unsigned words_ = 0, wides_ = 0, predicates_ = 0;
};

} // namespace

TEST_CASE("numbers that are computed half by half are what they are", "[kernels][halves]") {
    std::mt19937_64 random(5);
    std::vector<std::uint64_t> numbers(threads * inputs);
    const std::uint64_t words[] = {0, 1, 0xffffffff, 0x80000000, 0x7fffffff};
    const auto word = [&] { return random() % 2 != 0 ? words[random() % 5] : random() & 0xffffffff; };
    for (std::uint64_t& number : numbers) number = word() << 32 | word();
    const Array<std::uint64_t> in(numbers);
    for (unsigned seed = 0; seed < 24; ++seed) {
        const Program program(seed);
        std::vector<std::uint64_t> results[2];
        for (const bool is_machine_code : {false, true}) {
            const Array<std::uint64_t> out(threads * program.results());
            run(program.body(), {1}, {threads}, {in.address(), out.address()}, "", 0, Frame{is_machine_code ? "sm_90, debug" : "sm_90", "8.5", ""});
            results[is_machine_code ? 1 : 0] = out.values();
        }
        CAPTURE(seed);
        CHECK(results[0] == results[1]);
    }
}
