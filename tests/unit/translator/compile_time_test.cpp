// SPDX-License-Identifier: Apache-2.0
// The time to compile grows with the length of a kernel and not with its square: four times the statements take about
// four times as long. The bound is loose (a square would be 16), since machines are noisy.
#include "frontend/module_loader.h"
#include "tests/support/growth.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using namespace ptarmigan;

namespace {

std::string kernel(const std::string& body) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p)\n{\n"
           ".reg .pred %p; .reg .b32 %x, %y, %t; .reg .b64 %a, %b;\n"
           "ld.param.u64 %a, [p]; mov.u32 %x, %tid.x; mul.wide.u32 %b, %x, 4; add.u64 %b, %a, %b; ld.global.u32 %x, [%b]; mov.u32 %y, 1;\n" +
           body + "st.global.u32 [%b], %x;\nret;\n}\n";
}

/// `if (bit of x) { y = 3 y + p[..]; p[..] = x; } else { x ^= y; p[..] = y; }`, many times.
std::string diamonds(unsigned count) {
    std::string body;
    for (unsigned i = 0; i < count; ++i) {
        const std::string n = std::to_string(i), offset = std::to_string(4 * (i % 64));
        body += "and.b32 %t, %x, " + std::to_string(1u << (i % 20)) + "; setp.ne.u32 %p, %t, 0; @%p bra ELSE" + n + ";\n"
                "mad.lo.u32 %y, %y, 3, " + n + "; st.global.u32 [%b+" + offset + "], %x; bra JOIN" + n + ";\n"
                "ELSE" + n + ": xor.b32 %x, %x, %y; st.global.u32 [%b+" + offset + "], %y;\n"
                "JOIN" + n + ":\n";
    }
    return kernel(body);
}

/// Tries of locks, many times: lanes wait for each other.
std::string locks(unsigned count) {
    std::string body;
    for (unsigned i = 0; i < count; ++i) {
        const std::string n = std::to_string(i);
        body += "TRY" + n + ": atom.global.cas.b32 %t, [%a], 0, 1; setp.ne.u32 %p, %t, 0; @%p bra TRY" + n + "; atom.global.exch.b32 %t, [%a], 0;\n";
    }
    return kernel(body);
}

/// `if` in a loop that all of them are in.
std::string diamonds_in_a_loop(unsigned count) {
    std::string body = diamonds(count);
    const std::string first = "and.b32 %t, %x, 1;", last = "st.global.u32 [%b], %x;\nret";
    body.insert(body.find(first), "AGAIN: ");
    body.insert(body.rfind(last), "setp.lt.u32 %p, %y, 1000; @%p bra AGAIN;\n");
    return body;
}

translator::CompiledKernel compile(const std::string& text, unsigned threads) {
    const auto loader = ptx::ModuleLoader::load(text, "widths.ptx");
    translator::CompileOptions options;
    options.target = translator::named_target("x86-64-v4");
    translator::BlockShape shape;
    shape.ntid[0] = threads;
    return translator::compile(*loader, "k", shape, options);
}

/// Thread CPU time.
double microseconds(const std::string& text, const translator::CompileForm& form) {
    const auto loader = ptx::ModuleLoader::load(text, "long.ptx");
    translator::CompileOptions options;
    static_cast<translator::CompileForm&>(options) = form;
    options.target = translator::host_target();
    translator::BlockShape shape;
    shape.ntid[0] = 128;
    translator::CompileTimes times;
    translator::compile(*loader, "k", shape, options, &times);
    return times.emit + times.passes + times.codegen + times.link;
}

} // namespace

TEST_CASE("quick code asks a whole warp which of its lanes are together") {
    const auto width = [](const std::string& statement) {
        const std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{ .reg .b64 %a; .reg .b32 %r<2>; .shared .b32 s;\n"
                                 "ld.param.u64 %a, [p]; mov.u32 %r1, %tid.x;\n" + statement + "\nst.global.u32 [%a], %r1; }\n";
        const auto loader = ptx::ModuleLoader::load(text, "quick.ptx");
        translator::CompileOptions options;
        options.target = translator::named_target("x86-64-v4");
        options.optimization = translator::Optimization::least;
        translator::BlockShape shape;
        shape.ntid[0] = 64;
        return translator::compile(*loader, "k", shape, options).properties.lane_width;
    };
    CHECK(width("add.u32 %r1, %r1, 1;") == 1);
    CHECK(width("activemask.b32 %r1;") == 32);
}

TEST_CASE("quick code of a statement is short") {
    const auto bytes_of_one = [](const std::string& statement, unsigned lanes) {
        const auto size = [&](unsigned count) {
            std::string body = ".reg .f32 %f; .reg .b32 %s, %m<4>; .shared .align 16 .b8 window[4096];\n"
                               "mov.u32 %s, window; mad.lo.u32 %s, %x, 16, %s; mov.b32 %f, %x; mov.u32 %m0, %x;\n";
            for (unsigned i = 0; i < count; ++i) body += statement + "\n";
            const auto loader = ptx::ModuleLoader::load(kernel(body + "mov.b32 %x, %f; add.u32 %x, %x, %m0;"), "short.ptx");
            translator::CompileOptions options;
            options.target = translator::named_target("x86-64-v4");
            options.optimization = translator::Optimization::least;
            options.lane_width = lanes;
            translator::BlockShape shape;
            shape.ntid[0] = 128;
            return translator::compile(*loader, "k", shape, options).image.code_size;
        };
        return (size(300) - size(100)) / 200; // of whole pages
    };
    CHECK(bytes_of_one("ex2.approx.ftz.f32 %f, %f;", 1) < 50); // a call
    CHECK(bytes_of_one("ex2.approx.ftz.f32 %f, %f;", 32) < 200);
    // Loops over the lanes.
    CHECK(bytes_of_one("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%m0, %m1, %m2, %m3}, [%s];", 32) < 500);
    CHECK(bytes_of_one("cp.async.cg.shared.global [%s], [%b], 16;", 32) < 1500);
    CHECK(bytes_of_one("ld.shared.v4.u32 {%m0, %m1, %m2, %m3}, [%s]; add.u32 %s, %m0, %s;", 32) < 1500);
}

TEST_CASE("the time to compile grows with the number of branches, not with its square") {
    for (const unsigned lanes : {1u, 8u})
        for (const translator::Optimization optimization : {translator::Optimization::least, translator::Optimization::full}) {
            translator::CompileForm form;
            form.lane_width = lanes;
            form.optimization = optimization;
            const unsigned count = optimization == translator::Optimization::full ? 100 : 300;
            for (const auto& many : {diamonds, diamonds_in_a_loop}) {
                const std::string text = many(count), longer = many(4 * count);
                const auto time = [&form](const std::string& of) { return [&form, &of] { return microseconds(of, form); }; };
                const test::Growth grown = test::growth(8, time(text), time(longer));
                INFO(describe(form) << (many == diamonds ? "" : ", in a loop") << ": " << grown.one << " us for " << count << ", " << grown.four << " us for four times as many");
                CHECK(grown.below(8));
            }
        }
}

TEST_CASE("steps are not wider than the block") {
    const std::string text = diamonds(2);
    const unsigned widths[][2] = {{1, 1}, {2, 4}, {4, 4}, {5, 8}, {9, 16}, {16, 16}, {17, 32}, {128, 32}};
    for (const auto& [threads, width] : widths) {
        INFO(threads << " threads");
        CHECK(compile(text, threads).properties.lane_width == width);
    }
    // A warp that meets stays whole.
    const std::string meets = kernel("shfl.sync.bfly.b32 %x, %x, 1, 31, -1;\n");
    CHECK(compile(meets, 1).properties.lane_width == 32);
}

TEST_CASE("very long kernels with waiting loops are compiled lane by lane") {
    CHECK(compile(locks(20), 128).properties.lane_width > 1);
    CHECK(compile(locks(1000), 128).properties.lane_width == 1);
}
