// SPDX-License-Identifier: Apache-2.0
// Branches, loops with one and with several entries, switches, calls, and which statement comes next.
#include "tests/tools/fuzz/builder.h"

namespace fuzz {

/// A predicate. `uniform`: the same in all threads of the CTA; sometimes one that is known when the kernel is compiled.
std::string Builder::condition(bool uniform) {
    switch (random_.below(uniform ? 5 : 9)) {
    case 0: line("setp.eq.u32 %n, %cta, " + text_of(random_.below(3)) + ";"); break;
    case 1: line("mov.u32 %x0, %ntid.y; setp.gt.u32 %n, %x0, " + text_of(random_.below(2)) + ";"); break;
    case 2: line("mov.u32 %x0, " + text_of(random_.below(4)) + "; setp.lt.u32 %n, %x0, 2;"); break;
    case 3: line("setp.lt.u32 %n, %t, 1024;"); break;
    case 4: line("ld.global.b32 %x0, [%start+" + text_of(4 * random_.below(512)) + "]; setp.lt.s32 %n, %x0, 0;"); break;
    case 5: line("and.b32 %x0, %t, " + text_of(1u << random_.below(6)) + "; setp.eq.u32 %n, %x0, 0;"); break;
    case 6: line("setp.lt.u32 %n, %t, " + text_of(random_.below(64)) + ";"); break;
    default: return predicate();
    }
    return "%n";
}

void Builder::conditional(const Situation& here) {
    const bool uniform = !here.members.empty() && one_in(2);
    const Situation inner = uniform ? here.inside() : here.apart();
    const std::string otherwise = label("else"), end = label("end"), taken = condition(uniform);
    const char* branch = uniform && one_in(3) ? " bra.uni " : " bra ";
    line(guarded_by(taken) + branch + otherwise + ";");
    block(1 + random_.below(4), inner);
    if (one_in(2)) {
        line("bra " + end + ";");
        line(otherwise + ":");
        block(1 + random_.below(3), inner);
    } else {
        line(otherwise + ":");
    }
    line(end + ":");
}

void Builder::loop(const Situation& here) {
    const bool uniform = !here.members.empty() && one_in(2);
    const Situation inner = uniform ? here.inside() : here.apart();
    const std::string head = label("loop"), next = label("next"), end = label("done"), counter = "%c" + text_of(here.depth);
    const unsigned kind = random_.below(3);
    if (kind == 0) line("mov.u32 " + counter + ", " + text_of(1 + random_.below(3)) + ";");
    else if (kind == 1) line("ld.global.b32 " + counter + ", [%start+" + text_of(4 * random_.below(512)) + "]; and.b32 " + counter + ", " + counter + ", 3;");
    else if (uniform) line("mov.u32 " + counter + ", %ntid.y; min.u32 " + counter + ", " + counter + ", 3;");
    else line("and.b32 " + counter + ", " + word() + ", 3;");
    const bool tests_first = one_in(2);
    if (tests_first) line("setp.eq.u32 %n, " + counter + ", 0; @%n bra " + end + ";");
    if (one_in(5)) line(guarded_by(condition(uniform)) + " bra " + next + ";"); // a second entry
    line(head + ":");
    block(1 + random_.below(4), inner);
    if (one_in(2)) {
        const std::string& target = one_in(2) ? next : end;
        line(guarded_by(condition(uniform)) + " bra " + target + ";");
    }
    if (one_in(3)) block(1 + random_.below(2), inner);
    line(next + ":");
    line("sub.u32 " + counter + ", " + counter + ", 1; setp.gt.s32 %n, " + counter + ", 0; @%n bra " + head + ";");
    line(end + ":");
}

/// Blocks that jump to each other at will, until a number of steps is done: loops with several entries.
void Builder::tangle(const Situation& here) {
    const bool uniform = !here.members.empty() && one_in(2);
    const Situation inner = uniform ? here.inside() : here.apart();
    const std::string counter = "%c" + text_of(here.depth), end = label("out");
    const unsigned count = 2 + random_.below(3);
    std::vector<std::string> labels;
    for (unsigned i = 0; i < count; ++i) labels.push_back(label("step"));
    line("mov.u32 " + counter + ", " + text_of(2 + random_.below(4)) + ";");
    for (unsigned i = random_.below(3); i != 0; --i) {
        const std::string& target = labels[random_.below(count)];
        line("@" + condition(uniform) + " bra " + target + ";");
    }
    for (unsigned i = 0; i < count; ++i) {
        line(labels[i] + ":");
        block(1 + random_.below(2), inner);
        line("sub.u32 " + counter + ", " + counter + ", 1; setp.eq.u32 %n, " + counter + ", 0; @%n bra " + end + ";");
        if (one_in(2)) {
            const std::string& target = labels[random_.below(count)];
            line(guarded_by(condition(uniform)) + " bra " + target + ";");
        }
        if (i + 1 == count) line("bra " + labels[random_.below(count)] + ";"); // else falls through
    }
    line(end + ":");
}

void Builder::choice(const Situation& here) {
    const bool uniform = !here.members.empty() && one_in(2);
    const Situation inner = uniform ? here.inside() : here.apart();
    const std::string end = label("end"), list = label("targets");
    const unsigned count = 2 + random_.below(3);
    std::vector<std::string> targets;
    std::string names;
    for (unsigned i = 0; i < count; ++i) {
        targets.push_back(label("case"));
        names += (i ? ", " : "") + targets.back();
    }
    line(list + ": .branchtargets " + names + ";");
    line("rem.u32 %x0, " + (uniform ? std::string("%cta") : word()) + ", " + text_of(count) + ";");
    line(std::string("brx.idx") + (uniform && one_in(2) ? ".uni" : "") + " %x0, " + list + ";");
    for (const std::string& target : targets) {
        line(target + ":");
        block(1 + random_.below(2), inner);
        if (!one_in(3)) line("bra " + end + ";"); // else falls through
    }
    line(end + ":");
}

/// The lanes with a predicate and those without go different ways and know of each other; both ways have collectives.
void Builder::split(const Situation& here) {
    const std::string some = "%m" + text_of(masks_++), others = "%m" + text_of(masks_++), otherwise = label("others"), end = label("joined");
    const std::string right = word(), left = word();
    line("setp.ne.u32 %n, " + left + ", " + right + ";");
    const unsigned remainder = random_.below(3), mask = 1 + random_.below(31);
    line("and.b32 %x0, %t, " + text_of(mask) + "; setp.eq.and.u32 %n, %x0, " + text_of(remainder) + ", %n;");
    line("vote.sync.ballot.b32 " + some + ", %n, " + here.members + ";");
    line("not.b32 " + others + ", " + some + "; and.b32 " + others + ", " + others + ", " + here.members + ";");
    line("@!%n bra " + otherwise + ";");
    Situation inner = here.apart();
    inner.members = some;
    block(1 + random_.below(4), inner);
    line("bra " + end + ";");
    line(otherwise + ":");
    inner.members = others;
    block(1 + random_.below(4), inner);
    line(end + ":");
}

void Builder::leave() {
    const std::string taken = guarded_by(condition(false));
    if (in_function_) line(taken + " ret;");
    else if (one_in(4)) line(taken + (one_in(2) ? " exit;" : " ret;")); // leaves nothing behind
    else line(taken + " bra $finish;");
}

/// A word, a double word, an array and where to find more go in; a word comes out.
void Builder::call() {
    const unsigned which = random_.below(functions + 1);
    const std::string condition = guard();
    std::string target = "f" + text_of(which);
    if (which == functions) { // through a pointer
        const std::string taken = this->condition(false);
        line("mov.u64 %a0, f0; mov.u64 %a1, f1; selp.b64 %a0, %a0, %a1, " + taken + ";");
        target = "%a0";
    }
    line("{ .param .b32 a0; .param .b64 a1; .param .b64 a2; .param .b64 a3; .param .align 8 .b8 a4[16]; .param .b32 r0;");
    line(which == 2 ? "and.b32 %x0, " + word() + ", 3; st.param.b32 [a0], %x0;" : "st.param.b32 [a0], " + word() + ";");
    line("st.param.b64 [a1], " + wide() + "; st.param.b64 [a2], %in; st.param.b64 [a3], %scratch;");
    if (one_in(2)) {
        const std::string third = wide(), second = word(), first = word();
        line("st.param.v2.b32 [a4], {" + first + ", " + second + "}; st.param.b64 [a4+8], " + third + ";");
    } else {
        const std::string third = word(), second = writer_.any_register(ScalarType::b16), first = wide();
        line("st.param.b64 [a4], " + first + "; st.param.b16 [a4+8], " + second + "; st.param.b16 [a4+10], 7; st.param.b32 [a4+12], " + third + ";");
    }
    line(condition + "call (r0), " + target + ", (a0, a1, a2, a3, a4)" + (which == functions ? ", prototype;" : ";"));
    if (condition.empty()) line("ld.param.b32 " + word() + ", [r0];"); // ptxas takes no guard here
    line("}");
}

void Builder::structure(const Situation& here) {
    switch (random_.below(!here.members.empty() ? 12 : 9)) {
    case 0: case 1: case 2: return conditional(here);
    case 3: case 4: case 5: return loop(here);
    case 6: case 7: return tangle(here);
    case 8: return choice(here);
    default: return split(here);
    }
}

void Builder::statement(const Situation& here) {
    const bool nests = here.depth < most_depth && program_.statements < most_statements_;
    const unsigned kind = random_.below(100);
    if (kind < 30) return value(here, Use::value);
    if (kind < 44) return value(here, Use::shaped);
    if (kind < 47) return carries();
    if (kind < 61) return memory();
    if (kind < 65) return atomic();
    if (kind < 67) return addresses();
    if (kind < 68) return one_in(2) ? hint() : policy();
    if (kind < 69) return fence();
    if (kind < 70) return in_function_ || one_in(2) ? stack() : copy();
    if (kind < 76 && !here.members.empty()) return collective(here);
    if (kind < 80 && here.together) return one_in(2) ? exchange() : one_in(6) ? cluster() : barrier();
    if (kind < 82 && may_leave_) return leave();
    if (kind < 84 && has_functions_ && !in_function_) return call();
    if (nests && kind >= 84) return structure(here);
    value(here, Use::value);
}

void Builder::block(unsigned count, const Situation& here) {
    for (unsigned i = 0; i < count; ++i) {
        const unsigned number = program_.statements++;
        // Each statement draws from numbers of its own, so that a change of one row changes few programs.
        const Random outer = random_;
        random_ = Random(seed_ ^ (number + 1) * 0x9e3779b97f4a7c15ull);
        std::string before = text_;
        statement(here);
        if (without_.contains(number)) text_ = std::move(before);
        random_ = outer;
    }
}

} // namespace fuzz
