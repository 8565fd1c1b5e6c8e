// SPDX-License-Identifier: Apache-2.0
// A program is a list of elements at which all threads of a group meet. Whatever way a thread takes, it passes the same list: the
// arms of a branch hold the same elements with other arithmetic between them, so that members meet from different places.
#include "tests/recordings/divergence/generator.h"

#include "tests/recordings/random.h"

#include <iterator>
#include <vector>

namespace divergence {
namespace {

std::string text_of(unsigned number) { return std::to_string(number); }

constexpr unsigned words = 6, predicates = 4, most_depth = 3;

/// Where threads meet, or a structure of such places.
struct Element {
    enum class Kind {
        shuffle, ///< from the lowest member
        mirror,  ///< shfl.bfly, where the partner is a member
        ballot, choose, match_any, match_all, reduce,
        exchange,     ///< through shared memory and bar.warp.sync
        call,         ///< a function with a collective
        cta_exchange, ///< through shared memory and barriers of the CTA
        cta_reduce,   ///< barrier.red
        named,        ///< barrier of a number in a register, with a count
        repeat,       ///< `first`, `count` times
        walk,         ///< `count` steps from block to block of a graph that every lane takes its own way through, `first` in each
        split,        ///< lanes with a predicate pass `first` among themselves, the others `second`
    } kind;
    unsigned variant = 0, count = 0;
    std::vector<Element> first, second;
};
using Elements = std::vector<Element>;
using Kind = Element::Kind;

class Generator {
public:
    explicit Generator(std::uint32_t seed) : random_(recordings::Random(seed * 2 + 1).bits()), name_(text_of(seed)) {}

    Program run() {
        static constexpr unsigned blocks[] = {32, 64, 96, 40, 72, 128};
        program_.block = blocks[random_.below(std::size(blocks))];
        program_.grid = 1 + random_.below(2);
        arms_meet_ = random_.below(3) != 0;
        body(elements(3 + random_.below(4), 0, true), 0);
        leave_early();
        program_.text = function() + head() + text_ + tail();
        return program_;
    }

private:
    void line(const std::string& text) { text_ += text + "\n"; }
    std::string label(const char* kind) { return std::string("$") + kind + name_ + "_" + text_of(labels_++); }
    std::string word() { return "%r" + text_of(random_.below(words)); }
    std::string predicate() { return "%p" + text_of(random_.below(predicates)); }

    // --- what threads have to pass ---------------------------------------------------------------

    Element element(unsigned depth, bool whole_cta) {
        const unsigned choice = random_.below(whole_cta ? 20 : 14);
        Element e{};
        e.variant = random_.below(8);
        if (choice >= 14 && choice < 18) {
            static constexpr Kind of_cta[] = {Kind::cta_exchange, Kind::cta_reduce, Kind::cta_reduce, Kind::named};
            e.kind = of_cta[choice - 14];
        } else if (choice >= 9 && depth < 2) {
            static constexpr Kind nested[] = {Kind::repeat, Kind::walk, Kind::split, Kind::split, Kind::repeat, Kind::walk};
            e.kind = nested[choice % std::size(nested)];
            e.count = 2 + random_.below(3);
            const bool inside = whole_cta && e.kind != Kind::split;
            e.first = elements(1 + random_.below(2), e.kind == Kind::walk ? 2 : depth + 1, inside);
            if (e.kind == Kind::split && arms_meet_) e.second = elements(random_.below(3), depth + 1, false);
        } else {
            static constexpr Kind simple[] = {Kind::shuffle, Kind::mirror, Kind::ballot, Kind::choose, Kind::match_any, Kind::match_all, Kind::reduce, Kind::exchange, Kind::call};
            e.kind = simple[choice % std::size(simple)];
            if (e.kind == Kind::mirror && !whole_cta) e.kind = Kind::shuffle; // the partner may be no member
        }
        return e;
    }
    Elements elements(unsigned count, unsigned depth, bool whole_cta) {
        Elements list;
        for (unsigned i = 0; i < count; ++i) list.push_back(element(depth, whole_cta));
        return list;
    }

    // --- statements ------------------------------------------------------------------------------

    void arithmetic() {
        const std::string d = word(), a = word(), b = word();
        switch (random_.below(12)) {
        case 0: return line("add.u32 " + d + ", " + a + ", " + b + ";");
        case 1: return line("sub.u32 " + d + ", " + a + ", " + b + ";");
        case 2: return line("xor.b32 " + d + ", " + a + ", " + b + ";");
        case 3: return line("mul.lo.u32 " + d + ", " + a + ", " + text_of(3 + 2 * random_.below(500)) + ";");
        case 4: return line("mad.lo.u32 " + d + ", " + a + ", " + b + ", %t;");
        case 5: return line("shr.u32 " + d + ", " + a + ", " + text_of(1 + random_.below(9)) + ";");
        case 6: return line("max.s32 " + d + ", " + a + ", " + b + ";");
        case 7: return line("selp.b32 " + d + ", " + a + ", " + b + ", " + predicate() + ";");
        case 8: return line("add.u32 " + d + ", " + a + ", " + text_of(random_.below(100000)) + ";");
        case 9: {
            const std::string by = text_of(random_.below(100000)), p = predicate();
            return line((random_.below(2) ? "@" : "@!") + p + " xor.b32 " + d + ", " + a + ", " + by + ";");
        }
        default: return some_predicate(predicate());
        }
    }
    void some_predicate(const std::string& p) {
        const std::string by = text_of(random_.below(12)), shifted = word();
        line("shr.u32 %x, " + shifted + ", " + by + ";");
        const unsigned most = random_.below(2) ? 1 : 3;
        line("and.b32 %x, %x, " + text_of(most) + ";");
        const std::string with = text_of(random_.below(most + 1));
        line("setp." + std::string(random_.below(2) ? "eq" : "ne") + ".u32 " + p + ", %x, " + with + ";");
    }
    void some_arithmetic() {
        for (unsigned i = random_.below(4); i != 0; --i) arithmetic();
    }

    void simple(const Element& e) {
        const std::string d = word(), a = word(), p = predicate();
        static constexpr const char* reductions[] = {"add.s32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32"};
        static constexpr const char* votes[] = {"any", "all", "uni"};
        switch (e.kind) {
        case Kind::shuffle:
            line("brev.b32 %x, %mask; clz.b32 %x, %x;");
            line("shfl.sync.idx.b32 " + d + "|" + p + ", " + a + ", %x, 0x1f, %mask;");
            return;
        case Kind::mirror: return line("shfl.sync.bfly.b32 " + d + ", " + a + ", " + text_of(e.variant) + ", 0x1f, %mask;");
        case Kind::ballot: return line("vote.sync.ballot.b32 " + d + ", " + p + ", %mask;");
        case Kind::choose: return line(std::string("vote.sync.") + votes[e.variant % 3] + ".pred " + p + ", " + predicate() + ", %mask;");
        case Kind::match_any:
            line("and.b32 %x, " + a + ", " + text_of(e.variant) + ";");
            return line("match.any.sync.b32 " + d + ", %x, %mask;");
        case Kind::match_all:
            line("and.b32 %x, " + a + ", " + text_of(e.variant & 1) + ";");
            return line("match.all.sync.b32 " + d + "|" + p + ", %x, %mask;");
        case Kind::reduce: return line(std::string("redux.sync.") + reductions[e.variant] + " " + d + ", " + a + ", %mask;");
        case Kind::exchange:
            line("st.volatile.shared.u32 [%mine], " + a + ";");
            line("bar.warp.sync %mask;");
            line("brev.b32 %x, %mask; clz.b32 %x, %x; shl.b32 %x, %x, 2; add.u32 %x, %x, %row;");
            line("ld.volatile.shared.u32 " + d + ", [%x];");
            return line("bar.warp.sync %mask;");
        case Kind::call: return line("call (" + d + "), f" + name_ + ", (" + a + ", %mask);");
        case Kind::cta_exchange:
            line("st.shared.u32 [%mine], " + a + ";");
            line("barrier.cta.sync 0;");
            line("add.u32 %x, %t, " + text_of(1 + random_.below(program_.block - 1)) + "; rem.u32 %x, %x, " + text_of(program_.block) + ";");
            line("shl.b32 %x, %x, 2; add.u32 %x, %x, %tile; ld.shared.u32 " + d + ", [%x];");
            return line("barrier.cta.sync 0;");
        case Kind::cta_reduce:
            if (arms_ != 0) program_.reduces_in_arms = true;
            if (e.variant < 4) return line("barrier.cta.red.popc.u32 " + d + ", " + text_of(e.variant) + ", " + p + ";");
            return line(std::string("barrier.cta.red.") + (e.variant % 2 ? "and" : "or") + ".pred " + p + ", " + text_of(e.variant) + ", " + predicate() + ";");
        default: // named
            line("mov.u32 %x, " + text_of(8 + e.variant) + "; mov.u32 %y, " + text_of((program_.block + 31) / 32 * 32) + ";");
            return line("barrier.cta.sync %x, %y;");
        }
    }

    // --- ways through elements -------------------------------------------------------------------

    void pass(const Element& e, unsigned depth) {
        switch (e.kind) {
        case Kind::repeat: return repeat(e, depth);
        case Kind::walk: return random_.below(4) == 0 && arms_meet_ ? repeat(e, depth) : walk(e, depth);
        case Kind::split: return split(e, depth);
        default: return simple(e);
        }
    }

    void repeat(const Element& e, unsigned depth) {
        if (random_.below(3) == 0) {
            for (unsigned i = 0; i < e.count; ++i) body(e.first, depth + 1);
            return;
        }
        const std::string counter = "%c" + text_of(counters_++), head = label("loop");
        line("mov.u32 " + counter + ", " + text_of(e.count) + ";");
        line(head + ":");
        body(e.first, depth + 1);
        line("sub.u32 " + counter + ", " + counter + ", 1; setp.ne.u32 %n, " + counter + ", 0; @%n bra " + head + ";");
    }

    /// Blocks that jump to each other at will: loops with several entries.
    void walk(const Element& e, unsigned depth) {
        const std::string counter = "%c" + text_of(counters_++), end = label("arrived"), list = label("ways");
        const unsigned blocks = arms_meet_ ? 2 + random_.below(2) : 1;
        std::vector<std::string> labels;
        std::string targets;
        for (unsigned i = 0; i < blocks; ++i) {
            labels.push_back(label("block"));
            targets += (i ? ", " : "") + labels.back();
        }
        line("mov.u32 " + counter + ", " + text_of(e.count) + ";");
        line(list + ": .branchtargets " + targets + ";");
        line("rem.u32 %x, " + word() + ", " + text_of(blocks) + "; brx.idx %x, " + list + ";");
        arms_ += blocks > 1;
        for (unsigned i = 0; i < blocks; ++i) {
            line(labels[i] + ":");
            body(e.first, depth + 2);
            line("sub.u32 " + counter + ", " + counter + ", 1; setp.eq.u32 %n, " + counter + ", 0; @%n bra " + end + ";");
            some_predicate("%n");
            line("@%n bra " + labels[random_.below(blocks)] + ";");
            if (i + 1 == blocks) line("bra " + labels[random_.below(blocks)] + ";"); // else falls through
        }
        arms_ -= blocks > 1;
        line(end + ":");
    }

    void split(const Element& e, unsigned depth) {
        const std::string saved = "%m" + text_of(masks_++), otherwise = label("others"), end = label("joined");
        line("mov.b32 " + saved + ", %mask;");
        some_predicate("%n");
        line("vote.sync.ballot.b32 %mask, %n, " + saved + ";");
        line("@!%n bra " + otherwise + ";");
        body(e.first, depth + 1);
        line("bra " + end + ";");
        line(otherwise + ":");
        line("not.b32 %mask, %mask; and.b32 %mask, %mask, " + saved + ";");
        body(e.second, depth + 1);
        line(end + ":");
        line("mov.b32 %mask, " + saved + ";");
    }

    /// Passes all of `list` in order, some of it in the arms of branches.
    void body(const Elements& list, unsigned depth) {
        std::size_t next = 0;
        some_arithmetic();
        while (next < list.size()) {
            const std::size_t most = list.size() - next;
            if (depth < most_depth && random_.below(2)) {
                const std::size_t count = arms_meet_ ? random_.below(unsigned(most) + 1) : 0;
                arms(Elements(list.begin() + std::ptrdiff_t(next), list.begin() + std::ptrdiff_t(next + count)), depth);
                next += count;
                if (count != 0) continue;
            }
            pass(list[next++], depth);
            some_arithmetic();
        }
    }

    void arms(const Elements& list, unsigned depth) {
        const unsigned count = 2 + (random_.below(4) == 0);
        std::string labels[3], targets;
        for (unsigned i = 0; i < count; ++i) {
            labels[i] = label("arm");
            targets += (i ? ", " : "") + labels[i];
        }
        const std::string end = label("join");
        if (count == 2) {
            some_predicate("%n");
            line("@%n bra " + labels[1] + ";");
        } else {
            const std::string ways = label("ways");
            line(ways + ": .branchtargets " + targets + ";");
            line("rem.u32 %x, " + word() + ", " + text_of(count) + "; brx.idx %x, " + ways + ";");
        }
        ++arms_;
        for (unsigned i = 0; i < count; ++i) {
            line(labels[i] + ":");
            body(list, depth + 1);
            arithmetic();
            if (i + 1 < count) line("bra " + end + ";");
        }
        --arms_;
        line(end + ":");
    }

    /// Some lanes leave; those that stay go on with the whole mask, in what does not read from a lane.
    void leave_early() {
        if (random_.below(2)) return;
        some_predicate("%n");
        line("@%n bra $finish" + name_ + ";");
        static constexpr Kind kinds[] = {Kind::ballot, Kind::choose, Kind::match_any, Kind::reduce, Kind::cta_reduce, Kind::call};
        for (unsigned i = 1 + random_.below(3); i != 0; --i) {
            Element e{};
            e.kind = kinds[random_.below(std::size(kinds))];
            e.variant = random_.below(8);
            simple(e);
            some_arithmetic();
        }
    }

    // --- frame -----------------------------------------------------------------------------------

    std::string function() const {
        return ".func (.reg .b32 %result) f" + name_ + "(.reg .b32 %value, .reg .b32 %members)\n{\n.reg .pred %q; .reg .b32 %z;\n"
               "and.b32 %z, %value, 5; setp.ne.u32 %q, %z, 0; vote.sync.ballot.b32 %result, %q, %members;\n"
               "add.u32 %result, %result, %value; ret;\n}\n";
    }
    std::string head() const {
        std::string text = ".visible .entry k" + name_ + "(.param .u64 pout)\n{\n.reg .b32 %r<" + text_of(words) + ">, %x, %y, %t, %cta, %mask, %mine, %row, %tile; .reg .pred %p<" +
                           text_of(predicates) + ">, %n; .reg .b32 %c<" + text_of(counters_ + 1) + ">, %m<" + text_of(masks_ + 1) + ">; .reg .b64 %out;\n" +
                           ".shared .align 4 .b8 tile[512];\nmov.u32 %t, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %tile, tile;\n"
                           "shl.b32 %mine, %t, 2; add.u32 %mine, %mine, %tile; and.b32 %row, %mine, 0xffffff80; st.shared.u32 [%mine], %t;\n"
                           "and.b32 %x, %t, 0xffffffe0; sub.u32 %x, " + text_of(program_.block) + ", %x; min.u32 %x, %x, 32; sub.u32 %x, 32, %x;\n"
                           "mov.u32 %mask, 0xffffffff; shr.u32 %mask, %mask, %x;\n"
                           "mad.lo.u32 %x, %cta, " + text_of(program_.block) + ", %t; ld.param.u64 %out, [pout]; mad.wide.u32 %out, %x, 8, %out; mul.lo.u32 %x, %x, 0x9e3779b1;\n";
        for (unsigned i = 0; i < words; ++i)
            text += "mad.lo.u32 %r" + text_of(i) + ", %x, " + text_of(2 * i + 1) + ", " + text_of(i * 77 + 5) + "; shr.u32 %y, %r" + text_of(i) + ", 15; xor.b32 %r" + text_of(i) + ", %r" + text_of(i) + ", %y;\n";
        for (unsigned i = 0; i < predicates; ++i) text += "and.b32 %y, %r" + text_of(i) + ", 1; setp.eq.u32 %p" + text_of(i) + ", %y, 0;\n";
        return text + "bar.sync 0;\n";
    }
    std::string tail() const {
        std::string text = "$finish" + name_ + ":\nmov.u32 %x, 0x811c9dc5; mov.u32 %y, %mask;\n";
        for (unsigned i = 0; i < words; ++i) text += "xor.b32 %x, %x, %r" + text_of(i) + "; mul.lo.u32 %x, %x, 0x01000193; mad.lo.u32 %y, %y, 31, %r" + text_of(i) + ";\n";
        for (unsigned i = 0; i < predicates; ++i) text += "@%p" + text_of(i) + " add.u32 %y, %y, " + text_of(1u << (4 * i)) + ";\n";
        return text + "st.global.v2.u32 [%out], {%x, %y};\nret;\n}\n";
    }

    recordings::Random random_;
    std::string name_, text_;
    Program program_;
    bool arms_meet_ = true; ///< the arms of a branch hold elements, else only one of them does, under a mask of its own
    unsigned arms_ = 0; ///< around the statement at hand
    unsigned labels_ = 0, counters_ = 0, masks_ = 0;
};

} // namespace

const char* const program_head = ".version 8.0\n.target sm_90\n.address_size 64\n";

Program generate(std::uint32_t seed) { return Generator(seed).run(); }

} // namespace divergence
