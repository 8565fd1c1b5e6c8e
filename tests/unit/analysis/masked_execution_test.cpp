// SPDX-License-Identifier: Apache-2.0
// Random programs: masked execution after the plan stores what each thread stores on its own.
#include "translator/analysis/build/build_graph.h"
#include "translator/analysis/graph/dump_graph.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/shapes/shapes.h"
#include "translator/analysis/graph/verify_graph.h"
#include "tests/unit/analysis/interpreters.h"
#include "tests/unit/analysis/random_program.h"

#include <catch2/catch.hpp>

#include <cstdlib>

namespace ptarmigan::test {
namespace {

using namespace translator;

struct Counts {
    unsigned split = 0, unsplit = 0;
};

void check_program(std::uint32_t seed, bool with_barriers, Counts& counts) {
    std::string text = random_program(seed, with_barriers);
    INFO("seed " << seed << (with_barriers ? " with barriers" : "") << "\n" << text);
    auto loader = ptx::ModuleLoader::load(text, "random");
    REQUIRE(loader->ok());
    ptx::FunctionId kernel = *loader->module().find_function("k");
    for (auto ntid : {std::array<std::uint32_t, 3>{32, 1, 1}, {64, 1, 1}, {8, 7, 1}}) {
        Launch launch;
        launch.ntid = ntid;
        launch.parameters = {seed % 7, seed % 5, 2, 3, 0x1000};
        auto expected = run_threads(loader->module(), loader->body(kernel), launch);
        GraphOptions options;
        options.shape.ntid = ntid;
        FunctionGraph graph = build_graph(*loader, kernel, options);
        verify_graph(graph);
        for (unsigned width : {32u, 8u, 1u}) {
            INFO("ntid " << ntid[0] << "x" << ntid[1] << " width " << width);
            compute_shapes(graph, options.shape, width, CompileOptions{});
            BarrierPlan whole;
            whole.regions = {whole_graph(graph)};
            whole.resume_of = {no_block};
            whole.live_in = {{}};
            BarrierPlan plan = plan_barriers(graph, options.shape);
            std::string dump = dump_graph(graph, true) + dump_barriers(graph, plan);
            for (const RegionView& view : plan.regions) {
                LinearPlan linear = plan_linearization(graph, view);
                verify_plan(graph, linear);
                dump += dump_plan(graph, linear);
            }
            INFO(dump);
            REQUIRE_NOTHROW(run_steps(graph, whole, launch, width));
            CHECK(run_steps(graph, whole, launch, width) == expected);
            ++(plan.splittable ? counts.split : counts.unsplit);
            if (!plan.splittable) continue;
            REQUIRE_NOTHROW(run_steps(graph, plan, launch, width));
            CHECK(run_steps(graph, plan, launch, width) == expected);
        }
    }
}

/// PTARMIGAN_TEST_SEEDS widens the search.
std::uint32_t seeds(std::uint32_t usual) {
    const char* text = std::getenv("PTARMIGAN_TEST_SEEDS");
    return text ? std::uint32_t(std::strtoul(text, nullptr, 10)) : usual;
}

TEST_CASE("masked execution of random programs") {
    Counts counts;
    for (std::uint32_t seed = 1; seed <= seeds(150); ++seed) check_program(seed, false, counts);
    CHECK(counts.unsplit == 0);
}

TEST_CASE("region-split execution of random programs with barriers") {
    Counts counts;
    for (std::uint32_t seed = 1; seed <= seeds(150); ++seed) check_program(seed, true, counts);
    CHECK(counts.split > counts.unsplit);
}

} // namespace
} // namespace ptarmigan::test
