// SPDX-License-Identifier: Apache-2.0
// Shuffles, votes, match and redux of a whole warp against the manual's rules, lane by lane.
#include "lane_program.h"
#include "translator/lower/handlers.h"

#include <catch2/catch.hpp>

#include <bit>
#include <random>

using namespace ptarmigan;
using namespace ptarmigan::translator;
using ptx::FormId;
using ptx::Modifier;
using ptx::ScalarType;

namespace {

constexpr std::uint32_t masks[] = {0xffffffffu, 0x5a5a1234u, 0x80000000u, 0x1u, 0x0000fff0u};

/// Runs one instruction whose registers 0 to 7 are input slots (u32, or predicates / u64 by type) and whose results
/// are registers 10 (d) and 11 (p).
std::vector<LaneSlot> run(const ptx::Instruction& inst, const std::vector<LaneSlot>& in, std::uint32_t mask,
                          const std::string& target = "host") {
    LaneProgram program({32, mask == 0xffffffffu, target}, [&](LaneEmitter& e) {
        for (const ptx::Operand& operand : inst.operands)
            if (operand.kind == ptx::Operand::Kind::reg && operand.index < 8)
                e.registers[operand.index] = e.varying_input(operand.index, e.type(operand.type));
        handler_of(inst.form)(e, inst);
    });
    abi::CtaContext context{};
    std::vector<LaneSlot> out(12);
    program.run(context, in, out, mask);
    return out;
}

std::vector<LaneSlot> random_inputs(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<LaneSlot> in(8);
    for (LaneSlot& slot : in)
        for (std::uint8_t& byte : slot.bytes) byte = std::uint8_t(random());
    return in;
}

struct Shuffled {
    unsigned lane;
    bool in_range;
};

Shuffled expected_source(Modifier mode, unsigned lane, std::uint32_t b, std::uint32_t c) {
    int offset = int(b & 31), clamp = int(c & 31), segment = int(c >> 8 & 31);
    int own = int(lane);
    int last = (own & segment) | (clamp & ~segment);
    int first = own & segment;
    int from = 0;
    bool in_range = false;
    switch (mode) {
    case Modifier::up: from = own - offset; in_range = from >= last; break;
    case Modifier::down: from = own + offset; in_range = from <= last; break;
    case Modifier::bfly: from = own ^ offset; in_range = from <= last; break;
    default: from = first | (offset & ~segment); in_range = from <= last; break;
    }
    return {in_range ? unsigned(from) : lane, in_range};
}

} // namespace

TEST_CASE("shfl.sync reads the lane that the manual's rule names", "[lower][collectives]") {
    std::vector<std::string> targets{"host"};
    if (host_target().avx512) targets.push_back("x86-64-v3");
    for (const std::string& target : targets) {
        for (Modifier mode : {Modifier::up, Modifier::down, Modifier::bfly, Modifier::idx}) {
            for (std::uint32_t c : {0x1fu, 0x0u, 0x181fu, 0x1800u, 0x1c03u, 0x0f1fu, 0x150au}) {
                for (int form = 0; form < 3; ++form) { // constant, run-time uniform and per-lane lane operand
                    std::vector<LaneSlot> in = random_inputs(c + unsigned(form));
                    for (unsigned lane = 0; lane < 32; ++lane) in[2].set(lane, c);
                    std::uint32_t fixed = c == 0x1fu ? 37 : 5;
                    ptx::Operand b = form == 0 ? imm(fixed, ScalarType::u32) : reg(1, ScalarType::u32);
                    if (form == 1)
                        for (unsigned lane = 0; lane < 32; ++lane) in[1].set(lane, fixed);
                    ptx::Operand clamp = form == 2 ? reg(2, ScalarType::u32) : imm(c, ScalarType::u32);
                    auto out = run(instruction(FormId::shfl_sync, {mode}, ScalarType::b32,
                                               {reg(10, ScalarType::b32), reg(11, ScalarType::pred),
                                                reg(0, ScalarType::b32), b, clamp, imm(~0u, ScalarType::b32)}),
                                   in, ~0u, target);
                    for (unsigned lane = 0; lane < 32; ++lane) {
                        std::uint32_t offset = form == 2 ? in[1].get<std::uint32_t>(lane) : fixed;
                        Shuffled source = expected_source(mode, lane, offset, c);
                        INFO("mode " << int(mode) << " c " << c << " form " << form << " lane " << lane);
                        REQUIRE(out[10].get<std::uint32_t>(lane) == in[0].get<std::uint32_t>(source.lane));
                        REQUIRE(out[11].get<std::uint8_t>(lane) == source.in_range);
                    }
                }
            }
        }
    }
}

TEST_CASE("shfl.sync gives 0 from lanes that take no part", "[lower][collectives]") {
    std::vector<std::string> targets{"host"};
    if (host_target().avx512) targets.push_back("x86-64-v3");
    for (const std::string& target : targets) {
        for (std::uint32_t mask : masks) {
            for (Modifier mode : {Modifier::up, Modifier::down, Modifier::bfly, Modifier::idx}) {
                const std::uint32_t c = mode == Modifier::up ? 0x800u : 0x81fu;
                const std::vector<LaneSlot> in = random_inputs(mask);
                auto out = run(instruction(FormId::shfl_sync, {mode}, ScalarType::b32,
                                           {reg(10, ScalarType::b32), reg(11, ScalarType::pred),
                                            reg(0, ScalarType::b32), imm(3, ScalarType::u32), imm(c, ScalarType::u32),
                                            imm(~0u, ScalarType::b32)}),
                               in, mask, target);
                for (unsigned lane = 0; lane < 32; ++lane) {
                    if (!(mask >> lane & 1)) continue;
                    const Shuffled source = expected_source(mode, lane, 3, c);
                    const bool takes_part = mask >> source.lane & 1;
                    INFO("mode " << int(mode) << " mask " << mask << " lane " << lane);
                    REQUIRE(out[10].get<std::uint32_t>(lane) == (takes_part ? in[0].get<std::uint32_t>(source.lane) : 0));
                    REQUIRE(out[11].get<std::uint8_t>(lane) == source.in_range);
                }
            }
        }
    }
}

TEST_CASE("vote.sync counts the active members", "[lower][collectives]") {
    for (std::uint32_t come : masks) {
        for (std::uint32_t members : {0xffffffffu, 0x00ff00ffu}) {
            // Where all lanes come with one mask, it is not looked at; else only those that it names may.
            const std::uint32_t mask = come == ~0u ? come : come & members;
            for (int predicate = 0; predicate < 3; ++predicate) {
                std::vector<LaneSlot> in = random_inputs(3);
                std::uint32_t yes = 0;
                for (unsigned lane = 0; lane < 32; ++lane) {
                    bool holds = predicate == 2 ? in[1].get<std::uint32_t>(lane) & 1 : predicate == 1;
                    in[0].set(lane, std::uint8_t(holds));
                    yes |= std::uint32_t(holds) << lane;
                }
                std::uint32_t voters = mask, votes = yes & voters;
                auto vote = [&](Modifier mode) {
                    return run(instruction(FormId::vote_sync, {mode}, ScalarType::pred,
                                           {reg(11, ScalarType::pred), reg(0, ScalarType::pred),
                                            imm(members, ScalarType::b32)}),
                               in, mask)[11]
                        .get<std::uint8_t>(0);
                };
                INFO("mask " << mask << " members " << members << " votes " << votes);
                CHECK(vote(Modifier::any) == (votes != 0));
                CHECK(vote(Modifier::all) == (votes == voters));
                CHECK(vote(Modifier::uni) == (votes == voters || votes == 0));
                auto ballot = run(instruction(FormId::vote_sync_ballot, {Modifier::ballot}, ScalarType::b32,
                                              {reg(10, ScalarType::b32), reg(0, ScalarType::pred),
                                               imm(members, ScalarType::b32)}),
                                  in, mask);
                CHECK(ballot[10].get<std::uint32_t>(17) == votes);
            }
        }
    }
}

TEST_CASE("match.sync groups lanes by value", "[lower][collectives]") {
    for (std::uint32_t mask : masks) {
        for (unsigned distinct : {1u, 2u, 5u, 32u}) {
            std::vector<LaneSlot> in = random_inputs(distinct);
            for (unsigned lane = 0; lane < 32; ++lane)
                in[0].set(lane, std::uint64_t(in[1].get<std::uint32_t>(lane) % distinct) << 35 | 9);
            auto same = [&](unsigned lane) {
                std::uint32_t group = 0;
                for (unsigned other = 0; other < 32; ++other)
                    if (in[0].get<std::uint64_t>(other) == in[0].get<std::uint64_t>(lane)) group |= 1u << other;
                return group & mask;
            };
            auto any = run(instruction(FormId::match_any, {Modifier::any}, ScalarType::b64,
                                       {reg(10, ScalarType::b32), reg(0, ScalarType::b64), imm(~0u, ScalarType::b32)}),
                           in, mask);
            auto all = run(instruction(FormId::match_all, {Modifier::all}, ScalarType::b64,
                                       {reg(10, ScalarType::b32), reg(11, ScalarType::pred), reg(0, ScalarType::b64),
                                        imm(~0u, ScalarType::b32)}),
                           in, mask);
            for (unsigned lane = 0; lane < 32; ++lane) {
                if (!(mask >> lane & 1)) continue;
                CHECK(any[10].get<std::uint32_t>(lane) == same(lane));
                CHECK(all[10].get<std::uint32_t>(lane) == (same(lane) == mask ? mask : 0));
                CHECK(all[11].get<std::uint8_t>(lane) == (same(lane) == mask));
            }
        }
    }
}

TEST_CASE("redux.sync reduces each group of members", "[lower][collectives]") {
    for (std::uint32_t mask : masks) {
        for (bool split : {false, true}) {
            std::vector<LaneSlot> in = random_inputs(mask);
            // Two tiles with masks of their own take part in one instruction.
            for (unsigned lane = 0; lane < 32; ++lane)
                in[1].set(lane, !split ? 0xffffffffu : lane < 16 ? 0x0000ffffu : 0xffff0000u);
            auto reduced = [&](Modifier op, ScalarType type, unsigned lane) {
                std::uint32_t group = in[1].get<std::uint32_t>(lane) & mask;
                bool first = true;
                std::uint32_t result = 0;
                for (unsigned other = 0; other < 32; ++other) {
                    if (!(group >> other & 1)) continue;
                    std::uint32_t v = in[0].get<std::uint32_t>(other);
                    bool less = type == ScalarType::s32 ? std::int32_t(v) < std::int32_t(result) : v < result;
                    if (first) result = v;
                    else if (op == Modifier::add) result += v;
                    else if (op == Modifier::and_) result &= v;
                    else if (op == Modifier::or_) result |= v;
                    else if (op == Modifier::xor_) result ^= v;
                    else if (less == (op == Modifier::min)) result = v;
                    first = false;
                }
                return result;
            };
            struct Form {
                FormId id;
                Modifier op;
                ScalarType type;
            };
            for (Form form : {Form{FormId::redux_int, Modifier::add, ScalarType::u32},
                              Form{FormId::redux_int, Modifier::min, ScalarType::s32},
                              Form{FormId::redux_int, Modifier::max, ScalarType::s32},
                              Form{FormId::redux_int, Modifier::min, ScalarType::u32},
                              Form{FormId::redux_int, Modifier::max, ScalarType::u32},
                              Form{FormId::redux_bits, Modifier::and_, ScalarType::b32},
                              Form{FormId::redux_bits, Modifier::or_, ScalarType::b32},
                              Form{FormId::redux_bits, Modifier::xor_, ScalarType::b32}}) {
                auto out = run(instruction(form.id, {form.op}, form.type,
                                           {reg(10, form.type), reg(0, form.type),
                                            split ? reg(1, ScalarType::b32) : imm(~0u, ScalarType::b32)}),
                               in, mask);
                for (unsigned lane = 0; lane < 32; ++lane) {
                    INFO("op " << int(form.op) << " mask " << mask << " lane " << lane << " split " << split);
                    if (mask >> lane & 1)
                        REQUIRE(out[10].get<std::uint32_t>(lane) == reduced(form.op, form.type, lane));
                }
            }
        }
    }
}

TEST_CASE("redux.sync.f32 orders zeros and leaves NaNs out unless asked", "[lower][collectives]") {
    std::vector<LaneSlot> in(8);
    auto reduce = [&](std::initializer_list<Modifier> modifiers) {
        return run(instruction(FormId::redux_f32, modifiers, ScalarType::f32,
                               {reg(10, ScalarType::f32), reg(0, ScalarType::f32), imm(~0u, ScalarType::b32)}),
                   in, ~0u)[10]
            .get<std::uint32_t>(3);
    };
    for (unsigned lane = 0; lane < 32; ++lane) in[0].set(lane, lane % 2 ? -0.0f : 0.0f);
    CHECK(reduce({Modifier::min}) == 0x80000000u);
    CHECK(reduce({Modifier::max}) == 0u);
    in[0].set(5, -3.5f);
    in[0].set(6, 2.0f);
    in[0].set(7, std::bit_cast<float>(0xffc00001u));
    CHECK(reduce({Modifier::min}) == std::bit_cast<std::uint32_t>(-3.5f));
    CHECK(reduce({Modifier::max}) == std::bit_cast<std::uint32_t>(2.0f));
    CHECK(reduce({Modifier::max, Modifier::abs}) == std::bit_cast<std::uint32_t>(3.5f));
    CHECK(reduce({Modifier::max, Modifier::NaN}) == 0x7fffffffu);
    for (unsigned lane = 0; lane < 32; ++lane) in[0].set(lane, std::bit_cast<float>(0x7fc12345u));
    CHECK(reduce({Modifier::min}) == 0x7fffffffu);
}

TEST_CASE("activemask and elect.sync", "[lower][collectives]") {
    for (std::uint32_t come : masks) {
        const std::uint32_t mask = come == ~0u ? come : come & 0xfffffff0u;
        auto active = run(instruction(FormId::activemask, {}, ScalarType::b32, {reg(10, ScalarType::b32)}), {}, mask);
        CHECK(active[10].get<std::uint32_t>(0) == mask);
        auto elected = run(instruction(FormId::elect_sync, {}, ScalarType::none,
                                       {reg(10, ScalarType::b32), reg(11, ScalarType::pred),
                                        imm(0xfffffff0u, ScalarType::b32)}),
                           {}, mask);
        if (mask == 0) continue;
        const auto leader = unsigned(std::countr_zero(mask));
        for (unsigned lane = 0; lane < 32; ++lane) {
            CHECK(elected[10].get<std::uint32_t>(lane) == leader);
            CHECK(elected[11].get<std::uint8_t>(lane) == (lane == leader));
        }
    }
}
