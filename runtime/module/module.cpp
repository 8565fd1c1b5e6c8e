// SPDX-License-Identifier: Apache-2.0
// Placing and initialising a module's variables.
#include "runtime/module/module.h"

#include "runtime/base/handle_table.h"
#include "runtime/base/host_access.h"
#include "runtime/base/log.h"
#include "runtime/base/process_exit.h"
#include "runtime/context/context.h"
#include "runtime/context/context_keeper.h"
#include "runtime/stream/dispatcher.h"
#include "runtime/texture/object_table.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace ptarmigan::runtime {
namespace {

bool has_address(const ptx::Variable& variable) {
    return variable.space == ptx::StateSpace::global || variable.space == ptx::StateSpace::constant;
}

/// A reference has no memory: its address is a handle.
bool is_reference(const ptx::Variable& variable) {
    return variable.type == ptx::ScalarType::texref || variable.type == ptx::ScalarType::surfref ||
           variable.type == ptx::ScalarType::samplerref;
}

TextureObject::Kind object_kind(const TextureReference& reference) {
    return reference.kind() == TextureReference::Kind::texture ? TextureObject::Kind::texture
                                                               : TextureObject::Kind::surface;
}

void end_modules(Context& context) {
    HandleTable<Function>::get().remove_if(
        [&](const Function& function) { return &function.module().context() == &context; });
    HandleTable<Module>::get().remove_if([&](const Module& module) { return &module.context() == &context; });
}

const RegisterContextKeeper modules_of_contexts(ContextKeeper::Kind::modules, {.end = end_modules});

} // namespace

Status Module::create(Context& context, std::shared_ptr<ModuleSource> source, std::shared_ptr<Module>& module,
                      std::shared_ptr<Module> sibling) {
    std::shared_ptr<Module> result(new Module(context, std::move(source)));
    result->sibling_ = std::move(sibling);
    if (const Status status = result->place_variables(); status != Status::success) return status;
    result->initialise_variables();
    result->functions_.reserve(result->source_->kernels().size());
    for (const auto& kernel : result->source_->kernels()) {
        result->functions_.push_back(std::make_shared<Function>(*result, *kernel));
        HandleTable<Function>::get().add(result->functions_.back());
    }
    HandleTable<Module>::get().add(result);
    module = std::move(result);
    return Status::success;
}

Status Module::function_beside(Kernel& kernel, std::shared_ptr<Function>& function) {
    const std::lock_guard lock(beside_mutex_);
    if (!beside_) {
        std::shared_ptr<Module> made(new Module(context_, source_->ptx_beside().source()));
        made->owner_ = this;
        if (const Status status = made->place_variables(); status != Status::success) return status;
        made->initialise_variables();
        for (const auto& one : made->source_->kernels())
            made->functions_.push_back(std::make_shared<Function>(*made, *one));
        beside_ = std::move(made);
    }
    function = beside_->functions_[kernel.index()];
    return Status::success;
}

std::shared_ptr<Module> Module::keep() {
    return owner_ == nullptr ? shared_from_this() : std::shared_ptr<Module>(owner_->shared_from_this(), this);
}

std::uint64_t Module::lent_address(std::size_t variable) const {
    if (owner_ == nullptr) return 0;
    const std::optional<LentVariable>& lent = owner_->source_->ptx_beside().lent_variables()[variable];
    return lent ? owner_->addresses_[lent->home] + lent->offset : 0;
}

Status Module::place_variables() {
    const std::vector<ptx::Variable>& variables = source_->module().variables;
    addresses_.assign(variables.size(), 0);
    for (std::size_t id = 0; id < variables.size(); ++id) {
        const ptx::Variable& variable = variables[id];
        if (is_reference(variable)) {
            if (variable.type == ptx::ScalarType::samplerref) {
                set_error_detail(".samplerref variable '" + variable.name +
                                 "': the driver loads no module that has one");
                return Status::not_found;
            }
            const auto kind = variable.type == ptx::ScalarType::texref ? TextureReference::Kind::texture
                                                                       : TextureReference::Kind::surface;
            references_.push_back({id, std::make_shared<TextureReference>(kind, true), 0});
            HandleTable<TextureReference>::get().add(references_.back().state);
            addresses_[id] = reference_bit(kind);
            continue;
        }
        if (!has_address(variable)) continue;
        if (const std::uint64_t lent = lent_address(id); lent != 0) {
            addresses_[id] = lent;
            continue;
        }
        if (variable.managed && sibling_) {
            addresses_[id] = sibling_->addresses_[id];
            continue;
        }
        const MemoryKind kind = variable.managed ? MemoryKind::managed : MemoryKind::device;
        const std::size_t size = std::max<std::size_t>(variable.size, 1);
        Allocation allocation;
        const Status status = AddressSpace::get().allocate(
            size, kind, &context_, allocation, std::max<std::size_t>(variable.alignment, AddressSpace::alignment));
        if (status != Status::success) return status;
        static_cast<void>(AddressSpace::get().annotate(allocation.base, [](Allocation& record) {
            record.owned_by_module = true;
            record.flags = 1;
        }));
        addresses_[id] = allocation.base;
    }
    return Status::success;
}

void Module::initialise_variables() {
    const DeviceMemoryUse use;
    const std::vector<ptx::Variable>& variables = source_->module().variables;
    for (std::size_t id = 0; id < variables.size(); ++id) {
        if (addresses_[id] == 0 || is_reference(variables[id]) || (variables[id].managed && sibling_) ||
            lent_address(id) != 0)
            continue;
        const ptx::Variable& variable = variables[id];
        auto* bytes = reinterpret_cast<std::uint8_t*>(addresses_[id]);
        // Memory may have been used before.
        std::memset(bytes, 0, variable.size);
        const std::size_t given = std::min<std::size_t>(variable.init.size(), variable.size);
        std::copy_n(variable.init.data(), given, bytes);
        for (const ptx::Relocation& relocation : variable.relocations) {
            if (relocation.offset > variable.size || relocation.size > variable.size - relocation.offset)
                continue; // the binder has reported it
            std::uint64_t value =
                relocation.is_function ? function_address(relocation.symbol) : addresses_[relocation.symbol];
            value += static_cast<std::uint64_t>(relocation.addend);
            if (relocation.size == 1) value >>= 8 * relocation.byte;
            std::memcpy(bytes + relocation.offset, &value, relocation.size);
        }
    }
}

Module::~Module() {
    for (const Reference& reference : references_) {
        HandleTable<TextureReference>::get().remove(reference.state.get());
        TextureTable::get().remove(reference.object, object_kind(*reference.state));
        addresses_[reference.variable] = 0;
    }
    for (std::size_t id = 0; id < addresses_.size(); ++id) {
        const std::uint64_t address = addresses_[id];
        if (address == 0 || lent_address(id) != 0) continue;
        const auto mine = [this](const Allocation& record) {
            return record.owned_by_module && record.context == &context_;
        };
        // Gone already if the context was cleared first.
        static_cast<void>(AddressSpace::get().free(address, mine));
    }
}

Status Module::unload(const void* handle) {
    std::shared_ptr<Module> module = HandleTable<Module>::get().remove(handle);
    if (!module) return Status::invalid_handle;
    HandleTable<Function>::get().remove_if(
        [&](const Function& function) { return &function.module() == module.get(); });
    Dispatcher& dispatcher = Dispatcher::get();
    const auto pending = dispatcher.pending(module->context());
    // libcudart unloads what nvcc has built into a program when the program exits. A GPU's driver does not wait for
    // kernels then; here their threads still run, so that what they use stays.
    if (process_exits() && !pending.empty()) {
        static_cast<void>(new std::shared_ptr<Module>(std::move(module)));
        return Status::success;
    }
    for (const auto& operation : pending) dispatcher.wait(operation);
    return Status::success;
}

std::shared_ptr<Function> Module::find_function(std::string_view name) const {
    const Kernel* kernel = source_->find_kernel(name);
    return kernel == nullptr ? nullptr : functions_[kernel->index()];
}

Status Module::find_global(std::string_view name, DevicePointer& pointer, std::size_t& size, bool only_managed) const {
    if (const sass::MachineCode* code = source_->machine_code(); code != nullptr)
        for (const sass::VariableAlias& alias : code->aliases()) {
            if (alias.name != name) continue;
            const auto home = source_->module().find_variable(alias.variable);
            if (!home || addresses_[*home] == 0 || (only_managed && !alias.is_managed)) return Status::not_found;
            pointer = addresses_[*home] + alias.offset;
            size = alias.size;
            return Status::success;
        }
    const auto id = source_->module().find_variable(name);
    // The driver has another code for names that are something else.
    if (id ? is_reference(source_->module().variables[*id]) : find_function(name) != nullptr)
        return Status::invalid_value;
    if (!id || addresses_[*id] == 0) return Status::not_found;
    const ptx::Variable& variable = source_->module().variables[*id];
    if (only_managed && !variable.managed) return Status::not_found;
    pointer = addresses_[*id];
    size = variable.size;
    return Status::success;
}

Status Module::find_reference(std::string_view name, TextureReference::Kind kind,
                              std::shared_ptr<TextureReference>& reference) const {
    const auto id = source_->module().find_variable(name);
    const auto found = std::find_if(references_.begin(), references_.end(), [&](const Reference& r) {
        return id && r.variable == *id && r.state->kind() == kind;
    });
    if (found == references_.end()) return Status::not_found;
    reference = found->state;
    return Status::success;
}

Status Module::bind_references() {
    if (references_.empty()) return Status::success;
    std::lock_guard lock(bind_mutex_);
    bool waited = false;
    for (std::size_t i = 0; i < references_.size(); ++i) {
        if (!references_[i].state->take_change()) continue;
        // Launches before this one are to see what was bound then.
        if (!std::exchange(waited, true)) {
            Dispatcher& dispatcher = Dispatcher::get();
            for (const auto& operation : dispatcher.pending(context_)) dispatcher.wait(operation);
        }
        if (const Status status = bind(i); status != Status::success) {
            references_[i].state->update([](ReferenceState&) {}); // the next launch fails too
            return status;
        }
    }
    return Status::success;
}

/// The object moves to another number, so that a kernel which runs against all rules sees the old or the new one.
Status Module::bind(std::size_t index) {
    Reference& reference = references_[index];
    TextureObject object;
    if (const Status status = make_object(*reference.state, object); status != Status::success) return status;
    std::uint64_t number = 0;
    if (object.kind != TextureObject::Kind::none)
        if (const Status status = TextureTable::get().add(object, number); status != Status::success) return status;
    std::atomic_ref(addresses_[reference.variable]).store(reference_bit(reference.state->kind()) | number);
    TextureTable::get().remove(reference.object, object_kind(*reference.state));
    reference.object = number;
    return Status::success;
}

} // namespace ptarmigan::runtime
