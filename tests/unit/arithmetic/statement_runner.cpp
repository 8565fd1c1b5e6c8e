// SPDX-License-Identifier: Apache-2.0
#include "statement_runner.h"

#include "frontend/module_loader.h"
#include "runtime/code/image_loader.h"
#include "translator/compile.h"
#include "translator/kernel_abi.h"

#include <catch2/catch.hpp>

#include <cstdlib>

#include <cstring>
#include <random>

namespace ptarmigan::test {

namespace {

constexpr unsigned block_size = 64;

std::string kernel_text(const Statement& statement) {
    auto load = [](const char* name, unsigned bits, unsigned parameter) {
        if (!bits) return std::string();
        std::string type = "b" + std::to_string(bits), number = std::to_string(parameter);
        return "    ld.param.u64 %base, [p" + number + "];\n    add.u64 %address, %base, %offset;\n" +
               "    ld.global." + type + " %" + name + ", [%address];\n";
    };
    auto declare = [](const char* name, unsigned bits) {
        return bits ? "    .reg .b" + std::to_string(bits) + " %" + name + ";\n" : std::string();
    };
    return std::string(statement.module_head) +
           ".entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n"
           "    .reg .pred %p, %q;\n    .reg .b16 %h<4>;\n    .reg .b32 %w<4>;\n    .reg .b64 %l<4>;\n"
           "    .reg .b32 %thread, %cta, %size;\n    .reg .b64 %base, %address, %offset;\n" +
           declare("a", statement.a) + declare("b", statement.b) + declare("c", statement.c) +
           declare("d", statement.d) +
           "    mov.u32 %thread, %tid.x;\n    mov.u32 %cta, %ctaid.x;\n    mov.u32 %size, %ntid.x;\n"
           "    mad.lo.u32 %thread, %cta, %size, %thread;\n    mul.wide.u32 %offset, %thread, 8;\n" +
           load("a", statement.a, 1) + load("b", statement.b, 2) + load("c", statement.c, 3) +
           "    " + statement.text + "\n" +
           "    ld.param.u64 %base, [p0];\n    add.u64 %address, %base, %offset;\n" +
           "    st.global.b" + std::to_string(statement.d) + " [%address], %d;\n    ret;\n}\n";
}

} // namespace

std::vector<std::uint64_t> run_statement(const Statement& statement, const std::vector<Operands>& inputs,
                                         const Variant& variant) {
    auto loader = ptx::ModuleLoader::load(kernel_text(statement), "statement.ptx");
    translator::CompileOptions options;
    options.target = translator::named_target(variant.target);
    options.lane_width = variant.lane_width;
    const char* optimization = std::getenv("PTARMIGAN_OPTIMIZATION");
    if (optimization && std::string(optimization) == "least") options.optimization = translator::Optimization::least;
    if (variant.fast) options.approximation = translator::Approximation::fast;
    translator::BlockShape shape;
    shape.ntid = {block_size, 1, 1};
    translator::CompiledKernel kernel = translator::compile(*loader, "k", shape, options);
    REQUIRE(!kernel.properties.uses_fibers);
    auto image = runtime::LoadedImage::load(kernel.image, "k");

    std::size_t ctas = (inputs.size() + block_size - 1) / block_size;
    std::vector<std::uint64_t> arrays[4];
    for (auto& array : arrays) array.resize(ctas * block_size);
    for (std::size_t i = 0; i < arrays[0].size(); ++i)
        for (unsigned j = 0; j < 3; ++j) arrays[j + 1][i] = inputs[i % inputs.size()][j];
    const std::uint64_t* parameters[] = {arrays[0].data(), arrays[1].data(), arrays[2].data(), arrays[3].data()};

    abi::LaunchContext launch{};
    abi::CtaContext context{};
    std::vector<std::uint8_t> frames(kernel.properties.cta_frame_size +
                                     std::size_t(kernel.properties.frame_size) * kernel.properties.step_count + 4096);
    launch.params = reinterpret_cast<const std::uint8_t*>(parameters);
    alignas(64) std::uint8_t shared[64]{};
    context.shared = shared;
    context.shared_size = sizeof shared;
    context.shared_window_size = sizeof shared;
    context.launch = &launch;
    context.params = launch.params;
    context.frames = reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(frames.data()) + 63) & ~63ull);
    std::uint32_t grid[] = {std::uint32_t(ctas), 1, 1}, block[] = {block_size, 1, 1};
    std::memcpy(launch.nctaid, grid, sizeof grid);
    std::memcpy(launch.ntid, block, sizeof block);
    std::memcpy(context.nctaid, grid, sizeof grid);
    std::memcpy(context.ntid, block, sizeof block);
    for (std::uint32_t cta = 0; cta < ctas; ++cta) {
        context.ctaid[0] = cta;
        context.linear_ctaid = cta;
        reinterpret_cast<abi::RunCta>(const_cast<void*>(image->entry()))(&context);
    }
    arrays[0].resize(inputs.size());
    return arrays[0];
}

void check_statement(const Statement& statement, const std::vector<Operands>& inputs,
                     const std::function<std::uint64_t(const Operands&)>& reference) {
    std::uint64_t mask = statement.d == 64 ? ~0ull : (1ull << statement.d) - 1;
    std::vector<Variant> variants = {{"host", 0}, {"host", 1}, {"x86-64-v3", 8}};
    // CPUs without AVX-512 run the first two only as what they are; the v3 code runs on all that this project supports.
    for (const Variant& variant : variants) {
        std::vector<std::uint64_t> results = run_statement(statement, inputs, variant);
        unsigned reported = 0;
        for (std::size_t i = 0; i < inputs.size() && reported < 3; ++i) {
            std::uint64_t expected = reference(inputs[i]) & mask;
            if ((results[i] & mask) == expected) continue;
            ++reported;
            INFO(statement.text << " on " << variant.target << " width " << variant.lane_width);
            INFO(std::hex << "a=0x" << inputs[i][0] << " b=0x" << inputs[i][1] << " c=0x" << inputs[i][2]);
            INFO(std::hex << "got 0x" << (results[i] & mask) << ", expected 0x" << expected);
            CHECK((results[i] & mask) == expected);
        }
        CHECK(reported == 0);
    }
}

namespace {

const std::vector<std::uint64_t>& edges(Kind kind) {
    static const std::vector<std::uint64_t> bits16 = {0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x100, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};
    static const std::vector<std::uint64_t> bits32 = {0, 1, 2, 3, 7, 31, 32, 33, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffff, 0x800000,
                                                      0x12345678, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xdeadbeef, 0xfffffffe, 0xffffffff};
    static const std::vector<std::uint64_t> bits64 = {0, 1, 2, 3, 63, 64, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x123456789abcdef0,
                                                      0x001fffffffffffff, 0x0020000000000001, 0x7ffffffffffffc00, 0x7ffffffffffffe01,
                                                      0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0xfffffffffffff800, 0xfffffffffffffffe, 0xffffffffffffffff};
    static const std::vector<std::uint64_t> half = {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3800, 0x3c00, 0xbc00, 0x3c01, 0x3bff, 0x4248, 0x7bff, 0xfbff,
                                                    0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xfe00, 0x5bff, 0x1400};
    static const std::vector<std::uint64_t> bfloat = {0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x8080, 0x3f00, 0x3f80, 0xbf80, 0x3f81, 0x3f7f, 0x4049, 0x7f7f, 0xff7f,
                                                      0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffc0, 0x2b80, 0x0180};
    static const std::vector<std::uint64_t> single = {0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x80800000, 0x800001, 0x3f000000, 0x3f800000,
                                                      0xbf800000, 0x3f800001, 0x3f7fffff, 0x3effffff, 0x40490fdb, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001,
                                                      0x4f7fffff, 0x4f800000, 0x5f000000, 0x5effffff, 0x5f800000, 0xdf000000, 0x7f7fffff, 0xff7fffff,
                                                      0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffc00000, 0x3fc00000, 0x40200000, 0xc0200000,
                                                      0x34000000, 0x33800000, 0x477fe000, 0x477ff000, 0x477fefff, 0x38800000, 0x33000000, 0x7f7f8000, 0x20000000, 0x1f800000};
    static const std::vector<std::uint64_t> real64 = {0, 0x8000000000000000, 1, 0x8000000000000001, 0xfffffffffffff, 0x10000000000000, 0x3fe0000000000000,
                                                      0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001, 0x3fefffffffffffff, 0x400921fb54442d18,
                                                      0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0xc1e0000000200000, 0x41efffffffe00000, 0x41f0000000000000,
                                                      0x43e0000000000000, 0x43dfffffffffffff, 0xc3e0000000000000, 0x43f0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
                                                      0x7ff0000000000000, 0xfff0000000000000, 0x380fffffe0000000, 0x380fffffffffffff, 0x3810000000000000, 0x47efffffe0000000, 0x47efffffefffffff,
                                                      0x47effffff0000000, 0x3690000000000000, 0x36a0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0xc004000000000000,
                                                      0x3fe0000000000001, 0x3e50000000000000, 0x40effc0000000000, 0x40effe0000000000};
    static const std::vector<std::uint64_t> shifts = {0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 128, 200, 255, 256, 0x10001, 0x80000000, 0xffffffff};
    switch (kind) {
    case Kind::bits16: return bits16;
    case Kind::bits32: return bits32;
    case Kind::bits64: return bits64;
    case Kind::f16: return half;
    case Kind::bf16: return bfloat;
    case Kind::f32: return single;
    case Kind::f64: return real64;
    default: return shifts;
    }
}

class Source {
public:
    std::uint64_t random(Kind kind) {
        std::uint64_t word = engine_();
        switch (kind) {
        case Kind::bits16: case Kind::f16: case Kind::bf16: return word & 0xffff;
        case Kind::bits32: return (word & 0xffffffff) >> engine_() % 32;
        case Kind::bits64: return word >> engine_() % 64;
        // Half of the numbers near each other, so that sums cancel and products stay in range.
        case Kind::f32:
            if (engine_() % 2) return word & 0xffffffff;
            return (word & 0x807fffff) | (120 + engine_() % 16) << 23;
        case Kind::f64:
            if (engine_() % 2) return (word & 0x800fffffffffffff) | (1000 + engine_() % 46) << 52;
            return (word & 0x7ff0000000000000) == 0x7ff0000000000000 ? word & 0x7fefffffffffffff : word;
        default: return word % 70;
        }
    }

private:
    std::mt19937_64 engine_{20261121};
};

} // namespace

std::vector<Operands> operands(Kind a) {
    std::vector<Operands> list;
    Source source;
    for (std::uint64_t x : edges(a)) list.push_back({x, 0, 0});
    for (unsigned i = 0; i < 2000; ++i) list.push_back({source.random(a), 0, 0});
    return list;
}

std::vector<Operands> operands(Kind a, Kind b) {
    std::vector<Operands> list;
    Source source;
    for (std::uint64_t x : edges(a))
        for (std::uint64_t y : edges(b)) list.push_back({x, y, 0});
    for (unsigned i = 0; i < 3000; ++i) list.push_back({source.random(a), source.random(b), 0});
    return list;
}

std::vector<Operands> operands(Kind a, Kind b, Kind c) {
    std::vector<Operands> list;
    Source source;
    // Every pair of edges with a few third values: the full cross product is too large.
    std::size_t turn = 0;
    for (std::uint64_t x : edges(a))
        for (std::uint64_t y : edges(b))
            for (unsigned i = 0; i < 6; ++i) list.push_back({x, y, edges(c)[turn++ % edges(c).size()]});
    for (unsigned i = 0; i < 4000; ++i) list.push_back({source.random(a), source.random(b), source.random(c)});
    return list;
}

} // namespace ptarmigan::test
