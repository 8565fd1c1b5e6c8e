// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/programs/generator.h"

#include "tests/recordings/programs/drawn_text.h"
#include "tests/recordings/random.h"

#include <iterator>

namespace random_programs {
namespace {

std::string text_of(unsigned number) { return std::to_string(number); }

constexpr unsigned halves = 6, words = 10, doubles = 8, predicates = 5;

class Generator {
public:
    Generator(std::uint32_t seed, const std::vector<Form>& forms, const std::set<unsigned>& without, Outcome outcome)
        : outcome_(outcome), random_(recordings::Random(seed).bits()), forms_(forms), without_(without), name_(text_of(seed)) {}

    Program run() {
        static constexpr unsigned shapes[][3] = {{2, 32, 1}, {1, 64, 1}, {2, 48, 1}, {1, 16, 6}, {2, 96, 1}, {3, 40, 1}, {1, 8, 8}};
        const auto& shape = shapes[random_.below(std::size(shapes))];
        program_.grid = shape[0], program_.block_x = shape[1], program_.block_y = shape[2];
        for (unsigned i = 0; i < functions; ++i) function(i);
        block(5 + random_.below(7), 0, true);
        may_leave_ = true; // no barriers and collectives from here on
        block(2 + random_.below(4), 0, false);
        std::string kernel;
        kernel.swap(text_);
        program_.text = functions_ + entry_head() + kernel + entry_tail();
        return program_;
    }

private:
    static constexpr unsigned functions = 2, max_depth = 3, local_bytes = 128;

    void line(const std::string& text) { text_ += text + "\n"; }
    std::string label(const char* kind) { return std::string("$") + kind + name_ + "_" + text_of(labels_++); }
    DrawnText number(unsigned count) {
        return DrawnText([this, count] { return text_of(random_.below(count)); });
    }
    DrawnText one_of(const char* first, const char* second) {
        return DrawnText([=, this] { return std::string(random_.below(2) ? first : second); });
    }
    DrawnText half() { return "%h" + number(halves); }
    DrawnText word() { return "%r" + number(words); }
    DrawnText wide() { return "%q" + number(doubles); }
    DrawnText predicate() { return "%p" + number(predicates); }
    DrawnText guard() {
        return DrawnText([this]() -> std::string {
            if (random_.below(6) != 0) return "";
            return one_of("@", "@!") + predicate() + " ";
        });
    }

    std::string operand(const std::string& type) {
        if (type.rfind("imm", 0) == 0) return type.substr(3);
        if (type == "pred") return predicate();
        const unsigned bits = type == "bf16" ? 16 : unsigned(std::stoi(type.substr(1)));
        return bits == 64 ? wide() : bits == 16 ? half() : word();
    }

    // --- statements ------------------------------------------------------------------------------

    /// Forms that take a hundred instructions and more come up less often.
    const Form& any_form() {
        const Form& form = forms_[random_.below(unsigned(forms_.size()))];
        return form.is_long() && random_.below(4) ? forms_[random_.below(unsigned(forms_.size()))] : form;
    }

    void arithmetic() {
        const Form& form = any_form();
        const std::string target = operand(form.result), prefix = guard();
        std::string text = prefix + form.statement + " " + target;
        std::string previous;
        for (const std::string& source : form.sources) {
            std::string chosen = operand(source);
            while (form.needs_different_operands() && chosen == previous) chosen = operand(source);
            text += ", " + chosen;
            previous = chosen;
        }
        line(text + ";");
        if (!form.may_choose_a_nan()) return;
        const bool is_double = form.result == "f64";
        line("setp.nan." + form.result + " %n, " + target + ", " + target + ";");
        line(std::string("selp.b") + (is_double ? "64 " : "32 ") + target + (is_double ? ", 0x7ff8000000000000, " : ", 0x7fffffff, ") + target + ", %n;");
    }

    void reload() {
        const std::string place = "[%in+" + text_of(8 * random_.below(64)) + "]";
        switch (random_.below(4)) {
        case 0: line("ld.global.b64 " + wide() + ", " + place + ";"); break;
        case 1: line("ld.global.b32 " + word() + ", " + place + ";"); break;
        case 2: line("ld.global.b16 " + half() + ", " + place + ";"); break;
        default: line("ld.global.v2.b32 {" + word() + ", %x0}, " + place + ";");
        }
    }

    void moves() {
        switch (random_.below(7)) {
        case 0: line("mov.b64 " + wide() + ", {" + word() + ", " + word() + "};"); break;
        case 1: {
            const std::string first = word();
            line("mov.b64 {" + first + ", %x0}, " + wide() + ";");
            line("mov.b32 " + word() + ", %x0;");
            break;
        }
        case 2: line("mov.b32 " + word() + ", {" + half() + ", " + half() + "};"); break;
        case 3: line("mov.b32 {" + half() + ", %x1}, " + word() + ";"); break;
        case 4: line(guard() + "mov.b32 " + word() + ", " + word() + ";"); break;
        case 5: line("selp.b64 " + wide() + ", " + wide() + ", " + wide() + ", " + predicate() + ";"); break;
        default: line("setp.lt.s32 " + predicate() + ", " + word() + ", " + word() + ";");
        }
    }

    /// A thread's own memory, local or global, at a random place: wide and narrow accesses overlap.
    void own_memory() {
        const bool local = random_.below(2) || in_function_;
        const std::string space = local ? "local" : "global";
        const unsigned size = 1u << random_.below(4);
        line("and.b32 %x0, " + word() + ", " + text_of((local ? local_bytes : scratch_bytes) - size) + ";");
        line("and.b32 %x0, %x0, " + text_of(~(size - 1) & 0xff) + ";");
        line("cvt.u64.u32 %a0, %x0;");
        line(std::string("add.u64 %a0, %a0, ") + (local ? "%local" : "%scratch") + ";");
        static constexpr const char* types[] = {"u8", "b16", "b32", "b64"};
        const std::string type = types[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
        const std::string value = size == 8 ? wide() : size == 4 ? word() : half();
        if (random_.below(2)) line(guard() + "st." + space + "." + type + " [%a0], " + value + ";");
        else line(guard() + "ld." + space + "." + type + " " + value + ", [%a0];");
    }

    void sum_in_memory() {
        line("and.b32 %x0, " + word() + ", 15;");
        line("mad.wide.u32 %a0, %x0, 4, %common;");
        line(guard() + "red.global.add.u32 [%a0], " + word() + ";");
    }

    void call() {
        const std::string a = word(), b = wide(), result = word();
        if (random_.below(3)) {
            line(guard() + "call (" + result + "), f" + name_ + "_" + number(functions) + ", (" + a + ", " + b + ", %in);");
            return;
        }
        // Through a pointer, which differs from lane to lane.
        line("setp.ge.s32 %n, " + word() + ", 0;");
        line("mov.u64 %a0, f" + name_ + "_0;");
        line("mov.u64 %a1, f" + name_ + "_" + text_of(1) + ";");
        line("selp.b64 %a0, %a0, %a1, %n;");
        line("call (" + result + "), %a0, (" + a + ", " + b + ", %in), prototype;");
    }

    // --- where all threads of the CTA meet -------------------------------------------------------

    void exchange() {
        // Every thread has 8 bytes; reads come from another thread's.
        line("st.shared.b64 [%mine], " + wide() + ";");
        line("bar.sync 0;");
        line("xor.b32 %x0, %t, " + text_of(1 + random_.below(31)) + ";");
        line("rem.u32 %x0, %x0, %threads;");
        line("shl.b32 %x0, %x0, 3;");
        line("add.u32 %x0, %x0, %tile;");
        line("ld.shared.b64 " + wide() + ", [%x0];");
        line("bar.sync 0;");
    }

    void collective() {
        switch (random_.below(8)) {
        // Only from lanes that exist: the last warp of some shapes has 8.
        case 0: line("shfl.sync.bfly.b32 " + word() + "|" + predicate() + ", " + word() + ", " + number(8) + ", 0x1f, %mask;"); break;
        case 1: line("shfl.sync.up.b32 " + word() + ", " + word() + ", " + number(5) + ", 0, %mask;"); break;
        case 2: line("and.b32 %x0, " + word() + ", 7;"); line("shfl.sync.idx.b32 " + word() + ", " + word() + ", %x0, 0x1f, %mask;"); break;
        case 3: line("vote.sync.ballot.b32 " + word() + ", " + predicate() + ", %mask;"); break;
        case 4: line("vote.sync." + one_of("any", "all") + ".pred " + predicate() + ", " + predicate() + ", %mask;"); break;
        case 5: line("and.b32 %x0, " + word() + ", 3;"); line("match.any.sync.b32 " + word() + ", %x0, %mask;"); break;
        case 6: line("redux.sync." + one_of("add", "max") + ".s32 " + word() + ", " + word() + ", %mask;"); break;
        default: line("barrier.cta.red.popc.aligned.u32 " + word() + ", 0, " + predicate() + ";");
        }
    }

    // --- control flow ----------------------------------------------------------------------------

    void conditional(unsigned depth, bool together) {
        const std::string otherwise = label("else"), end = label("end");
        if (together) line("setp.eq.u32 %n, %cta, " + text_of(random_.below(3)) + ";");
        line((together ? DrawnText("@%n") : one_of("@", "@!") + predicate()) + " bra " + otherwise + ";");
        block(1 + random_.below(5), depth + 1, together);
        if (random_.below(2)) {
            line("bra " + end + ";");
            line(otherwise + ":");
            block(1 + random_.below(4), depth + 1, together);
        } else {
            line(otherwise + ":");
        }
        line(end + ":");
    }

    void loop(unsigned depth, bool together) {
        const std::string head = label("loop"), end = label("done"), counter = "%c" + text_of(depth);
        if (together) line("mov.u32 " + counter + ", " + text_of(1 + random_.below(3)) + ";");
        else line("and.b32 " + counter + ", " + word() + ", 3;");
        line(head + ":");
        block(1 + random_.below(5), depth + 1, together);
        if (!together && random_.below(2)) line("@" + predicate() + " bra " + end + ";");
        line("sub.u32 " + counter + ", " + counter + ", 1;");
        line("setp.gt.s32 %n, " + counter + ", 0;");
        line("@%n bra " + head + ";");
        line(end + ":");
    }

    void choice(unsigned depth) {
        const std::string end = label("end"), list = label("targets");
        std::string targets[3];
        for (std::string& target : targets) target = label("case");
        line("and.b32 %x0, " + word() + ", 3;");
        line("min.u32 %x0, %x0, 2;");
        line(list + ": .branchtargets " + targets[0] + ", " + targets[1] + ", " + targets[2] + ";");
        line("brx.idx %x0, " + list + ";");
        for (const std::string& target : targets) {
            line(target + ":");
            block(1 + random_.below(3), depth + 1, false);
            if (random_.below(3)) line("bra " + end + ";"); // else falls through
        }
        line(end + ":");
    }

    /// `together`: all threads of the CTA are here.
    void statement(unsigned depth, bool together) {
        const unsigned kind = random_.below(100);
        if (kind < 52) arithmetic();
        else if (kind < 58) reload();
        else if (kind < 64) moves();
        else if (kind < 71) own_memory();
        else if (kind < 73 && !in_function_) sum_in_memory();
        else if (kind < 76 && !in_function_) call();
        else if (kind < 82 && together) exchange();
        else if (kind < 88 && together) collective();
        else if (kind < 90 && may_leave_) line("@" + predicate() + " bra $finish" + name_ + ";");
        else if (depth >= max_depth) arithmetic();
        else if (kind < 94) conditional(depth, together && random_.below(2));
        else if (kind < 98) loop(depth, together && random_.below(2));
        else choice(depth);
    }

    void block(unsigned count, unsigned depth, bool together) {
        for (unsigned i = 0; i < count; ++i) {
            const unsigned number = program_.statements++;
            std::string before = text_;
            statement(depth, together);
            if (without_.contains(number)) text_ = std::move(before);
        }
    }

    // --- frame -----------------------------------------------------------------------------------

    static std::string declarations() {
        return ".reg .b16 %h<" + text_of(halves) + ">, %x1; .reg .b32 %r<" + text_of(words) + ">, %x0; .reg .b64 %q<" + text_of(doubles) +
               ">, %a0, %a1; .reg .pred %p<" + text_of(predicates) + ">, %n; .reg .b32 %c<" + text_of(max_depth + 1) +
               ">, %t, %cta, %threads, %thread, %mask, %mine, %tile; .reg .b64 %in, %out, %scratch, %common, %local;\n" +
               ".local .align 8 .b8 own[" + text_of(local_bytes) + "];\n";
    }

    /// Registers start as edge values that differ between threads; local memory as zero.
    static std::string initial() {
        std::string text;
        for (unsigned i = 0; i < halves; ++i) text += "ld.global.b16 %h" + text_of(i) + ", [%in+" + text_of(8 * i + 2 * (i % 4)) + "];\n";
        for (unsigned i = 0; i < words; ++i) text += "ld.global.b32 %r" + text_of(i) + ", [%in+" + text_of(64 + 8 * i) + "];\n";
        for (unsigned i = 0; i < doubles; ++i) text += "ld.global.b64 %q" + text_of(i) + ", [%in+" + text_of(160 + 8 * i) + "];\n";
        for (unsigned i = 0; i < predicates; ++i) text += "setp.gt.s32 %p" + text_of(i) + ", %r" + text_of(i) + ", %r" + text_of(i + 3) + ";\n";
        text += "mov.u64 %local, own;\n";
        for (unsigned i = 0; i < local_bytes; i += 8) text += "st.local.b64 [%local+" + text_of(i) + "], 0;\n";
        return text;
    }

    std::string entry_head() {
        return ".visible .entry k" + name_ + "(.param .u64 pin, .param .u64 pout, .param .u64 pscratch)\n{\n" + declarations() +
               ".shared .align 8 .b8 tile[" + text_of(8 * max_threads) + "];\nprototype: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b64 _, .reg .b64 _);\n" +
               "mov.u32 %x0, %tid.y; mov.u32 %t, %ntid.x; mov.u32 %thread, %tid.x; mad.lo.u32 %t, %x0, %t, %thread;\n"
               "mov.u32 %threads, %ntid.x; mov.u32 %x0, %ntid.y; mul.lo.u32 %threads, %threads, %x0;\n"
               "mov.u32 %cta, %ctaid.x; mad.lo.u32 %thread, %cta, %threads, %t;\n"
               // Lanes of this warp that exist.
               "and.b32 %x0, %t, 0xffffffe0; sub.u32 %x0, %threads, %x0; min.u32 %x0, %x0, 32; sub.u32 %x0, 32, %x0;\n"
               "mov.u32 %mask, 0xffffffff; shr.u32 %mask, %mask, %x0;\n"
               "mov.u32 %tile, tile; shl.b32 %mine, %t, 3; add.u32 %mine, %mine, %tile; mov.b64 %q0, 0; st.shared.b64 [%mine], %q0; bar.sync 0;\n"
               "ld.param.u64 %in, [pin]; mul.lo.u32 %x0, %thread, 37; and.b32 %x0, %x0, 127; mad.wide.u32 %in, %x0, 8, %in;\n"
               "ld.param.u64 %out, [pout]; mad.wide.u32 %out, %thread, 8, %out;\n"
               "ld.param.u64 %scratch, [pscratch]; add.u64 %common, %scratch, " + text_of(scratch_bytes * max_threads) +
               "; mad.wide.u32 %scratch, %thread, " + text_of(scratch_bytes) + ", %scratch;\n" + initial();
    }

    /// Stores a hash of all registers and of local memory, or the registers.
    std::string entry_tail() const {
        std::string text = "$finish" + name_ + ":\nmov.u64 %a0, 0xcbf29ce484222325;\n";
        const bool hashes = outcome_ == Outcome::hash;
        if (!hashes) text += "cvt.u64.u32 %a0, %thread;\nmad.lo.u64 %out, %a0, " + text_of(8 * (register_words - 1)) + ", %out;\n";
        unsigned place = 0;
        const auto take = [&](const std::string& value) {
            if (hashes) text += "xor.b64 %a0, %a0, " + value + "; mul.lo.u64 %a0, %a0, 0x100000001b3;\n";
            else text += "st.global.u64 [%out+" + text_of(8 * place++) + "], " + value + ";\n";
        };
        for (const std::string& name : register_names()) {
            if (name[1] == 'r') text += "cvt.u64.u32 %a1, " + name + ";\n";
            if (name[1] == 'h') text += "cvt.u64.u16 %a1, " + name + ";\n";
            if (name[1] == 'p') text += "selp.u64 %a1, 1, 0, " + name + ";\n";
            take(name[1] == 'q' ? name : "%a1");
        }
        if (!hashes) return text + "ret;\n}\n";
        for (unsigned i = 0; i < local_bytes; i += 8) {
            text += "ld.local.b64 %a1, [%local+" + text_of(i) + "];\n";
            take("%a1");
        }
        return text + "st.global.u64 [%out], %a0;\nret;\n}\n";
    }

    /// Functions have registers and local memory of their own; a word, a double and where to find more come in, a word goes out.
    void function(unsigned number) {
        in_function_ = true;
        block(2 + random_.below(3), 1, false);
        in_function_ = false;
        std::string body;
        body.swap(text_);
        functions_ += ".func (.reg .b32 %result) f" + name_ + "_" + text_of(number) + "(.reg .b32 %first, .reg .b64 %second, .reg .b64 %data)\n{\n" + declarations();
        functions_ += "mov.b64 %in, %data;\n" + initial() + "mov.b32 %r0, %first;\nmov.b64 %q0, %second;\n";
        functions_ += body;
        functions_ += "xor.b32 %result, %r0, %r1;\nxor.b32 %result, %result, %r2;\ncvt.u32.u64 %x0, %q0;\nadd.u32 %result, %result, %x0;\nret;\n}\n";
    }

    Outcome outcome_;
    recordings::Random random_;
    const std::vector<Form>& forms_;
    const std::set<unsigned>& without_;
    std::string name_, text_, functions_;
    Program program_;
    unsigned labels_ = 0;
    bool may_leave_ = false, in_function_ = false;
};

} // namespace

std::vector<std::string> register_names() {
    std::vector<std::string> names;
    const auto add = [&](const char* prefix, unsigned count) {
        for (unsigned i = 0; i < count; ++i) names.push_back(prefix + text_of(i));
    };
    add("%q", doubles);
    add("%r", words);
    add("%h", halves);
    add("%p", predicates);
    return names;
}

Program generate(std::uint32_t seed, const std::vector<Form>& forms, const std::set<unsigned>& without, Outcome outcome) {
    return Generator(seed, forms, without, outcome).run();
}

} // namespace random_programs
