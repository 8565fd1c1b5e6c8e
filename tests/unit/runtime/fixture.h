// SPDX-License-Identifier: Apache-2.0
// A context with a module whose kernels are C++ functions: the runtime without the translator.
#pragma once

#include "runtime/context/context.h"
#include "runtime/context/current_context.h"
#include "runtime/device/device.h"
#include "runtime/launch/launch.h"
#include "runtime/memory/memory.h"
#include "runtime/module/module.h"
#include "runtime/stream/stream.h"
#include "translator/kernel_abi.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <memory>
#include <string>

namespace ptarmigan::runtime::test {

inline const char *const module_text = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter;
.visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};
.visible .global .align 8 .u64 table_address = table;
.visible .const .align 4 .f32 factor = 0f40000000;
.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)
{
    ret;
}
)";

inline bool ok(Status status) {
    return status == Status::success;
}

/// A user context of its own, so that a fault in one test does not stick to the others... but the
/// process's fault does: tests of faults make their context before the fault.
class Fixture {
public:
    Fixture() {
        REQUIRE(ok(Device::initialize()));
        REQUIRE(ok(Context::create(0, 0, context_)));
        std::string log;
        std::shared_ptr<ModuleSource> source;
        const Status loaded = ModuleSource::load(module_text, "test.ptx", source, log);
        INFO(log);
        REQUIRE(ok(loaded));
        REQUIRE(ok(Module::create(*context_, source, module)));
        function = module->find_function("k");
        REQUIRE(function);
    }
    ~Fixture() {
        module.reset();
        function.reset();
        if (context_->active())
            CHECK(ok(context_->destroy()));
    }
    Context &context() { return *context_; }
    Stream &stream() { return *context_->legacy_stream(); }

    /// Makes the kernel run `entry`.
    void set_kernel(abi::RunCta entry) {
        auto code = std::make_shared<LoadedKernel>();
        code->name = "k";
        code->entry = reinterpret_cast<const void *>(entry);
        code->properties.step_count = 1;
        function->kernel().set_code(code);
    }
    void set_fiber_kernel(abi::RunStep entry, unsigned steps, unsigned width) {
        auto code = std::make_shared<LoadedKernel>();
        code->name = "k";
        code->entry = reinterpret_cast<const void *>(entry);
        code->properties.uses_fibers = true;
        code->properties.step_count = steps;
        code->properties.lane_width = width;
        function->kernel().set_code(code);
    }
    Status launch_kernel(std::array<std::uint32_t, 3> grid, std::array<std::uint32_t, 3> block,
                         DevicePointer pointer, std::uint32_t value = 0, std::uint32_t shared = 0,
                         bool cooperative = false) {
        LaunchConfig config;
        config.grid = grid;
        config.block = block;
        config.dynamic_shared = shared;
        config.cooperative = cooperative;
        void *parameters[] = {&pointer, &value};
        return launch(*function, config, stream(), parameters, nullptr);
    }
    DevicePointer allocate(std::size_t size) {
        DevicePointer pointer = 0;
        REQUIRE(ok(memory_allocate(*context_, size, pointer)));
        REQUIRE(ok(memory_fill(stream(), pointer, 0, 1, 0, size, 1, true)));
        return pointer;
    }

    std::shared_ptr<Module> module;
    std::shared_ptr<Function> function;

private:
    std::shared_ptr<Context> context_;
};

/// Parameter values inside a kernel.
inline std::uint32_t *pointer_parameter(const abi::CtaContext *cta) {
    std::uint32_t *pointer;
    std::memcpy(&pointer, cta->params, sizeof pointer);
    return pointer;
}
inline std::uint32_t value_parameter(const abi::CtaContext *cta) {
    std::uint32_t value;
    std::memcpy(&value, cta->params + 8, sizeof value);
    return value;
}

} // namespace ptarmigan::runtime::test
