// SPDX-License-Identifier: Apache-2.0
// Texture and surface references, the older way to bind textures: what the program says of one is kept, and takes
// effect at launches. Codes as recorded from an H200's driver (tests/recordings/textures/texture_references).
#include "runtime/texture/texture_reference.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/texture_types.h"

#include <algorithm>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::ReferenceState;
using runtime::TextureReference;
using Source = runtime::ReferenceState::Source;
using Kind = runtime::TextureReference::Kind;

namespace {

constexpr std::size_t linear_alignment = 512, pitch_alignment = 32;

/// context_entry() for calls on a reference: body(TextureReference&). 400 for a bad handle.
template <class Body> CUresult reference_entry(const void* handle, Kind kind, Body&& body) noexcept {
    if (!handle) return entry([] { return Status::invalid_handle; });
    return context_entry([&](Context&) {
        auto reference = find_handle<TextureReference>(handle);
        return reference && reference->kind() == kind ? body(*reference) : Status::invalid_handle;
    });
}

/// A call that changes a texture reference: change(ReferenceState&).
template <class Change> CUresult set(CUtexref handle, Change&& change) noexcept {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        reference.update(change);
        return Status::success;
    });
}

/// A query with one result: get(const ReferenceState&) gives its value.
template <class Result, class Get> CUresult get(CUtexref handle, Result* result, Get&& value) noexcept {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!result) return Status::invalid_value;
        *result = static_cast<Result>(value(reference.state()));
        return Status::success;
    });
}

template <class Handle> CUresult get_of_module(Handle* handle, CUmodule module, const char* name, Kind kind) noexcept {
    return object_entry<runtime::Module>(module, [&](runtime::Module& owner) {
        if (!handle || !name || !*name) return Status::invalid_value;
        std::shared_ptr<TextureReference> reference;
        const Status status = owner.find_reference(name, kind, reference);
        if (status == Status::success) *handle = to_handle<Handle>(reference);
        return status;
    });
}

CUresult set_pitched(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* shape, CUdeviceptr pointer, std::size_t pitch,
                     bool checks_pitch) noexcept {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!shape || pointer % linear_alignment != 0 || (checks_pitch && pitch % pitch_alignment != 0) ||
            shape->Width > 131072 || shape->Height > 65000)
            return Status::invalid_value;
        reference.update([&](ReferenceState& state) {
            state.source = pointer ? Source::pitched : Source::none;
            state.memory = pointer;
            state.format = shape->Format;
            state.channels = shape->NumChannels;
            state.width = shape->Width;
            state.height = shape->Height;
            state.pitch = pitch;
        });
        return Status::success;
    });
}

bool is_channel_count(int channels) {
    return channels == 0 || channels == 1 || channels == 2 || channels == 4;
}

} // namespace

PTM_API(cuModuleGetTexRef, CUtexref* handle, CUmodule module, const char* name) {
    return get_of_module(handle, module, name, Kind::texture);
}
PTM_API(cuModuleGetSurfRef, CUsurfref* handle, CUmodule module, const char* name) {
    return get_of_module(handle, module, name, Kind::surface);
}

PTM_API(cuTexRefCreate, CUtexref* handle) {
    return context_entry([&](Context&) {
        if (!handle) return Status::invalid_value;
        auto reference = std::make_shared<TextureReference>(Kind::texture, false);
        runtime::HandleTable<TextureReference>::get().add(reference);
        *handle = to_handle<CUtexref>(reference);
        return Status::success;
    });
}
/// A module keeps its own.
PTM_API(cuTexRefDestroy, CUtexref handle) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!reference.is_variable()) runtime::HandleTable<TextureReference>::get().remove(handle);
        return Status::success;
    });
}

PTM_API(cuTexRefSetArray, CUtexref handle, CUarray array, unsigned flags) {
    constexpr unsigned override_format = 1;
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        auto object = find_handle<runtime::Array>(array);
        if (!object) return Status::invalid_handle;
        if (flags & ~override_format) return Status::invalid_value;
        reference.update([&](ReferenceState& state) {
            state.source = Source::array;
            state.array = object;
            if (!(flags & override_format)) return;
            state.format = object->shape().format;
            state.channels = object->shape().channels;
        });
        return Status::success;
    });
}
PTM_API(cuTexRefSetMipmappedArray, CUtexref handle, CUmipmappedArray mipmap, unsigned flags) {
    constexpr unsigned override_format = 1;
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        auto object = find_handle<runtime::MipmappedArray>(mipmap);
        if (!object) return Status::invalid_handle;
        if (flags & ~override_format) return Status::invalid_value;
        reference.update([&](ReferenceState& state) {
            state.source = Source::mipmap;
            state.mipmap = object;
            if (!(flags & override_format)) return;
            state.format = object->shape().format;
            state.channels = object->shape().channels;
        });
        return Status::success;
    });
}
PTM_API(cuTexRefSetAddress_v2, std::size_t* offset, CUtexref handle, CUdeviceptr pointer, std::size_t bytes) {
    constexpr std::size_t most_bytes = std::size_t{1} << 35; // of the largest texels
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        const std::size_t behind = pointer % linear_alignment;
        if ((!offset && behind != 0) || bytes > most_bytes) return Status::invalid_value;
        reference.update([&](ReferenceState& state) {
            state.source = pointer && bytes ? Source::linear : Source::none;
            state.memory = pointer - behind;
            state.bytes = bytes + behind;
        });
        if (offset) *offset = behind;
        return Status::success;
    });
}
PTM_API(cuTexRefSetAddress2D_v2, CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* shape, CUdeviceptr pointer,
        std::size_t pitch) {
    return set_pitched(handle, shape, pointer, pitch, false);
}
PTM_API(cuTexRefSetAddress2D_v3, CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* shape, CUdeviceptr pointer,
        std::size_t pitch) {
    return set_pitched(handle, shape, pointer, pitch, true);
}

PTM_API(cuTexRefSetFormat, CUtexref handle, int format, int channels) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!is_channel_count(channels)) return Status::invalid_value;
        reference.update([&](ReferenceState& state) {
            state.format = static_cast<unsigned>(format);
            state.channels = static_cast<unsigned>(channels);
        });
        return Status::success;
    });
}
/// Modes that there are not become clamp.
PTM_API(cuTexRefSetAddressMode, CUtexref handle, int dimension, int mode) {
    constexpr unsigned clamp = 1, modes = 4;
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (dimension < 0 || dimension > 2) return Status::invalid_value;
        const auto number = static_cast<unsigned>(mode);
        reference.update([&](ReferenceState& state) { state.address[dimension] = number < modes ? number : clamp; });
        return Status::success;
    });
}
PTM_API(cuTexRefSetFilterMode, CUtexref handle, int mode) {
    return set(handle, [&](ReferenceState& state) { state.filter = mode; });
}
PTM_API(cuTexRefSetFlags, CUtexref handle, unsigned flags) {
    constexpr unsigned known = 0x3f;
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (flags & ~known) return Status::invalid_value;
        reference.update([&](ReferenceState& state) { state.flags = flags; });
        return Status::success;
    });
}
PTM_API(cuTexRefSetMipmapFilterMode, CUtexref handle, int mode) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (mode != 0 && mode != 1) return Status::invalid_value;
        reference.update([&](ReferenceState& state) { state.level_filter = static_cast<unsigned>(mode); });
        return Status::success;
    });
}
PTM_API(cuTexRefSetMaxAnisotropy, CUtexref handle, unsigned most) {
    return set(handle, [&](ReferenceState& state) { state.anisotropy = most; });
}
PTM_API(cuTexRefSetMipmapLevelBias, CUtexref handle, float bias) {
    return set(handle, [&](ReferenceState& state) { state.bias = bias; });
}
PTM_API(cuTexRefSetMipmapLevelClamp, CUtexref handle, float lowest, float highest) {
    return set(handle, [&](ReferenceState& state) {
        state.lowest = lowest;
        state.highest = highest;
    });
}
PTM_API(cuTexRefSetBorderColor, CUtexref handle, float* color) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!color) return Status::invalid_value;
        reference.update([&](ReferenceState& state) { std::copy_n(color, 4, state.border_color); });
        return Status::success;
    });
}

PTM_API(cuTexRefGetArray, CUarray* array, CUtexref handle) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        const ReferenceState state = reference.state();
        auto object = state.source == Source::array ? state.array.lock() : nullptr;
        if (!array || !object || !find_handle<runtime::Array>(object.get())) return Status::invalid_value;
        *array = to_handle<CUarray>(object);
        return Status::success;
    });
}
PTM_API(cuTexRefGetMipmappedArray, CUmipmappedArray* mipmap, CUtexref handle) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        const ReferenceState state = reference.state();
        auto object = state.source == Source::mipmap ? state.mipmap.lock() : nullptr;
        if (!mipmap || !object || !find_handle<runtime::MipmappedArray>(object.get())) return Status::invalid_value;
        *mipmap = to_handle<CUmipmappedArray>(object);
        return Status::success;
    });
}
PTM_API(cuTexRefGetAddress_v2, CUdeviceptr* pointer, CUtexref handle) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!pointer) return Status::invalid_value;
        const ReferenceState state = reference.state();
        const bool bound = state.source == Source::linear || state.source == Source::pitched;
        *pointer = bound ? state.memory : 0;
        return bound ? Status::success : Status::invalid_value;
    });
}
PTM_API(cuTexRefGetAddressMode, int* mode, CUtexref handle, int dimension) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!mode || dimension < 0 || dimension > 2) return Status::invalid_value;
        *mode = static_cast<int>(reference.state().address[dimension]);
        return Status::success;
    });
}
PTM_API(cuTexRefGetFilterMode, int* mode, CUtexref handle) {
    return get(handle, mode, [](const ReferenceState& state) { return state.filter; });
}
PTM_API(cuTexRefGetFlags, unsigned* flags, CUtexref handle) {
    return get(handle, flags, [](const ReferenceState& state) { return state.flags; });
}
PTM_API(cuTexRefGetFormat, int* format, int* channels, CUtexref handle) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        const ReferenceState state = reference.state();
        if (!format && !channels) return Status::invalid_value;
        if (format) *format = static_cast<int>(state.format);
        if (channels) *channels = static_cast<int>(state.channels);
        return Status::success;
    });
}
PTM_API(cuTexRefGetMaxAnisotropy, int* most, CUtexref handle) {
    return get(handle, most, [](const ReferenceState& state) { return state.anisotropy; });
}
PTM_API(cuTexRefGetMipmapFilterMode, int* mode, CUtexref handle) {
    return get(handle, mode, [](const ReferenceState& state) { return state.level_filter; });
}
PTM_API(cuTexRefGetMipmapLevelBias, float* bias, CUtexref handle) {
    return get(handle, bias, [](const ReferenceState& state) { return state.bias; });
}
PTM_API(cuTexRefGetMipmapLevelClamp, float* lowest, float* highest, CUtexref handle) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!lowest || !highest) return Status::invalid_value;
        const ReferenceState state = reference.state();
        *lowest = state.lowest;
        *highest = state.highest;
        return Status::success;
    });
}
PTM_API(cuTexRefGetBorderColor, float* color, CUtexref handle) {
    return reference_entry(handle, Kind::texture, [&](TextureReference& reference) {
        if (!color) return Status::invalid_value;
        const ReferenceState state = reference.state();
        std::copy_n(state.border_color, 4, color);
        return Status::success;
    });
}

/// References take effect without it; the driver of 580 has no other answer for a valid function and reference.
PTM_API(cuParamSetTexRef, CUfunction function, int, CUtexref) {
    return context_entry([&](Context&) { return function ? Status::invalid_value : Status::invalid_handle; });
}

PTM_API(cuSurfRefSetArray, CUsurfref handle, CUarray array, unsigned flags) {
    constexpr unsigned load_store = 2; // CUDA_ARRAY3D_SURFACE_LDST
    return reference_entry(handle, Kind::surface, [&](TextureReference& reference) {
        auto object = find_handle<runtime::Array>(array);
        if (!object) return Status::invalid_handle;
        if (flags != 0 || !(object->shape().flags & load_store)) return Status::invalid_value;
        reference.update([&](ReferenceState& state) {
            state.source = Source::array;
            state.array = object;
        });
        return Status::success;
    });
}
PTM_API(cuSurfRefGetArray, CUarray* array, CUsurfref handle) {
    return reference_entry(handle, Kind::surface, [&](TextureReference& reference) {
        auto object = reference.state().array.lock();
        if (!array || !object || !find_handle<runtime::Array>(object.get())) return Status::invalid_value;
        *array = to_handle<CUarray>(object);
        return Status::success;
    });
}
