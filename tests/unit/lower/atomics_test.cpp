// SPDX-License-Identifier: Apache-2.0
// atom and red in every operation and address shape, against lanes that go one after the other.
#include "lane_program.h"
#include "translator/lower/handlers.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <random>
#include <thread>

using namespace ptarmigan;
using namespace ptarmigan::translator;
using ptx::FormId;
using ptx::Modifier;
using ptx::ScalarType;
using ptx::StateSpace;

namespace {

enum class AddressForm { uniform, distinct, colliding };

struct Operation {
    FormId atom, red;
    Modifier op;
    ScalarType type;
    bool ordered = false; ///< the result depends on the order of the lanes: still lane order here
};

std::uint64_t apply(const Operation& operation, std::uint64_t old, std::uint64_t b, std::uint64_t c, bool shared) {
    bool is_signed = operation.type == ScalarType::s32 || operation.type == ScalarType::s64;
    bool narrow = ptx::bit_size(operation.type) == 32;
    auto as_signed = [&](std::uint64_t v) { return narrow ? std::int64_t(std::int32_t(v)) : std::int64_t(v); };
    bool less = is_signed ? as_signed(b) < as_signed(old) : b < old;
    std::uint64_t result = 0;
    switch (operation.op) {
    case Modifier::min: result = less ? b : old; break;
    case Modifier::max: result = less ? old : b; break;
    case Modifier::and_: result = old & b; break;
    case Modifier::or_: result = old | b; break;
    case Modifier::xor_: result = old ^ b; break;
    case Modifier::inc: result = old >= b ? 0 : old + 1; break;
    case Modifier::dec: result = old == 0 || old > b ? b : old - 1; break;
    case Modifier::exch: result = b; break;
    case Modifier::cas: result = old == b ? c : old; break;
    default: result = old + b; break;
    }
    if (operation.type == ScalarType::f32) {
        auto flush = [&](float v) { return !shared && std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; };
        float sum = flush(flush(std::bit_cast<float>(std::uint32_t(old))) +
                          flush(std::bit_cast<float>(std::uint32_t(b))));
        return std::isnan(sum) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(sum);
    }
    if (operation.type == ScalarType::f64)
        return std::bit_cast<std::uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    return narrow ? std::uint32_t(result) : result;
}

std::uint64_t random_value(const Operation& operation, std::mt19937_64& random) {
    if (operation.type == ScalarType::f32) {
        // Subnormals and normals mixed.
        float value = std::ldexp(float(random() % 1000) - 500.0f, random() % 3 ? -10 : -147);
        return std::bit_cast<std::uint32_t>(value);
    }
    if (operation.type == ScalarType::f64) return std::bit_cast<std::uint64_t>(double(random() % 1000) * 0.37);
    std::uint64_t value = operation.op == Modifier::cas ? random() % 3
                          : operation.op == Modifier::inc || operation.op == Modifier::dec ? random() % 6
                                                                                           : random();
    return ptx::bit_size(operation.type) == 32 ? std::uint32_t(value) : value;
}

struct Setup {
    StateSpace space;
    AddressForm form;
    bool full;
    std::uint64_t mask;
    bool uniform_value;
};

void check(const Operation& operation, const Setup& setup, std::mt19937_64& random) {
    unsigned bytes = ptx::byte_size(operation.type);
    LaneOffsets offsets;
    for (unsigned lane = 0; lane < 32; ++lane) offsets.push_back(std::int64_t(lane) * bytes);
    auto program = [&](bool wants_result) {
        return std::make_unique<LaneProgram>(LaneProgramOptions{32, setup.full, "host"}, [&](LaneEmitter& e) {
            Ir& ir = e.ir();
            LaneAddress& address = e.addresses[5];
            if (setup.form == AddressForm::colliding) {
                address.address = e.varying_input(0, ir.getInt64Ty());
            } else {
                address.address = e.uniform_input(0, ir.getInt64Ty());
                if (setup.form == AddressForm::distinct) address.address.shape = {Shape::Level::affine, &offsets};
            }
            llvm::Type* type = e.type(operation.type);
            e.registers[1] = setup.uniform_value ? e.uniform_input(1, type) : e.varying_input(1, type);
            e.registers[2] = e.varying_input(2, type);
            ptx::Operand b = reg(1, operation.type), c = reg(2, operation.type);
            ptx::Instruction inst;
            if (operation.op == Modifier::cas)
                inst = instruction(operation.atom, {operation.op}, operation.type,
                                   {wants_result ? reg(10, operation.type) : none(), at(5), b, c});
            else if (wants_result)
                inst = instruction(operation.atom, {operation.op}, operation.type, {reg(10, operation.type), at(5), b});
            else
                inst = instruction(operation.red, {operation.op}, operation.type, {at(5), b});
            inst.space = setup.space;
            handler_of(inst.form)(e, inst);
        });
    };
    for (bool wants_result : {true, false}) {
        alignas(64) std::uint8_t memory[32 * 8], expected[32 * 8];
        std::vector<LaneSlot> in(3), out(11);
        std::uint64_t first = random_value(operation, random);
        for (unsigned lane = 0; lane < 32; ++lane) {
            unsigned place = setup.form == AddressForm::uniform     ? 0
                             : setup.form == AddressForm::distinct ? lane
                                                                   : unsigned(random() % 5);
            bool per_lane = setup.form == AddressForm::colliding;
            std::uint64_t address = reinterpret_cast<std::uint64_t>(memory) + (per_lane ? place * bytes : 0);
            in[0].set(lane, address);
            std::uint64_t cell = random_value(operation, random);
            std::uint64_t b = setup.uniform_value ? first : random_value(operation, random);
            std::uint64_t c = random_value(operation, random);
            std::memcpy(memory + lane * bytes, &cell, bytes);
            std::memcpy(in[1].bytes.data() + lane * bytes, &b, bytes);
            std::memcpy(in[2].bytes.data() + lane * bytes, &c, bytes);
        }
        std::memcpy(expected, memory, sizeof memory);
        std::uint64_t before[32] = {};
        auto cell_of = [&](unsigned lane) {
            std::size_t place = setup.form == AddressForm::distinct ? lane * bytes : 0;
            return expected + (in[0].get<std::uint64_t>(lane) - reinterpret_cast<std::uint64_t>(memory)) + place;
        };
        for (unsigned lane = 0; lane < 32; ++lane) {
            if (setup.form != AddressForm::colliding) in[0].set(lane, reinterpret_cast<std::uint64_t>(memory));
            if (!(setup.mask >> lane & 1)) continue;
            std::uint64_t old = 0, b = 0, c = 0;
            std::memcpy(&old, cell_of(lane), bytes);
            std::memcpy(&b, in[1].bytes.data() + lane * bytes, bytes);
            std::memcpy(&c, in[2].bytes.data() + lane * bytes, bytes);
            before[lane] = old;
            std::uint64_t next = apply(operation, old, b, c, setup.space == StateSpace::shared);
            std::memcpy(cell_of(lane), &next, bytes);
        }
        abi::CtaContext context{};
        program(wants_result)->run(context, in, out, setup.mask);
        INFO("op " << int(operation.op) << " type " << ptx::spelling(operation.type) << " space " << int(setup.space)
                   << " form " << int(setup.form) << " mask " << setup.mask << " result " << wants_result);
        REQUIRE(std::memcmp(memory, expected, sizeof memory) == 0);
        for (unsigned lane = 0; lane < 32 && wants_result; ++lane)
            if (setup.mask >> lane & 1)
                REQUIRE(std::memcmp(out[10].bytes.data() + lane * bytes, &before[lane], bytes) == 0);
    }
}

const Operation operations[] = {
    {FormId::atom_add, FormId::red_add, Modifier::add, ScalarType::u32},
    {FormId::atom_add, FormId::red_add, Modifier::add, ScalarType::u64},
    {FormId::atom_min_max, FormId::red_min_max, Modifier::min, ScalarType::s32},
    {FormId::atom_min_max, FormId::red_min_max, Modifier::max, ScalarType::s64},
    {FormId::atom_min_max, FormId::red_min_max, Modifier::min, ScalarType::u64},
    {FormId::atom_min_max, FormId::red_min_max, Modifier::max, ScalarType::u32},
    {FormId::atom_bits, FormId::red_bits, Modifier::and_, ScalarType::b32},
    {FormId::atom_bits, FormId::red_bits, Modifier::or_, ScalarType::b64},
    {FormId::atom_bits, FormId::red_bits, Modifier::xor_, ScalarType::b32},
    {FormId::atom_inc_dec, FormId::red_inc_dec, Modifier::inc, ScalarType::u32},
    {FormId::atom_inc_dec, FormId::red_inc_dec, Modifier::dec, ScalarType::u32},
    {FormId::atom_add_f32, FormId::red_add_f32, Modifier::add, ScalarType::f32},
    {FormId::atom_add_f64, FormId::red_add_f64, Modifier::add, ScalarType::f64},
    {FormId::atom_exch, FormId::atom_exch, Modifier::exch, ScalarType::b32},
    {FormId::atom_cas, FormId::atom_cas, Modifier::cas, ScalarType::b32},
    {FormId::atom_cas, FormId::atom_cas, Modifier::cas, ScalarType::b64},
};

} // namespace

TEST_CASE("atomics act as if lanes went one after the other", "[lower][atomics]") {
    std::mt19937_64 random(5);
    for (const Operation& operation : operations) {
        for (StateSpace space : {StateSpace::global, StateSpace::shared, StateSpace::generic}) {
            for (AddressForm form : {AddressForm::uniform, AddressForm::distinct, AddressForm::colliding}) {
                if (operation.op == Modifier::exch) continue; // checked below: it has no red form
                check(operation, {space, form, true, 0xffffffff, false}, random);
                check(operation, {space, form, false, 0x5a5a1230, false}, random);
                check(operation, {space, form, false, 0x80000000, true}, random);
                check(operation, {space, form, false, 0, false}, random);
            }
        }
    }
}

TEST_CASE("atom.exch hands each lane what was there before it", "[lower][atomics]") {
    LaneProgram program({32, false, "host"}, [](LaneEmitter& e) {
        e.addresses[5].address = e.uniform_input(0, e.ir().getInt64Ty());
        e.registers[1] = e.varying_input(1, e.ir().getInt32Ty());
        ptx::Instruction inst = instruction(FormId::atom_exch, {Modifier::exch}, ScalarType::b32,
                                            {reg(10, ScalarType::b32), at(5), reg(1, ScalarType::b32)});
        inst.space = StateSpace::global;
        handler_of(inst.form)(e, inst);
    });
    std::uint32_t cell = 7;
    std::vector<LaneSlot> in(2), out(11);
    in[0].set(0, reinterpret_cast<std::uint64_t>(&cell));
    for (unsigned lane = 0; lane < 32; ++lane) in[1].set(lane, 100 + lane);
    abi::CtaContext context{};
    program.run(context, in, out, 0x1100);
    CHECK(out[10].get<std::uint32_t>(8) == 7);
    CHECK(out[10].get<std::uint32_t>(12) == 108);
    CHECK(cell == 112);
}

TEST_CASE("packed half atomics add both halves and keep subnormals", "[lower][atomics]") {
    for (bool bfloat : {false, true}) {
        LaneProgram program({32, false, "host"}, [&](LaneEmitter& e) {
            e.addresses[5].address = e.uniform_input(0, e.ir().getInt64Ty());
            e.registers[1] = e.varying_input(1, e.ir().getInt32Ty());
            ScalarType type = bfloat ? ScalarType::bf16x2 : ScalarType::f16x2;
            ptx::Instruction inst = instruction(bfloat ? FormId::red_add_bf16 : FormId::red_add_f16,
                                                {Modifier::add, Modifier::noftz}, type, {at(5), reg(1, type)});
            inst.space = StateSpace::global;
            handler_of(inst.form)(e, inst);
        });
        std::uint32_t cell = bfloat ? 0x3f800001 : 0x3c000001; // 1.0 and the smallest subnormal
        std::vector<LaneSlot> in(2), out(1);
        in[0].set(0, reinterpret_cast<std::uint64_t>(&cell));
        for (unsigned lane = 0; lane < 32; ++lane) in[1].set(lane, cell);
        abi::CtaContext context{};
        program.run(context, in, out, 0x7);
        CHECK(cell == (bfloat ? 0x40800004u : 0x44000004u));
    }
}

TEST_CASE("atomics of several threads lose nothing", "[lower][atomics]") {
    for (FormId form : {FormId::red_add, FormId::red_add_f64}) {
        bool is_float = form == FormId::red_add_f64;
        ScalarType type = is_float ? ScalarType::f64 : ScalarType::u64;
        LaneProgram program({32, true, "host"}, [&](LaneEmitter& e) {
            e.addresses[5].address = e.varying_input(0, e.ir().getInt64Ty());
            e.registers[1] = e.varying_input(1, e.type(type));
            ptx::Instruction inst = instruction(form, {Modifier::add}, type, {at(5), reg(1, type)});
            inst.space = StateSpace::global;
            handler_of(inst.form)(e, inst);
        });
        std::uint64_t cells[2] = {};
        std::vector<LaneSlot> in(2);
        for (unsigned lane = 0; lane < 32; ++lane) {
            in[0].set(lane, reinterpret_cast<std::uint64_t>(&cells[lane & 1]));
            if (is_float) in[1].set(lane, 1.0);
            else in[1].set(lane, std::uint64_t(1));
        }
        auto work = [&] {
            abi::CtaContext context{};
            std::vector<LaneSlot> out(1);
            for (int i = 0; i < 2000; ++i) program.run(context, in, out);
        };
        std::thread other(work);
        work();
        other.join();
        std::uint64_t total = is_float ? std::bit_cast<std::uint64_t>(64000.0) : 64000;
        CHECK(cells[0] == total);
        CHECK(cells[1] == total);
    }
}
