// SPDX-License-Identifier: Apache-2.0
// Placing and initialising a module's variables.
#include "runtime/module/module.h"

#include "runtime/base/handle_table.h"
#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/stream/dispatcher.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

bool has_address(const ptx::Variable &variable) {
    return variable.space == ptx::StateSpace::global || variable.space == ptx::StateSpace::constant;
}

} // namespace

Status Module::create(Context &context, std::shared_ptr<ModuleSource> source,
                      std::shared_ptr<Module> &module) {
    std::shared_ptr<Module> result(new Module(context, std::move(source)));
    if (const Status status = result->place_variables(); status != Status::success)
        return status;
    result->initialise_variables();
    for (const auto &kernel : result->source_->kernels()) {
        result->functions_.push_back(std::make_shared<Function>(*result, *kernel));
        HandleTable<Function>::get().add(result->functions_.back());
    }
    HandleTable<Module>::get().add(result);
    module = std::move(result);
    return Status::success;
}

Status Module::place_variables() {
    const std::vector<ptx::Variable> &variables = source_->module().variables;
    addresses_.assign(variables.size(), 0);
    for (std::size_t id = 0; id < variables.size(); ++id) {
        const ptx::Variable &variable = variables[id];
        if (!has_address(variable))
            continue;
        const MemoryKind kind = variable.managed ? MemoryKind::managed : MemoryKind::device;
        const std::size_t size = std::max<std::size_t>(variable.size, 1);
        Allocation allocation;
        const Status status = AddressSpace::get().allocate(
            size, kind, &context_, allocation,
            std::max<std::size_t>(variable.alignment, AddressSpace::alignment));
        if (status != Status::success)
            return status;
        static_cast<void>(AddressSpace::get().annotate(allocation.base, [](Allocation &record) {
            record.owned_by_module = true;
            record.flags = 1;
        }));
        addresses_[id] = allocation.base;
    }
    return Status::success;
}

void Module::initialise_variables() {
    const std::vector<ptx::Variable> &variables = source_->module().variables;
    for (std::size_t id = 0; id < variables.size(); ++id) {
        if (addresses_[id] == 0)
            continue;
        const ptx::Variable &variable = variables[id];
        auto *bytes = reinterpret_cast<std::uint8_t *>(addresses_[id]);
        // Memory may have been used before.
        std::memset(bytes, 0, variable.size);
        const std::size_t given = std::min<std::size_t>(variable.init.size(), variable.size);
        std::copy_n(variable.init.data(), given, bytes);
        for (const ptx::Relocation &relocation : variable.relocations) {
            if (relocation.offset > variable.size ||
                relocation.size > variable.size - relocation.offset)
                continue; // the binder has reported it
            std::uint64_t value = relocation.is_function ? function_address(relocation.symbol)
                                                         : addresses_[relocation.symbol];
            value += static_cast<std::uint64_t>(relocation.addend);
            if (relocation.size == 1)
                value >>= 8 * relocation.byte;
            std::memcpy(bytes + relocation.offset, &value, relocation.size);
        }
    }
}

Module::~Module() {
    for (const std::uint64_t address : addresses_) {
        if (address == 0)
            continue;
        const auto mine = [this](const Allocation &record) {
            return record.owned_by_module && record.context == &context_;
        };
        // Gone already if the context was cleared first.
        static_cast<void>(AddressSpace::get().free(address, mine));
    }
}

Status Module::unload(const void *handle) {
    std::shared_ptr<Module> module = HandleTable<Module>::get().remove(handle);
    if (!module)
        return Status::invalid_handle;
    HandleTable<Function>::get().remove_if(
        [&](const Function &function) { return &function.module() == module.get(); });
    Dispatcher &dispatcher = Dispatcher::get();
    for (const auto &operation : dispatcher.pending(module->context()))
        dispatcher.wait(operation);
    return Status::success;
}

std::shared_ptr<Function> Module::find_function(std::string_view name) const {
    for (const auto &function : functions_)
        if (function->kernel().name() == name)
            return function;
    return nullptr;
}

Status Module::find_global(std::string_view name, DevicePointer &pointer, std::size_t &size,
                           bool only_managed) const {
    const auto id = source_->module().find_variable(name);
    if (!id || addresses_[*id] == 0)
        return Status::not_found;
    const ptx::Variable &variable = source_->module().variables[*id];
    if (only_managed && !variable.managed)
        return Status::not_found;
    pointer = addresses_[*id];
    size = variable.size;
    return Status::success;
}

} // namespace ptarmigan::runtime
