// SPDX-License-Identifier: Apache-2.0
#include "tests/litmus/shapes.h"

namespace litmus {
namespace {

using enum Ordering;

constexpr unsigned any = Outcome::any_value;

Operation write(unsigned location, unsigned value) { return {Operation::Kind::write, location, value}; }
Operation read(unsigned location, unsigned result) { return {Operation::Kind::read, location, result}; }
Operation fence() { return {Operation::Kind::fence}; }

std::string number(unsigned value) { return std::to_string(value); }

std::string load(Ordering ordering, const std::string& scope, const std::string& result, const std::string& place) {
    switch (ordering) {
    case release_acquire: return "ld.acquire." + scope + ".global.u32 " + result + ", " + place + ";\n";
    case membar: return "ld.volatile.global.u32 " + result + ", " + place + ";\n";
    case atomics: return "atom.acquire." + scope + ".global.or.b32 " + result + ", " + place + ", 0;\n";
    default: return "ld.relaxed." + scope + ".global.u32 " + result + ", " + place + ";\n";
    }
}

std::string store(Ordering ordering, const std::string& scope, const std::string& place, unsigned value) {
    switch (ordering) {
    case release_acquire: return "st.release." + scope + ".global.u32 " + place + ", " + number(value) + ";\n";
    case membar: return "st.volatile.global.u32 " + place + ", " + number(value) + ";\n";
    case atomics: return "atom.release." + scope + ".global.exch.b32 %x, " + place + ", " + number(value) + ";\n";
    default: return "st.relaxed." + scope + ".global.u32 " + place + ", " + number(value) + ";\n";
    }
}

std::string barrier(Ordering ordering, const std::string& scope) {
    switch (ordering) {
    case fence_acq_rel: return "fence.acq_rel." + scope + ";\n";
    case fence_sc: return "fence.sc." + scope + ";\n";
    case membar: return "membar." + std::string(scope == "gpu" ? "gl" : scope) + ";\n";
    default: return "";
    }
}

} // namespace

const char* name_of(Ordering ordering) {
    static constexpr const char* names[] = {"relaxed", "release and acquire", "fence.acq_rel", "fence.sc", "volatile and membar", "atomics"};
    return names[unsigned(ordering)];
}

const char* name_of(Placement placement) {
    static constexpr const char* names[] = {"lanes", "warps", "CTAs"};
    return names[unsigned(placement)];
}

const std::vector<Shape>& shapes() {
    const std::vector<Ordering> ordered{release_acquire, fence_acq_rel, fence_sc, membar, atomics}, sequential{fence_sc, membar};
    const std::vector<Ordering> all(std::begin(all_orderings), std::end(all_orderings));
    static const std::vector<Shape> list = {
        {"message passing", {{write(0, 1), fence(), write(1, 1)}, {read(1, 0), fence(), read(0, 1)}}, {{1, 0, any, any}, {any, any, any}}, ordered},
        {"store buffering", {{write(0, 1), fence(), read(1, 0)}, {write(1, 1), fence(), read(0, 1)}}, {{0, 0, any, any}, {any, any, any}}, sequential},
        {"load buffering", {{read(0, 0), fence(), write(1, 1)}, {read(1, 1), fence(), write(0, 1)}}, {{1, 1, any, any}, {any, any, any}}, ordered},
        {"coherence of reads", {{write(0, 1)}, {read(0, 0), read(0, 1)}}, {{1, 0, any, any}, {any, any, any}}, all},
        {"coherence of writes", {{write(0, 1), write(0, 2)}, {read(0, 0), read(0, 1)}}, {{2, 1, any, any}, {any, any, any}}, all},
        {"last write wins", {{write(0, 1), write(0, 2)}, {read(0, 0)}}, {{any, any, any, any}, {1, any, any}}, all},
        {"coherence of a read and a later write", {{read(0, 0), write(0, 1)}, {write(0, 2)}}, {{2, any, any, any}, {2, any, any}}, all},
        {"coherence of a write and a later read", {{write(0, 1), read(0, 0)}, {write(0, 2)}}, {{2, any, any, any}, {1, any, any}}, all},
        {"independent reads of independent writes",
         {{write(0, 1)}, {write(1, 1)}, {read(0, 0), fence(), read(1, 1)}, {read(1, 2), fence(), read(0, 3)}},
         {{1, 0, 1, 0}, {any, any, any}}, sequential},
        {"write to read causality", {{write(0, 1)}, {read(0, 0), fence(), write(1, 1)}, {read(1, 1), fence(), read(0, 2)}},
         {{1, 1, 0, any}, {any, any, any}}, ordered},
        {"2+2W", {{write(0, 1), fence(), write(1, 2)}, {write(1, 1), fence(), write(0, 2)}}, {{any, any, any, any}, {1, 1, any}}, sequential},
        {"S", {{write(0, 2), fence(), write(1, 1)}, {read(1, 0), fence(), write(0, 1)}}, {{1, any, any, any}, {2, any, any}}, ordered},
        {"R", {{write(0, 1), fence(), write(1, 1)}, {write(1, 2), fence(), read(0, 0)}}, {{0, any, any, any}, {any, 2, any}}, sequential},
        {"ISA2", {{write(0, 1), fence(), write(1, 1)}, {read(1, 0), fence(), write(2, 1)}, {read(2, 1), fence(), read(0, 2)}},
         {{1, 1, 0, any}, {any, any, any}}, ordered},
    };
    return list;
}

Extent extent_of(const Shape& shape, Placement placement) {
    const unsigned threads = unsigned(shape.threads.size());
    if (placement == Placement::lanes) return {1, 32};
    if (placement == Placement::warps) return {1, 32 * threads};
    return {threads, 32};
}

std::string text_of(const Shape& shape, Ordering ordering, Placement placement, const std::string& scope) {
    // Roles in one warp take lanes in turn: 32 / 4 instances at once with up to four of them.
    const unsigned in_step = placement == Placement::lanes ? 8 : 32, threads = unsigned(shape.threads.size());
    std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 pm, .param .u64 pr, .param .u32 pn, .param .u64 pc)\n{\n"
                       ".reg .b32 %x, %role, %n, %i, %size, %v<4>; .reg .pred %p, %q; .reg .b64 %m<3>, %r<4>, %a, %c, %next;\n"
                       "ld.param.u64 %m0, [pm]; ld.param.u64 %r0, [pr]; ld.param.u32 %n, [pn]; ld.param.u64 %c, [pc]; mul.lo.u32 %size, %n, 4; cvt.u64.u32 %a, %size;\n";
    for (unsigned i = 1; i < most_locations; ++i) text += "add.u64 %m" + number(i) + ", %m" + number(i - 1) + ", %a;\n";
    for (unsigned i = 1; i < most_results; ++i) text += "add.u64 %r" + number(i) + ", %r" + number(i - 1) + ", %a;\n";
    if (placement == Placement::lanes) text += "mov.u32 %x, %tid.x; and.b32 %role, %x, 3; shr.u32 %i, %x, 2;\n";
    else text += std::string("mov.u32 %role, ") + (placement == Placement::warps ? "%tid.x; shr.u32 %role, %role, 5" : "%ctaid.x") + "; mov.u32 %i, %tid.x; and.b32 %i, %i, 31;\n";
    text += "mul.wide.u32 %a, %i, 4;\n";
    for (unsigned i = 0; i < most_locations; ++i) text += "add.u64 %m" + number(i) + ", %m" + number(i) + ", %a;\n";
    for (unsigned i = 0; i < most_results; ++i) text += "add.u64 %r" + number(i) + ", %r" + number(i) + ", %a;\n";
    text += "LOOP:\n";
    if (placement == Placement::ctas) // the CTAs stay together: every 1024 instances they wait for each other
        text += "and.b32 %x, %i, 1023; setp.lt.u32 %p, %x, 32; @!%p bra GO;\n@%p shr.u32 %x, %i, 10; mad.wide.u32 %a, %x, 4, %c;\n"
                "red.relaxed.gpu.global.add.u32 [%a], 1;\nMEET: ld.relaxed.gpu.global.u32 %x, [%a]; setp.lt.u32 %q, %x, " + number(32 * threads) + "; @%q bra MEET;\nGO:\n";
    for (unsigned thread = 0; thread < threads; ++thread) {
        const std::string next = "NEXT" + number(thread);
        text += "setp.ne.u32 %p, %role, " + number(thread) + "; @%p bra " + next + ";\n";
        for (const Operation& operation : shape.threads[thread]) {
            const std::string place = "[%m" + number(operation.location) + "]";
            if (operation.kind == Operation::Kind::fence) text += barrier(ordering, scope);
            else if (operation.kind == Operation::Kind::write) text += store(ordering, scope, place, operation.value);
            else text += load(ordering, scope, "%v" + number(operation.value), place);
        }
        for (const Operation& operation : shape.threads[thread])
            if (operation.kind == Operation::Kind::read) text += "st.global.u32 [%r" + number(operation.value) + "], %v" + number(operation.value) + ";\n";
        text += next + ":\n";
    }
    for (unsigned i = 0; i < most_locations; ++i) text += "add.u64 %m" + number(i) + ", %m" + number(i) + ", " + number(4 * in_step) + ";\n";
    for (unsigned i = 0; i < most_results; ++i) text += "add.u64 %r" + number(i) + ", %r" + number(i) + ", " + number(4 * in_step) + ";\n";
    return text + "add.u32 %i, %i, " + number(in_step) + "; setp.lt.u32 %p, %i, %n; @%p bra LOOP;\nret;\n}\n";
}

} // namespace litmus
