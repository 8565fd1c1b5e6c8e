// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analysis/random_program.h"

#include <random>
#include <vector>

namespace ptarmigan::test {
namespace {

class Generator {
public:
    Generator(std::uint32_t seed, bool with_barriers) : random_(seed), with_barriers_(with_barriers), is_debug_(seed % 2 == 1) {}

    std::string run() {
        for (int r = 0; r < registers; ++r) line("mov.u32 " + reg(r) + ", " + initial(r) + ";");
        for (int p = 0; p < predicates; ++p) compare(p);
        block(0, true);
        for (int r = 0; r < registers; ++r) store(r);
        line("ret;");
        return std::string(".version 8.0\n.target sm_90") + (is_debug_ ? ", debug" : "") + "\n.address_size 64\n"
               ".visible .entry k(.param .u32 p0, .param .u32 p1, .param .u32 p2, .param .u32 p3, .param .u64 out)\n{\n"
               ".reg .b32 %r<8>;\n.reg .b32 %c<" + std::to_string(loops_ + 1) + ">;\n.reg .b64 %rd<6>;\n.reg .pred %p<5>;\n"
               ".reg .pred %q<" + std::to_string(loops_ + 1) + ">;\n.reg .b32 %t<4>, %u<3>;\n.reg .b64 %base;\n"
               // Each thread stores to 2048 bytes of its own.
               "mov.u32 %t0, %tid.x;\nmov.u32 %t1, %tid.y;\nmov.u32 %t2, %ntid.x;\nmad.lo.u32 %t3, %t1, %t2, %t0;\n"
               "ld.param.u64 %base, [out];\nmad.wide.u32 %rd0, %t3, 2048, %base;\n"
               "mov.u64 %rd1, 5;\nmov.u64 %rd2, 7;\nmov.u64 %rd3, 11;\n" + loads_ + text_ + "}\n";
    }

private:
    static constexpr int registers = 8, predicates = 5, max_depth = 4;
    struct Loop { std::string next, end; };

    unsigned pick(unsigned n) { return random_() % n; }
    static std::string reg(int r) { return "%r" + std::to_string(r); }
    static std::string wide(int r) { return "%rd" + std::to_string(r); }
    static std::string pred(int p) { return "%p" + std::to_string(p); }
    std::string any() { return reg(int(pick(registers))); }
    std::string any_or_number() { return pick(3) == 0 ? std::to_string(int(pick(9)) - 3) : any(); }
    void line(const std::string& statement) { text_ += statement + "\n"; }

    std::string initial(int r) {
        switch (r) {
        case 0: return "%tid.x";
        case 1: return "%tid.y";
        case 2: return "%laneid";
        case 3: loads_ += "ld.param.u32 %r3, [p0];\n"; return "%r3";
        case 4: loads_ += "ld.param.u32 %r4, [p1];\n"; return "%r4";
        case 5: return "%ctaid.x";
        default: return std::to_string(pick(100));
        }
    }
    void store(int r) { line("st.global.u32 [%rd0+" + std::to_string(4 * stores_++) + "], " + reg(r) + ";"); }
    void compare(int p) {
        static const char* operators[] = {"eq", "ne", "lt", "le", "gt", "ge"};
        static const char* combined[] = {"and", "or", "xor", "not"};
        if (const unsigned how = pick(16); how < 4) // of what is known already
            return line(std::string(combined[how]) + ".pred " + pred(p) + ", " + pred(int(pick(predicates))) +
                        (how == 3 ? "" : ", " + pred(int(pick(predicates)))) + ";");
        line("setp." + std::string(operators[pick(6)]) + ".s32 " + pred(p) + ", " + any() + ", " + any_or_number() + ";");
    }
    void arithmetic(bool guarded) {
        std::string guard = guarded ? std::string(pick(2) ? "@" : "@!") + pred(int(pick(predicates))) + " " : "";
        std::string d = reg(int(pick(registers)));
        switch (pick(14)) {
        case 0: case 1: case 2: line(guard + "add.s32 " + d + ", " + any() + ", " + any_or_number() + ";"); break;
        case 3: line(guard + "sub.s32 " + d + ", " + any() + ", " + any_or_number() + ";"); break;
        case 4: line(guard + "mul.lo.s32 " + d + ", " + any() + ", " + any_or_number() + ";"); break;
        case 5: line(guard + "mad.lo.s32 " + d + ", " + any() + ", " + any_or_number() + ", " + any() + ";"); break;
        case 6: line(guard + "shl.b32 " + d + ", " + any() + ", " + std::to_string(pick(5)) + ";"); break;
        case 7: line(guard + "selp.b32 " + d + ", " + any() + ", " + any_or_number() + ", " + pred(int(pick(predicates))) + ";"); break;
        case 8: line(guard + "and.b32 " + d + ", " + any() + ", " + std::to_string(pick(64)) + ";"); break;
        case 9: line(guard + "mov.u32 " + d + ", " + any_or_number() + ";"); break;
        case 10: line(guard + "cvt.s64.s32 " + wide(1 + int(pick(3))) + ", " + any() + ";"); break;
        case 11: line(guard + "mul.wide.s32 " + wide(1 + int(pick(3))) + ", " + any() + ", " + std::to_string(pick(9)) + ";"); break;
        case 12: line(guard + "add.s64 " + wide(1 + int(pick(3))) + ", " + wide(1 + int(pick(3))) + ", " + wide(1 + int(pick(3))) + ";"); break;
        default: line(guard + "cvt.u32.u64 " + d + ", " + wide(1 + int(pick(3))) + ";"); break;
        }
    }
    /// A register that is written and read under one predicate only, and undefined elsewhere.
    void guarded_temporary() {
        static const char* operators[] = {"add.s32 ", "sub.s32 ", "mul.lo.s32 ", "mul.lo.s32 "};
        std::string guard = std::string(pick(2) ? "@" : "@!") + pred(int(pick(predicates))) + " ";
        std::string temporary = "%u" + std::to_string(pick(3)), d = reg(int(pick(registers)));
        line(guard + operators[pick(4)] + temporary + ", " + any() + ", " + any_or_number() + ";");
        line(guard + (pick(2) ? "mov.b32 " + d + ", " : "add.s32 " + d + ", " + any() + ", ") + temporary + ";");
    }
    /// As machine code has `if (p) { ... }`: all of it under one predicate, with other things between.
    void guarded_stores() {
        std::string guard = std::string(pick(2) ? "@" : "@!") + pred(int(pick(predicates))) + " ";
        for (unsigned i = 0; i < 4; ++i) {
            line(guard + "st.global.u32 [%rd0+" + std::to_string(4 * stores_++) + "], " + any() + ";");
            if (pick(2)) arithmetic(false);
            if (const std::string temporary = "%u" + std::to_string(pick(3)); pick(2)) {
                line(guard + "add.s32 " + temporary + ", " + any() + ", " + any() + ";");
                if (pick(2)) arithmetic(false);
                line(guard + "mov.b32 " + any() + ", " + temporary + ";");
            }
            if (pick(6) == 0) compare(int(pick(predicates)));
            if (pick(6) == 0) store(int(pick(registers)));
        }
    }
    std::string label(const char* kind) { return std::string("$") + kind + std::to_string(labels_++); }

    void conditional(int depth) {
        std::string otherwise = label("else"), end = label("end");
        line(std::string(pick(2) ? "@" : "@!") + pred(int(pick(predicates))) + " bra " + otherwise + ";");
        block(depth + 1, false);
        if (pick(2)) line("bra " + end + ";");
        line(otherwise + ":");
        if (pick(2)) block(depth + 1, false);
        line(end + ":");
    }
    void loop(int depth, bool uniform) {
        int id = loops_++;
        std::string counter = "%c" + std::to_string(id), more = "%q" + std::to_string(id);
        std::string head = label("head");
        Loop loop{label("next"), label("done")};
        line("mov.u32 " + counter + ", 0;");
        std::string bound = std::to_string(1 + pick(4));
        // Entered in its middle by a branch that the translator knows to be taken.
        std::string middle = pick(3) == 0 ? label("middle") : "";
        if (!middle.empty()) {
            std::string known = counter, number = "0";
            if (pick(2)) {
                known = "%c" + std::to_string(loops_++);
                number = "1";
                line("mov.u32 " + known + ", %ntid.z;");
            }
            line("setp.eq.u32 " + more + ", " + known + ", " + number + ";");
            line("@" + more + " bra " + middle + ";");
        }
        line(head + ":");
        loops_open_.push_back(loop);
        block(depth + 1, uniform);
        if (!middle.empty()) {
            if (pick(2)) line("@" + pred(int(pick(predicates))) + " bra " + middle + ";"); // may be a second back edge's source
            line(middle + ":");
            block(depth + 1, uniform);
        }
        loops_open_.pop_back();
        line(loop.next + ":");
        line("add.s32 " + counter + ", " + counter + ", 1;");
        if (uniform) line("setp.lt.u32 " + more + ", " + counter + ", " + bound + ";");
        else {
            std::string limit = "%c" + std::to_string(loops_++); // how often differs between lanes, or not
            line("and.b32 " + limit + ", " + any() + ", 3;");
            line("setp.lt.u32 " + more + ", " + counter + ", " + limit + ";");
        }
        line("@" + more + " bra " + head + ";");
        line(loop.end + ":");
    }
    void leave() {
        std::string guard = std::string(pick(2) ? "@" : "@!") + pred(int(pick(predicates)));
        if (loops_open_.empty() || pick(6) == 0) line(guard + " ret;");
        else {
            const Loop& loop = loops_open_[pick(unsigned(loops_open_.size()))];
            line(guard + " bra " + (pick(2) ? loop.next : loop.end) + ";");
        }
    }
    void block(int depth, bool uniform) {
        unsigned count = 2 + pick(5);
        for (unsigned i = 0; i < count; ++i) {
            switch (unsigned kind = pick(16)) {
            case 0: case 1: compare(int(pick(predicates))); break;
            case 2: case 3: if (depth < max_depth) conditional(depth); break;
            case 4: case 5: if (depth < max_depth) loop(depth, with_barriers_ ? uniform && pick(2) : kind == 4 && pick(2)); break;
            case 6: if (!with_barriers_ || pick(4) == 0) leave(); break;
            case 7: store(int(pick(registers))); break;
            case 8: if (with_barriers_ && uniform) line("bar.sync 0;"); break;
            case 9: arithmetic(true); break;
            case 10: if (pick(3) == 0) guarded_stores(); else if (pick(2)) arithmetic(true); else guarded_temporary(); break;
            default: arithmetic(false); break;
            }
        }
    }

    std::mt19937 random_;
    bool with_barriers_, is_debug_;
    std::string text_, loads_;
    int labels_ = 0, loops_ = 0, stores_ = 0;
    std::vector<Loop> loops_open_;
};

} // namespace

std::string random_program(std::uint32_t seed, bool with_barriers) { return Generator(seed, with_barriers).run(); }

} // namespace ptarmigan::test
