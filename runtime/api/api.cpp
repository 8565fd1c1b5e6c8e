// SPDX-License-Identifier: Apache-2.0
// include/ptarmigan/ptarmigan.h on top of the runtime: the primary context and its default stream.
#include "ptarmigan/ptarmigan.h"

#include "runtime/base/log.h"
#include "runtime/code/fault.h"
#include "runtime/context/context.h"
#include "runtime/device/device.h"
#include "runtime/launch/launch.h"
#include "runtime/memory/memory.h"
#include "runtime/module/module.h"
#include "runtime/stream/stream.h"

namespace ptarmigan {
namespace {

using runtime::Status;

void check(Status status, const std::string& what) {
    if (status == Status::success) return;
    std::string text = what + ": error " + std::to_string(static_cast<int>(status));
    const bool is_fault = runtime::process_fault() == status && *runtime::last_fault_report();
    const std::string detail = is_fault ? runtime::last_fault_report() : runtime::error_detail();
    if (!detail.empty()) text += ": " + detail;
    throw Error(static_cast<int>(status), text);
}

/// The primary context, retained once for the life of the process.
runtime::Context& context() {
    static runtime::Context& retained = []() -> runtime::Context& {
        check(runtime::Device::initialize(), "no device");
        runtime::Context& primary = *runtime::primary_context();
        check(primary.retain(), "context");
        return primary;
    }();
    return retained;
}

runtime::Stream& stream() {
    return *context().legacy_stream();
}

} // namespace

DeviceDescription describe_device() {
    const runtime::Device& device = runtime::Device::get();
    return {device.name(), static_cast<int>(device.compute_capability()), device.workers(), device.total_memory()};
}

Buffer::Buffer(std::size_t size) : size_(size) {
    check(runtime::memory_allocate(context(), size, address_), "buffer");
    check(runtime::memory_fill(stream(), address_, 0, 1, 0, size, 1, true), "buffer");
}

Buffer::~Buffer() {
    // After a fault the context refuses; its memory goes with the process.
    if (address_) static_cast<void>(runtime::memory_free(context(), address_));
}

Buffer::Buffer(Buffer&& other) noexcept
    : address_(std::exchange(other.address_, 0)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    return *this;
}

void Buffer::upload(const void* source, std::size_t size, std::size_t offset) {
    using runtime::Side;
    void* destination = reinterpret_cast<void*>(address_ + offset);
    check(runtime::memory_copy(stream(), Side::device, destination, Side::host, source, size, true), "upload");
}

void Buffer::download(void* destination, std::size_t size, std::size_t offset) const {
    using runtime::Side;
    const void* source = reinterpret_cast<const void*>(address_ + offset);
    check(runtime::memory_copy(stream(), Side::host, destination, Side::device, source, size, true), "download");
}

struct Module::Impl {
    std::shared_ptr<runtime::Module> module;
};

Module::Module(std::string ptx, std::string name) : impl_(std::make_unique<Impl>()) {
    std::shared_ptr<runtime::ModuleSource> source;
    std::string log;
    check(runtime::ModuleSource::load(std::move(ptx), std::move(name), source, log), "module");
    check(runtime::Module::create(context(), std::move(source), impl_->module), "module");
}

Module::~Module() {
    if (impl_ && impl_->module) static_cast<void>(runtime::Module::unload(impl_->module.get()));
}

Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;

std::vector<std::string> Module::kernels() const {
    std::vector<std::string> names;
    for (const auto& function : impl_->module->functions()) names.push_back(function->kernel().name());
    return names;
}

void Module::launch(const std::string& kernel, Extents grid, Extents block, std::initializer_list<Argument> arguments,
                    std::uint32_t dynamic_shared) {
    const std::shared_ptr<runtime::Function> function = impl_->module->find_function(kernel);
    if (!function) throw Error(static_cast<int>(Status::not_found), "no kernel " + kernel);
    const std::size_t count = function->kernel().given_parameters();
    std::vector<void*> parameters;
    for (const Argument& argument : arguments) {
        std::size_t offset = 0, size = 0;
        const Status known = function->kernel().parameter(parameters.size(), offset, size);
        if (known != Status::success || size != argument.bytes().size())
            throw Error(static_cast<int>(Status::invalid_value), "kernel " + kernel + ": argument " +
                                                                     std::to_string(parameters.size()) +
                                                                     " does not fit its parameter");
        parameters.push_back(const_cast<std::uint8_t*>(argument.bytes().data()));
    }
    if (parameters.size() != count)
        throw Error(static_cast<int>(Status::invalid_value),
                    "kernel " + kernel + " takes " + std::to_string(count) + " arguments");
    runtime::LaunchConfig config;
    config.grid = {grid.x, grid.y, grid.z};
    config.block = {block.x, block.y, block.z};
    config.dynamic_shared = dynamic_shared;
    check(runtime::launch(*function, config, stream(), parameters.data(), nullptr), "launch of " + kernel);
}

std::pair<std::uint64_t, std::size_t> Module::variable(const std::string& name) const {
    std::pair<std::uint64_t, std::size_t> place;
    check(impl_->module->find_global(name, place.first, place.second), "variable " + name);
    return place;
}

void synchronize() {
    check(context().synchronize(), "synchronize");
}

} // namespace ptarmigan
