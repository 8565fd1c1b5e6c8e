// SPDX-License-Identifier: Apache-2.0
// A kernel from a few lines of PTX, analysed.
#pragma once

#include "translator/analysis/build/build_graph.h"
#include "translator/analysis/shapes/shapes.h"
#include "translator/analysis/graph/verify_graph.h"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <string>

namespace ptarmigan::test {

struct AnalysedKernel {
    std::unique_ptr<ptx::ModuleLoader> loader;
    translator::BlockShape shape;
    translator::FunctionGraph graph;

    /// Registers %r<32> %rd<32> %f<32> %p<32> are declared; parameters: p (u64), q (u64), n (u32).
    AnalysedKernel(const std::string& body, std::array<std::uint32_t, 3> ntid = {32, 1, 1}, unsigned width = 32,
                   const std::string& module_scope = "") {
        std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n" + module_scope +
                           ".visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)\n{\n"
                           ".reg .b32 %r<32>;\n.reg .b64 %rd<32>;\n.reg .f32 %f<32>;\n.reg .pred %p<32>;\n" +
                           body + "\n}\n";
        loader = ptx::ModuleLoader::load(text, "test");
        if (!loader->ok()) throw std::runtime_error("test program does not load:\n" + text);
        shape.ntid = ntid;
        translator::GraphOptions options;
        options.shape = shape;
        graph = translator::build_graph(*loader, *loader->module().find_function("k"), options);
        translator::verify_graph(graph);
        translator::compute_shapes(graph, shape, width, translator::CompileOptions{});
    }

    /// The last value whose register has this name.
    const translator::SsaValue& value(const std::string& name) const {
        for (auto it = graph.values.rbegin(); it != graph.values.rend(); ++it)
            if (it->name == name) return *it;
        throw std::runtime_error("no value of register " + name);
    }
    const translator::Shape& shape_of(const std::string& name) const { return value(name).shape; }
    unsigned count(std::string_view form) const {
        unsigned result = 0;
        for (const auto& block : graph.blocks)
            for (const auto& instruction : block.instructions)
                result += ptx::form_info(instruction.inst.form).name == form;
        return result;
    }
};

} // namespace ptarmigan::test
