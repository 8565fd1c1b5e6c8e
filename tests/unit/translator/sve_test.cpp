// SPDX-License-Identifier: Apache-2.0
// Code for CPUs with long SVE vectors: what lies in them, and the stack that they are spilled to, which LLVM's
// .stack_sizes leaves out.
#include "frontend/module_loader.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

#include <regex>
#include <string>

using namespace ptarmigan;

namespace {

constexpr unsigned most_values = 40;

/// A loop over which each thread keeps `values` floats.
std::string kernel(unsigned values) {
    std::string loads, sums, stores;
    for (unsigned i = 0; i < values; ++i) {
        const std::string number = std::to_string(i), place = "[%a+" + std::to_string(4 * i) + "]";
        loads += "ld.global.f32 %v" + number + ", " + place + ";\n";
        sums += "fma.rn.f32 %v" + number + ", %v" + number + ", %x, %v" + std::to_string((i + 1) % values) + ";\n";
        stores += "st.global.f32 " + place + ", %v" + number + ";\n";
    }
    return ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p, .param .u32 n)\n{\n"
           ".reg .b32 %t, %n; .reg .f32 %v<" + std::to_string(most_values) + ">, %x; .reg .b64 %a; .reg .pred %p;\n"
           "ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 256, %a; cvt.rn.f32.u32 %x, %t;\n" +
           loads + "again:\n" + sums + "sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra again;\n" + stores + "ret;\n}\n";
}

translator::CompileOptions options_for(const char* target) {
    translator::CompileOptions options;
    options.target = translator::named_target(target);
    return options;
}

/// The immediate of each ADDVL that takes stack, in vectors.
unsigned vectors_on_stack(const std::string& assembly) {
    unsigned vectors = 0;
    const std::regex taken("addvl\tx?[a-z0-9]+, x?[a-z0-9]+, #-([0-9]+)");
    for (std::sregex_iterator i(assembly.begin(), assembly.end(), taken), end; i != end; ++i) vectors += unsigned(std::stoul((*i)[1]));
    return vectors;
}

} // namespace

TEST_CASE("SVE: steps are two of its vectors wide") {
    const auto loader = ptx::ModuleLoader::load(kernel(4), "sve.ptx");
    const translator::BlockShape shape{{64, 1, 1}, {1, 1, 1}};
    const auto has_long_vectors = [&](const char* target) {
        return std::regex_search(translator::dump(*loader, "k", shape, options_for(target), "asm"), std::regex("\tf[a-z]+\tz[0-9]"));
    };
    CHECK_FALSE(has_long_vectors("aarch64"));
    CHECK(has_long_vectors("neoverse-v1"));
    CHECK(has_long_vectors("a64fx"));
    CHECK(translator::compile(*loader, "k", shape, options_for("aarch64")).properties.lane_width == 8);
    CHECK(translator::compile(*loader, "k", shape, options_for("neoverse-v1")).properties.lane_width == 16);
    CHECK(translator::compile(*loader, "k", shape, options_for("a64fx")).properties.lane_width == 32);
}

TEST_CASE("SVE: vectors that are spilled count as stack") {
    const auto loader = ptx::ModuleLoader::load(kernel(most_values), "sve.ptx");
    const translator::BlockShape shape{{64, 1, 1}, {1, 1, 1}};
    const unsigned vectors = vectors_on_stack(translator::dump(*loader, "k", shape, options_for("neoverse-v1"), "asm"));
    CHECK(vectors >= 40); // 80 values in 32 registers
    CHECK(translator::compile(*loader, "k", shape, options_for("neoverse-v1")).image.stack_bytes >= vectors * 32);
}
