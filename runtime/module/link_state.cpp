// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/link_state.h"

#include "frontend/ptx/provided_functions.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/read_file.h"
#include "runtime/device/device.h"
#include "runtime/module/fatbin.h"
#include "runtime/module/fatbin_writer.h"
#include "runtime/module/host_object.h"
#include "runtime/module/module_source.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

void add_lines(std::string& log, std::string_view lines) {
    while (lines.ends_with('\n')) lines.remove_suffix(1);
    if (lines.empty()) return;
    if (!log.empty()) log += "\n";
    log += lines;
}

ImageOptions image_options() {
    ImageOptions options;
    options.device_architecture = Device::get().compute_capability();
    options.accept_newer = env_flag(Env::accept_newer_ptx);
    options.replaces_sass = false; // of libcudadevrt it would be code for what the runtime does here
    return options;
}

/// LLVM bitcode, or NVIDIA's container of it (nvcc -dlto).
bool is_lto_code(const void* data, std::size_t size) {
    const std::string_view bytes(static_cast<const char*>(data), size);
    return bytes.starts_with("BC\xc0\xde") || bytes.starts_with("\xed\x43\x4e\x7f");
}

/// Errors of the linker from number `first` on, as the log has them.
std::string lines_from(const std::vector<std::string>& errors, std::size_t first) {
    std::string lines;
    for (std::size_t i = first; i < errors.size(); ++i) add_lines(lines, "error   : " + errors[i]);
    return lines;
}

} // namespace

LinkState::LinkState() : linker_(ptx::is_provided_function) {}

Status LinkState::fail(Status status, std::string_view text) {
    add_lines(error_log_, text);
    set_error_detail(std::string(text));
    return status;
}

Status LinkState::spoil(Status status) {
    if (result_ == Status::success) result_ = status;
    return status;
}

Status LinkState::add(LinkInput kind, const void* data, std::size_t size, std::string name) {
    std::lock_guard lock(mutex_);
    if (complete_ || !data || size == 0) return Status::invalid_value;
    if (name.empty()) name = "<unnamed>";
    const std::size_t known = linker_.conflicts().size();
    const Status status = add_bytes(kind, data, size, name);
    if (linker_.conflicts().size() == known) return status;
    const std::string conflicts = lines_from(linker_.conflicts(), known);
    return spoil(fail(Status::invalid_source, conflicts));
}

Status LinkState::add_bytes(LinkInput kind, const void* data, std::size_t size, const std::string& name) {
    switch (kind) {
    case LinkInput::ptx: {
        const auto* text = static_cast<const char*>(data);
        return add_ptx(std::string(text, strnlen(text, size)), name, true, false);
    }
    case LinkInput::fatbinary: {
        const Status status = add_fatbinary(data, size, name, false);
        if (status == Status::invalid_image && image_kind(data, size) == ImageKind::ptx_text)
            add_lines(error_log_, unknown_format); // the driver looks twice, and says so
        return status;
    }
    case LinkInput::object: return add_object(data, size, name);
    case LinkInput::library: return add_library(data, size, name);
    case LinkInput::cubin: return add_cubin(data, size, name);
    case LinkInput::nvvm: return add_lto(data, size, name);
    }
    return Status::invalid_value;
}

Status LinkState::add_cubin(const void* data, std::size_t size, const std::string& name) {
    switch (image_kind(data, size)) {
    case ImageKind::container: return add_fatbinary(data, size, name, false); // of another link
    case ImageKind::elf:
        return spoil(
            fail(Status::no_binary_for_gpu,
                 "error   : '" + name + "' is a cubin (SASS machine code), which only a GPU can run; link PTX"));
    default: return spoil(Status::invalid_image);
    }
}

Status LinkState::add_lto(const void* data, std::size_t size, const std::string& name) {
    if (!is_lto_code(data, size)) return Status::invalid_value;
    return spoil(fail(Status::not_supported,
                      "error   : '" + name + "' is LTO code (NVVM IR), which is not supported; link PTX"));
}

Status LinkState::add_file(LinkInput kind, const std::string& path) {
    std::string bytes;
    if (const Status status = read_file(path, bytes); status != Status::success) return status;
    if (bytes.empty()) return fail(Status::invalid_image, "error   : '" + path + "' is empty");
    return add(kind, bytes.data(), bytes.size(), path.substr(path.find_last_of('/') + 1));
}

Status LinkState::add_ptx(std::string text, std::string name, bool check_bodies, bool on_demand) {
    std::shared_ptr<ModuleSource> checked;
    std::string log;
    const BodyCheck check = check_bodies ? BodyCheck::at_load : BodyCheck::at_first_use;
    const Status status = ModuleSource::load(text, name, checked, log, check, TextUse::link_input);
    if (status != Status::success) {
        add_lines(error_log_, log); // the detail has been set
        return status;
    }
    add_lines(info_log_, log);
    checked.reset();
    if (linker_.add(std::move(text), std::move(name), log, on_demand)) return Status::success;
    return fail(Status::invalid_ptx, log);
}

Status LinkState::add_fatbinary(const void* data, std::size_t size, const std::string& name, bool on_demand) {
    ImagePtx image = read_image(data, size, image_options());
    if (image.result != ImageResult::ok)
        return fail(Status{image_result_code(image.result)}, "error   : '" + name + "': " + describe_failure(image));
    if (image.is_passed_over)
        log_once("link " + name,
                 "'" + name + "': its PTX for sm_" + std::to_string(image.architecture) +
                     " is linked, where a GPU would link the machine code beside it, which is for more: "
                     "functions may differ or be empty");
    if (image.units.empty()) return add_ptx(std::move(image.text), name, false, on_demand);
    for (PtxUnit& unit : image.units) {
        const Status status = add_ptx(std::move(unit.text), name + ":" + unit.name, false, on_demand);
        if (status != Status::success) return status;
    }
    return Status::success;
}

Status LinkState::add_object(const void* data, std::size_t size, const std::string& name) {
    std::vector<DeviceCode> codes;
    std::string why;
    if (!find_device_code({static_cast<const std::uint8_t*>(data), size}, codes, why))
        return fail(Status::unknown, "fatal   : Could not find fatbin in '" + name + "'");
    Status status = Status::success;
    for (std::size_t i = 0; i < codes.size() && status == Status::success; ++i)
        status = add_fatbinary(codes[i].container.data(), codes[i].container.size(), name, false);
    return status;
}

Status LinkState::add_library(const void* data, std::size_t size, const std::string& name) {
    std::vector<DeviceCode> codes;
    std::string why;
    if (!find_device_code({static_cast<const std::uint8_t*>(data), size}, codes, why)) {
        const bool is_thin = std::string_view(static_cast<const char*>(data), size).starts_with("!<thin>");
        return is_thin ? fail(Status::invalid_image, "error   : '" + name + "': " + why)
                       : fail(Status::unknown, "fatal   : unexpected archive format");
    }
    Status status = Status::success;
    for (const DeviceCode& code : codes) {
        const ContainerContents contents = list_container(code.container.data(), code.container.size());
        if (contents.sound && !has_suitable_ptx(contents, image_options())) {
            ++members_without_ptx_;
            continue;
        }
        status = add_fatbinary(code.container.data(), code.container.size(), name + ":" + code.member, true);
        if (status != Status::success) return status;
    }
    return status;
}

Status LinkState::link() {
    const ptx::LinkResult linked = linker_.link();
    if (linked.ok) {
        image_ = write_container(linked.text);
        return Status::success;
    }
    std::string errors = lines_from(linked.errors, 0);
    if (members_without_ptx_ != 0)
        add_lines(errors, "note    : " + std::to_string(members_without_ptx_) +
                              " members of libraries have no PTX for this device");
    return fail(Status::invalid_source, errors);
}

Status LinkState::complete(const void*& image, std::size_t& size) {
    std::lock_guard lock(mutex_);
    if (!complete_) {
        complete_ = true;
        if (result_ == Status::success) result_ = link();
    }
    if (result_ == Status::success) {
        image = image_.data();
        size = image_.size();
    }
    return result_;
}

std::string LinkState::error_log() const {
    std::lock_guard lock(mutex_);
    return error_log_;
}

std::string LinkState::info_log() const {
    std::lock_guard lock(mutex_);
    return info_log_;
}

} // namespace ptarmigan::runtime
